"""The folder of a publication itself: opened once, and looked for again, because the path may come to mean another.

A disk is unmounted, a folder is renamed or deleted, and perhaps made anew. The open descriptor goes on meaning the
old folder, where nothing will ever change again.
"""

from __future__ import annotations

import os
from pathlib import Path

from specwire.runtime.containment import open_root


class Root:
    """One folder.

    Attributes:
        descriptor: its descriptor; the number is the same from `open` to `close`, whatever folder it means.
        replaced: how often another folder was found in place of the one before.
    """

    def __init__(self) -> None:
        self.descriptor = -1
        self.replaced = 0
        self._path = Path()

    def open(self, path: Path) -> None:
        """Open the folder; raises OSError."""
        self.descriptor, self._path = open_root(path), path

    def close(self) -> None:
        """Close it. May be called twice."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def find(self, *, may_be_empty: bool) -> str | None:
        """Open the folder that the path means now; return what is wrong with it, None where nothing is.

        Args:
            may_be_empty: another folder counts although nothing is in it, which a place to mount a disk at is like.
        """
        try:
            found = open_root(self._path)
        except OSError as error:
            return f"cannot be opened ({error.strerror})"
        try:
            # The old folder's number is not given to a new one while it is open here.
            if os.path.samestat(os.fstat(found), os.fstat(self.descriptor)):
                return None
            if not may_be_empty and _is_empty(found):
                return "is another folder now, with nothing in it"
            os.dup2(found, self.descriptor, inheritable=False)  # at once: threads are reading by this number
            self.replaced += 1
            return None
        finally:
            os.close(found)


def _is_empty(folder: int) -> bool:
    with os.scandir(folder) as entries:
        return next(entries, None) is None
