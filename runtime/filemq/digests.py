"""SHA-1 digests of files, and the state of the file that each belongs to.

A digest is kept with the file's size, modification time and inode; while these are the same, the file is not
read again. The trap: file systems count time in steps of some milliseconds, so a file that is written again
right after it was read may keep its time. A digest taken so soon after the last change is `fresh`, and the file
is read again when next asked about.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import NamedTuple

from specwire.runtime.filemq.catalogue import Signature

BLOCK_OCTETS = 1 << 20
TIME_STEP_NS = 50_000_000


class UnstableError(Exception):
    """A file changed while it was read."""


class Digest(NamedTuple):
    """Digest in upper-case hexadecimal, and the state in which the file had it."""

    sha1: str
    signature: Signature
    fresh: bool

    def still_holds(self, state: os.stat_result) -> bool:
        """Tell whether a file in this state needs no reading."""
        return not self.fresh and self.signature == sign(state)


def sign(state: os.stat_result) -> Signature:
    """Return the part of a file's state that changes when its content does."""
    return Signature(state.st_size, state.st_mtime_ns, state.st_ino)


def new_sha1() -> hashlib._Hash:
    """Return a SHA-1 that identifies content; FILEMQ claims no security for it."""
    return hashlib.sha1(usedforsecurity=False)


def digest_file(descriptor: int) -> Digest:
    """Return the digest of an open file, from its start; raises UnstableError and OSError."""
    before = sign(os.fstat(descriptor))
    sha1 = new_sha1()
    buffer = memoryview(bytearray(min(BLOCK_OCTETS, before.size or 1)))
    offset = 0
    while count := os.preadv(descriptor, [buffer], offset):
        sha1.update(buffer[:count])
        offset += count
    read_at_ns = time.time_ns()
    if sign(os.fstat(descriptor)) != before or offset != before.size:
        raise UnstableError
    fresh = abs(read_at_ns - before.mtime_ns) < TIME_STEP_NS
    return Digest(sha1.hexdigest().upper(), before, fresh)
