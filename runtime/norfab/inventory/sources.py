"""The inventory's files: found inside its folder, read within bounds, and read again when they have changed.

Symbolic links are followed as long as they lead to something inside the folder, as mounted configuration has them: the path is
resolved first, and what it resolves to is then walked to without following any link, so that nothing is
swapped in between. Whether a file has changed is looked up at every request.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from specwire.runtime.containment import ContainmentError, open_folder, open_leaf, open_root
from specwire.runtime.norfab.inventory import templates
from specwire.runtime.norfab.inventory.faults import InventoryError, Place
from specwire.runtime.norfab.inventory.values import MAX_OCTETS, Document, read_document

KEPT_OCTETS = 64 * 1024 * 1024
"""Text of files that are kept read."""
UNSETTLED_NS = 2_000_000_000
"""A file that was changed so short a time ago may change again without its times telling."""

_Signature = tuple[int, int, int, int, int]


class _Kept(NamedTuple):
    signature: _Signature
    octets: int
    document: Document


class Sources:
    """The files of one folder; used by one thread at a time.

    Args:
        folder: which files may be read: those in and below it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = Path(os.path.realpath(folder))
        self._kept: dict[str, _Kept] = {}
        self._octets = 0

    def read(self, path: str, asked_at: Place) -> Document:
        """Return what the file says now.

        Args:
            path: from the folder; absolute paths are taken when they lead into it.
            asked_at: where the file is named, which is where errors in finding it are.

        Raises:
            InventoryError: there is no such file inside the folder, or it cannot be read.
        """
        try:
            descriptor = self._open(path)
        except (OSError, ContainmentError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise InventoryError(asked_at, f"{path[:200]!r} cannot be read: {reason}") from error
        try:
            return self._read(path, descriptor)
        except OSError as error:
            raise InventoryError(asked_at, f"{path[:200]!r} cannot be read: {error.strerror}") from error
        finally:
            os.close(descriptor)

    def _open(self, path: str) -> int:
        found = Path(os.path.realpath(self._folder / path))
        if not found.is_relative_to(self._folder) or found == self._folder:
            raise ContainmentError("it is not a file inside the folder of the inventory")
        *folders, leaf = found.relative_to(self._folder).parts
        root = open_root(self._folder)
        try:
            folder = open_folder(root, folders)
        finally:
            os.close(root)
        try:
            return open_leaf(folder, leaf)
        finally:
            os.close(folder)

    def _read(self, path: str, descriptor: int) -> Document:
        state = os.fstat(descriptor)
        signature = (state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
        kept = self._kept.get(path)
        if kept is not None and kept.signature == signature:
            return kept.document
        self._forget(path)
        with open(descriptor, "rb", closefd=False) as file:
            octets = file.read(MAX_OCTETS + 1)
        document = _understand(octets, path)
        if time.time_ns() - max(state.st_mtime_ns, state.st_ctime_ns) > UNSETTLED_NS:
            self._keep(path, _Kept(signature, len(octets), document))
        return document

    def _keep(self, path: str, kept: _Kept) -> None:
        if self._octets + kept.octets > KEPT_OCTETS:
            self._kept.clear()
            self._octets = 0
        self._kept[path] = kept
        self._octets += kept.octets

    def _forget(self, path: str) -> None:
        kept = self._kept.pop(path, None)
        if kept is not None:
            self._octets -= kept.octets


def _understand(octets: bytes, file: str) -> Document:
    if len(octets) > MAX_OCTETS:
        raise InventoryError(Place(file), f"is larger than {MAX_OCTETS} octets")
    try:
        text = octets.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = octets[: error.start]
        place = Place(file, before.count(b"\n") + 1, error.start - before.rfind(b"\n"))
        raise InventoryError(place, "is not UTF-8 here") from error
    rendered = templates.render(text, file)
    return read_document(rendered, file, rendered=rendered != text)
