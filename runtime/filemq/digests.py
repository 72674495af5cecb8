"""SHA-1 digests of files, and the state of the file that each belongs to.

A digest is kept with the file's size, modification time and inode, and the time when the system last noted a change
of any of these; while all are the same, the file is not read again. The last of them cannot be put back, as copying
programs do with the modification time. The trap: file systems count time in steps of some milliseconds, old ones of
two seconds, so a file that is written again right after it was read may keep its times. A digest taken so soon after
the last change is `fresh`, and the file is read again when next asked about.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from specwire.runtime.filemq.catalogue import Signature

BLOCK_OCTETS = 1 << 20
TIME_STEP_NS = 50_000_000
SECOND_NS = 1_000_000_000


class UnstableError(Exception):
    """A file changed while it was read."""


class AbandonedError(Exception):
    """Nobody wants to know any more."""


class Digest(NamedTuple):
    """Digest in upper-case hexadecimal, and the state in which the file had it."""

    sha1: str
    signature: Signature
    fresh: bool
    touched_ns: int

    def still_holds(self, state: os.stat_result) -> bool:
        """Tell whether a file in this state needs no reading."""
        return not self.fresh and self.signature == sign(state) and self.touched_ns == state.st_ctime_ns


def sign(state: os.stat_result) -> Signature:
    """Return the part of a file's state that changes when its content does."""
    return Signature(state.st_size, state.st_mtime_ns, state.st_ino)


def new_sha1() -> hashlib._Hash:
    """Return a SHA-1 that identifies content; FILEMQ claims no security for it."""
    return hashlib.sha1(usedforsecurity=False)


def digest_file(descriptor: int, is_abandoned: Callable[[], bool] = lambda: False) -> Digest:
    """Return the digest of an open file, from its start.

    Raises:
        UnstableError: the file changed meanwhile.
        AbandonedError: `is_abandoned`, which is asked now and then, returned True.
        OSError: the file cannot be read.
    """
    state = os.fstat(descriptor)
    before = sign(state)
    sha1 = new_sha1()
    buffer = memoryview(bytearray(min(BLOCK_OCTETS, before.size or 1)))
    offset = 0
    while count := os.preadv(descriptor, [buffer], offset):
        sha1.update(buffer[:count])
        offset += count
        if is_abandoned():
            raise AbandonedError
        if sign(os.fstat(descriptor)) != before:
            raise UnstableError  # it is being written: the rest, of gigabytes perhaps, need not be read
    read_at_ns = time.time_ns()
    if sign(os.fstat(descriptor)) != before or offset != before.size:
        raise UnstableError
    fresh = abs(read_at_ns - before.mtime_ns) < time_step_ns(before.mtime_ns)
    return Digest(sha1.hexdigest().upper(), before, fresh, state.st_ctime_ns)


def time_step_ns(mtime_ns: int) -> int:
    """Return how long a file's time may stand still: a full second points to a file system that knows no others."""
    return TIME_STEP_NS if mtime_ns % SECOND_NS else 2 * SECOND_NS
