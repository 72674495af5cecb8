"""The unfinished file of an inbox: written aside, its digest taken as it grows.

There is one at a time, because a server sends one file at a time. Its name is the same for every file, so that
whatever a kill leaves behind is found and removed by the next run.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from specwire.runtime.filemq.digests import new_sha1

UNFINISHED = "unfinished"


class Part:
    """The one unfinished file, with its digest as far as it goes."""

    def __init__(self, folder: int) -> None:
        self.name: str | None = None
        self.size = 0
        self._folder = folder
        self._descriptor = -1
        self._sha1 = new_sha1()
        self.discard()

    @property
    def sha1(self) -> str:
        """Digest of what was written, in upper-case hexadecimal."""
        return self._sha1.hexdigest().upper()

    def begin(self, name: str) -> None:
        """Create an empty unfinished file; raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._descriptor = os.open(UNFINISHED, flags, 0o666, dir_fd=self._folder)
        self.name, self.size, self._sha1 = name, 0, new_sha1()

    def write(self, offset: int, chunk: bytes) -> None:
        """Append a chunk; raises OSError, also where the disk took only a part of it."""
        if offset != self.size:
            raise OSError(errno.EINVAL, f"a chunk at offset {offset} follows {self.size} octets")
        write_octets(self._descriptor, chunk)
        self._sha1.update(chunk)
        self.size += len(chunk)

    def finish(self, *, sync: bool) -> os.stat_result:
        """Close the file and return its state."""
        if sync:
            os.fsync(self._descriptor)
        state = os.fstat(self._descriptor)
        self._close()
        return state

    def discard(self) -> None:
        """Remove the unfinished file, from an earlier run too."""
        self._close()
        with suppress(FileNotFoundError):
            os.unlink(UNFINISHED, dir_fd=self._folder)

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = -1
        self.name = None


def write_octets(descriptor: int, octets: bytes) -> None:
    """Write all of `octets` at the end of an open file; raises OSError, also where only a part found room."""
    view = memoryview(octets)
    while view:
        view = view[os.write(descriptor, view) :]
