"""SHA-1 digests of files, each with the state of the file that it belongs to.

The state is the file's size, modification time, inode, and the time of the last change of any of
these (ctime). While all are the same, the file is not read again. Programs that copy files set the
modification time, but cannot set ctime.

File systems count time in steps of some milliseconds, old ones of two seconds. So a file that is
written again right after it was read may keep its times. A digest that was taken so soon after the
last change is `fresh`: the file is read again when its digest is needed next.
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
SHA1_OF_NOTHING = "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709"
PERMISSIONS = 0o777
"""Bits of a mode that are published and applied: no set-user-id, set-group-id or sticky bit."""


class UnstableError(Exception):
    """A file changed while it was read."""


class AbandonedError(Exception):
    """The result is not needed any more."""


class Digest(NamedTuple):
    """Digest of a file, in upper-case hexadecimal, and the state in which the file had it.

    `touched_ns` is ctime. `mode` has the permission bits, None if they are not known.
    """

    sha1: str
    signature: Signature
    fresh: bool
    touched_ns: int
    mode: int | None = None

    def still_holds(self, state: os.stat_result) -> bool:
        """Return whether a file in this state has this digest without being read."""
        return not self.fresh and self.signature == sign(state) and self.touched_ns == state.st_ctime_ns


def sign(state: os.stat_result) -> Signature:
    """Return the part of a file's state that changes when its content does."""
    return Signature(state.st_size, state.st_mtime_ns, state.st_ino)


def mode_of(state: os.stat_result) -> int:
    """Return the permission bits; see `PERMISSIONS`."""
    return state.st_mode & PERMISSIONS


def new_sha1() -> hashlib._Hash:
    """Return a SHA-1 that identifies content. FILEMQ claims no security for it."""
    return hashlib.sha1(usedforsecurity=False)


def digest_file(descriptor: int, is_abandoned: Callable[[], bool] = lambda: False) -> Digest:
    """Return the digest of an open file, from its start.

    Raises:
        UnstableError: the file changed meanwhile.
        AbandonedError: `is_abandoned`, which is called after each block, returned True.
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
            raise UnstableError  # it is being written: do not read the rest, which may be gigabytes
    read_at_ns = time.time_ns()
    if sign(os.fstat(descriptor)) != before or offset != before.size:
        raise UnstableError
    fresh = abs(read_at_ns - before.mtime_ns) < time_step_ns(before.mtime_ns)
    return Digest(sha1.hexdigest().upper(), before, fresh, state.st_ctime_ns, mode_of(state))


def time_step_ns(mtime_ns: int) -> int:
    """Return how long a file's time may stay the same.

    A time of whole seconds means a file system that may have no finer ones.
    """
    return TIME_STEP_NS if mtime_ns % SECOND_NS else 2 * SECOND_NS
