"""The unfinished file of an inbox: written aside, its digest taken as it grows.

There is one at a time, because a server sends one file at a time; files that are whole and not in their places
yet lie beside it. The names of all begin in the same way, so that whatever a kill leaves behind is found and
removed by the next run.
"""

from __future__ import annotations

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from specwire.runtime.filemq.digests import new_sha1

UNFINISHED = "unfinished"

ASIDE_OCTETS = 64 * 1024
"""From this size on, a digest is taken in a thread while the disk is written to."""


class Whole(NamedTuple):
    """A file that is whole: where it lies in the folder, open still, and its digest."""

    leaf: str
    descriptor: int
    sha1: str


class Part:
    """The one unfinished file, with its digest as far as it goes."""

    def __init__(self, folder: int) -> None:
        self.name: str | None = None
        self.size = 0
        self._folder = folder
        self._number = 0
        self._descriptor = -1
        self._sha1 = new_sha1()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="filemq-digest")
        for leaf in os.listdir(folder):
            if leaf.startswith(UNFINISHED):
                os.unlink(leaf, dir_fd=folder)

    @property
    def sha1(self) -> str:
        """Digest of what was written, in upper-case hexadecimal."""
        return self._sha1.hexdigest().upper()

    def begin(self, name: str) -> None:
        """Create an empty unfinished file; raises OSError."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._number += 1
        self._descriptor = os.open(self._leaf, flags, 0o666, dir_fd=self._folder)
        self.name, self.size, self._sha1 = name, 0, new_sha1()

    def write(self, offset: int, chunk: bytes) -> None:
        """Append a chunk; raises OSError, also where the disk took only a part of it."""
        if offset != self.size:
            raise OSError(errno.EINVAL, f"a chunk at offset {offset} follows {self.size} octets")
        if len(chunk) < ASIDE_OCTETS:
            self._sha1.update(chunk)
            write_octets(self._descriptor, chunk)
        else:
            digesting = self._thread.submit(self._sha1.update, chunk)
            try:
                write_octets(self._descriptor, chunk)
            finally:
                digesting.result()
        self.size += len(chunk)

    def finish(self) -> Whole:
        """Hand the file over: who gets it closes it."""
        whole = Whole(self._leaf, self._descriptor, self.sha1)
        self._descriptor, self.name = -1, None
        return whole

    def discard(self) -> None:
        """Remove the unfinished file, where there is one."""
        if self._descriptor < 0:
            return
        os.close(self._descriptor)
        self._descriptor, self.name = -1, None
        with suppress(FileNotFoundError):
            os.unlink(self._leaf, dir_fd=self._folder)

    def close(self) -> None:
        """Remove the unfinished file, and end the thread."""
        self.discard()
        self._thread.shutdown()

    @property
    def _leaf(self) -> str:
        return f"{UNFINISHED}-{self._number}"


def write_octets(descriptor: int, octets: bytes) -> None:
    """Write all of `octets` at the end of an open file; raises OSError, also where only a part found room."""
    view = memoryview(octets)
    while view:
        view = view[os.write(descriptor, view) :]
