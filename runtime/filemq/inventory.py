"""What an inbox holds: the files under a path and their digests, read only where the journal does not know them."""

from __future__ import annotations

import os
import stat

from specwire.runtime.containment import ContainmentError, open_folder, stat_leaf
from specwire.runtime.filemq.containment import open_file, parent_of, walk_files
from specwire.runtime.filemq.digests import UnstableError, digest_file
from specwire.runtime.filemq.journal import Journal, Record
from specwire.runtime.filemq.names import LONGEST_NAME_OCTETS, fault_in_name


class Inventory:
    """The files of one inbox.

    Args:
        root: descriptor of the inbox.
    """

    def __init__(self, root: int, journal: Journal) -> None:
        self._root, self._journal = root, journal

    def take(self, path: str) -> dict[str, str]:
        """Return the digests of the files under `path` by name."""
        held: dict[str, str] = {}
        for name, state in self._files_under(path):
            if not stat.S_ISREG(state.st_mode) or fault_in_name(name, LONGEST_NAME_OCTETS) is not None:
                continue
            record = self._journal.find(name, state) or self._digest(name)
            if record is not None:
                held[name] = record.sha1
        return held

    def _files_under(self, path: str) -> list[tuple[str, os.stat_result]]:
        if path == "/":
            return list(walk_files(self._root, "/", LONGEST_NAME_OCTETS))
        try:
            with parent_of(self._root, path) as (folder, leaf):
                state = stat_leaf(folder, leaf)
                if state is None or stat.S_ISREG(state.st_mode):
                    return [] if state is None else [(path, state)]
                inner = open_folder(folder, [leaf])
        except (FileNotFoundError, ContainmentError):
            return []
        try:
            return list(walk_files(inner, f"{path}/", LONGEST_NAME_OCTETS))
        finally:
            os.close(inner)

    def _digest(self, name: str) -> Record | None:
        """Read a file that the journal does not know in its present state."""
        try:
            descriptor = open_file(self._root, name)
        except (OSError, ContainmentError):
            return None
        try:
            digest = digest_file(descriptor)
        except (OSError, UnstableError):
            return None
        finally:
            os.close(descriptor)
        known = self._journal.find(name)
        record = Record(digest.sha1, digest.signature, received=known is not None and known.received)
        if not digest.fresh:
            self._journal.put(name, record)
        return record
