"""The inventory: `inventory.yaml`, and what it gives a worker.

``workers`` maps patterns of names (``nornir-*``, with `?` and ``[…]``, letters as they are) to lists of layers. For a worker the
layers of every pattern that fits are laid one over the other, in the order in which they stand in the file, each once.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from specwire.runtime.norfab.inventory.faults import InventoryError, Place
from specwire.runtime.norfab.inventory.merging import merge
from specwire.runtime.norfab.inventory.sources import Sources
from specwire.runtime.norfab.inventory.values import Document

SECTIONS = ("broker", "client", "workers", "topology", "logging", "hooks", "plugins")
MASK = "***"
_SECRET = re.compile(r"passw|secret|token|shared_key|private_key|api_key", re.IGNORECASE)


class Inventory:
    """One inventory; used by one thread at a time. Files are looked at again at every call.

    Args:
        path: the file, usually `inventory.yaml`; other files are found from its folder.
    """

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._sources = Sources(path.parent)

    def sections(self) -> dict[str, Any]:
        """Return the file's sections, all of them; raises InventoryError."""
        value, _ = self._load()
        return {name: value.get(name) or {} for name in SECTIONS}

    def masked(self) -> dict[str, Any]:
        """Return the sections with `MASK` in place of every secret; raises InventoryError."""
        return {name: _mask(section) for name, section in self.sections().items()}

    def check(self) -> None:
        """Read every layer of every pattern; raises InventoryError."""
        for layer, place in self._layers_of(None):
            self._content(layer, place)

    def of_worker(self, name: str) -> dict[str, Any] | None:
        """Return what the worker `name` is to know, None where nothing is said of it; raises InventoryError."""
        known: dict[str, Any] = {}
        used: list[str | dict[str, Any]] = []
        for layer, place in self._layers_of(name):
            if layer in used:
                continue
            used.append(layer)
            known = merge(known, self._content(layer, place))
        return known or None

    def _load(self) -> Document:
        document = self._sources.read(self._name, Place(self._name))
        value = {} if document.value is None else document.value
        if not isinstance(value, dict):
            raise InventoryError(Place(self._name), f"is a mapping with the keys {', '.join(SECTIONS)}")
        for key in value:
            if key not in SECTIONS:
                place = document.places[(key,)]
                raise InventoryError(place, f"there is no section {key!r}; there are {', '.join(SECTIONS)}")
        return Document(value, document.places)

    def _layers_of(self, name: str | None) -> Iterator[tuple[str | dict[str, Any], Place]]:
        """Yield the layers of one worker, of all where `name` is None, each with its place in the file."""
        value, places = self._load()
        workers = value.get("workers") or {}
        if not isinstance(workers, dict):
            raise InventoryError(places["workers",], "'workers' maps patterns of names to lists of layers")
        for pattern, layers in workers.items():
            if not isinstance(layers, list):
                raise InventoryError(
                    places["workers", pattern], f"the layers of {pattern!r} are a list of files and mappings"
                )
            if name is not None and not fnmatch.fnmatchcase(name, pattern):
                continue
            for index, layer in enumerate(layers):
                place = places["workers", pattern, index]
                if not isinstance(layer, str | dict):
                    raise InventoryError(place, "a layer is the path of a file, or a mapping")
                yield layer, place

    def _content(self, layer: str | dict[str, Any], place: Place) -> dict[str, Any]:
        if isinstance(layer, dict):
            return layer
        content = self._sources.read(layer, place).value
        if content is None:
            return {}
        if not isinstance(content, dict):
            raise InventoryError(Place(layer), "a layer is a mapping")
        return content


def _mask(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: MASK if _SECRET.search(key) and isinstance(item, str | int) else _mask(item)
            for key, item in value.items()
        }
    return [_mask(item) for item in value] if isinstance(value, list) else value
