"""The unfinished file of an inbox: written aside, its digest taken as it grows, or when it is asked for.

There is one at a time, because a server sends one file at a time; files that are whole and not in their places
yet lie beside it. The names of all begin in the same way, so that whatever a kill leaves behind is found by the
next run: it goes on with the one that was to be kept (`leftover`), and removes the rest. What an earlier run wrote
is read again before anything is added, so a digest is always that of the octets on the disk.
"""

from __future__ import annotations

import errno
import hashlib
import os
from contextlib import suppress
from typing import NamedTuple

from specwire.runtime.filemq.digests import BLOCK_OCTETS, new_sha1
from specwire.runtime.filemq.leftover import find_leftover, leaf_of, remove_note, write_note


class Whole(NamedTuple):
    """A file that is whole: where it lies in the folder, open still, and its digest.

    Attributes:
        verified: the digest was taken of what lies there, and announced too.
    """

    leaf: str
    descriptor: int
    sha1: str
    verified: bool


class Part:
    """The one unfinished file, with its digest as far as it goes.

    Args:
        folder: descriptor of the folder in which it lies.
        digesting: take the digest of what comes; without it, what is on the disk is read when the digest is asked for.

    Attributes:
        name: the virtual name of the file, None where there is no unfinished one.
        size: octets that were written.
        kept: it stays where it is when the inbox is closed, or the process killed.
    """

    def __init__(self, folder: int, *, digesting: bool = True) -> None:
        self.name: str | None = None
        self.size = 0
        self.kept = False
        self._folder, self._digesting = folder, digesting
        self._number = 0
        self._descriptor = -1
        self._sha1: hashlib._Hash | None = None  # None where it was not taken of all that was written
        self._noted: list[int] = []
        self._take_up()

    @property
    def sha1(self) -> str:
        """Digest of what was written, in upper-case hexadecimal; raises OSError where it is to be read first."""
        return (self._sha1 or self._read_again()).hexdigest().upper()

    def begin(self, name: str) -> None:
        """Create an empty unfinished file; raises OSError."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._number += 1
        self._descriptor = os.open(leaf_of(self._number), flags, 0o666, dir_fd=self._folder)
        self.name, self.size = name, 0
        self._sha1 = new_sha1() if self._digesting else None

    def write(self, offset: int, chunk: bytes) -> None:
        """Append a chunk; raises OSError, also where the disk took only a part of it."""
        if self._digesting and self._sha1 is None:
            self._read_again()
        if offset != self.size:
            raise OSError(errno.EINVAL, f"a chunk at offset {offset} follows {self.size} octets")
        write_octets(self._descriptor, chunk)
        if self._sha1 is not None:
            self._sha1.update(chunk)
        self.size += len(chunk)

    def keep(self) -> None:
        """Note the name, so that the next run can go on; raises OSError, and then the file is not kept."""
        if not self.kept:
            write_note(self._folder, self._number, self.name or "")
            self.kept = True

    def finish(self, sha1: str, *, verified: bool) -> Whole:
        """Hand the file over, whose digest is `sha1`: who gets it closes it, and calls `forget_whole` when it is in its place."""
        whole = Whole(leaf_of(self._number), self._descriptor, sha1, verified)
        if self.kept:
            self._noted.append(self._number)
        self._leave()
        return whole

    def forget_whole(self) -> None:
        """All that was handed over is in its place, or given up: the notes are of no use any more."""
        while self._noted:
            remove_note(self._folder, self._noted.pop())

    def discard(self) -> None:
        """Remove the unfinished file, where there is one."""
        if self._descriptor < 0:
            return
        os.close(self._descriptor)
        with suppress(FileNotFoundError):
            os.unlink(leaf_of(self._number), dir_fd=self._folder)
        if self.kept:
            remove_note(self._folder, self._number)
        self._leave()

    def close(self) -> None:
        """Remove the unfinished file unless it is kept."""
        if self.kept:
            os.close(self._descriptor)
            self._leave()
        else:
            self.discard()

    def _leave(self) -> None:
        self._descriptor, self.name, self.kept, self._sha1 = -1, None, False, None

    def _take_up(self) -> None:
        """Open what an earlier run has kept."""
        left = find_leftover(self._folder)
        if left is not None:
            flags = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(leaf_of(left.number), flags, dir_fd=self._folder)
            self._number, self.name, self.size = left.number, left.name, left.size
            self.kept = True

    def _read_again(self) -> hashlib._Hash:
        """Take the digest of what is on the disk, whose length is the size from now on."""
        sha1, offset = new_sha1(), 0
        while block := os.pread(self._descriptor, BLOCK_OCTETS, offset):
            sha1.update(block)
            offset += len(block)
        self.size = offset
        self._sha1 = sha1 if self._digesting else None
        return sha1


def write_octets(descriptor: int, octets: bytes) -> None:
    """Write all of `octets` at the end of an open file; raises OSError, also where only a part found room."""
    view = memoryview(octets)
    while view:
        view = view[os.write(descriptor, view) :]
