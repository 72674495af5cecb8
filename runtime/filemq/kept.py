"""Copies of files that a server had a client delete, for dialects whose servers delete what is still there.

A file is moved to ``.specwire-inbox/kept`` and stays there until it comes again or `KEPT_S` have passed. It lies
there under its virtual name with ``%2F`` for each further slash: one flat folder, so that a file and a folder of
the same name are never in each other's way.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress

from specwire.runtime.containment import open_folder
from specwire.runtime.filemq.names import KEPT

KEPT_S = 7 * 24 * 3600.0
MAX_LEAF_OCTETS = 255
"""What file systems allow for one component of a path."""


class Kept:
    """The folder of copies below `own`, a descriptor of the inbox's own folder; raises OSError."""

    def __init__(self, own: int) -> None:
        self._folder = open_folder(own, [KEPT], create=True)
        self._expire(time.time())

    def put(self, folder: int, leaf: str, name: str) -> None:
        """Move the file `leaf` of an open folder here; raises OSError, and then it is where it was."""
        os.rename(leaf, flat_name(name), src_dir_fd=folder, dst_dir_fd=self._folder)

    def forget(self, name: str) -> None:
        """The file has come again: its copy is of no use any more."""
        with suppress(FileNotFoundError):
            os.unlink(flat_name(name), dir_fd=self._folder)

    def close(self) -> None:
        """Close the folder."""
        os.close(self._folder)

    def _expire(self, now: float) -> None:
        with os.scandir(self._folder) as entries:
            # A rename sets the time of the last change of state, on every file system we know.
            old = [e.name for e in entries if e.stat(follow_symlinks=False).st_ctime < now - KEPT_S]
        for leaf in old:
            os.unlink(leaf, dir_fd=self._folder)


def flat_name(name: str) -> str:
    """Return the one component under which the file with this virtual name is kept."""
    flat = name[1:].replace("%", "%25").replace("/", "%2F")
    octets = flat.encode()
    if len(octets) <= MAX_LEAF_OCTETS:
        return flat
    digest = hashlib.sha1(octets, usedforsecurity=False).hexdigest()
    return f"{digest}-{octets[-(MAX_LEAF_OCTETS - 41) :].decode(errors='ignore')}"
