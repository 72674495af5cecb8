"""The broker's inventory (SID): what each worker is to know, put together from layers of YAML.

One file, `inventory.yaml`, says by patterns of workers' names which layers a worker has; a layer is another YAML file beside
or below it, or stands in place. Every file is a Jinja2 template first, rendered in a sandbox.
"""

from specwire.runtime.norfab.inventory.faults import InventoryError, Place
from specwire.runtime.norfab.inventory.handling import InventoryHandler
from specwire.runtime.norfab.inventory.layers import Inventory

__all__ = ["Inventory", "InventoryError", "InventoryHandler", "Place"]
