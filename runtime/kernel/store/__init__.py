"""Durable store of a peer: one SQLite file, written by one thread.

Import from the package, not from its modules.
"""

from specwire.runtime.kernel.store.database import Durability, Execute, Insert, Schema, Statement
from specwire.runtime.kernel.store.lock import StoreError, StoreInUseError, StoreVersionError
from specwire.runtime.kernel.store.store import Failure, Store

__all__ = [
    "Durability",
    "Execute",
    "Failure",
    "Insert",
    "Schema",
    "Statement",
    "Store",
    "StoreError",
    "StoreInUseError",
    "StoreVersionError",
]
