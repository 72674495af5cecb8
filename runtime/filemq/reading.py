"""Reading of files: SHA-1 digests, and the content that a server's engine requests.

The state of a file is its size, modification time, inode, and the time of the last change of any of
these (ctime). While all are the same, the file is not read again. Programs that copy files set the
modification time, but cannot set ctime. File systems count time in steps of some milliseconds, old
ones of two seconds, so a file that is written again right after it was read may keep its times. A
digest that was taken so soon after the last change is `fresh`: the file is read again when its
digest is needed next.

`FileReader` opens a file for each request. The file must be in the state that the catalogue has
when the octets have been read. If this proves nothing (the digest is `fresh`, or something happened
to the file that its size and times do not show), the file is read again before the last chunk is
sent, and must have the announced SHA-1. So a client never gets the end of a file that is a mixture
of two versions.

Small chunks are read at once. Others are read in a thread, and so is the end of a large file, which
may have to be digested. The beginning of a file may have gigabytes: its digest is computed piece by
piece, so that the checks of many clients take turns, and a cancelled one ends with the current
piece.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import NamedTuple

from specwire.runtime.containment import ContainmentError
from specwire.runtime.filemq.catalogue import CheckPart, Entry, ReadChunk, Signature

BLOCK_OCTETS = 1 << 20
TIME_STEP_NS = 50_000_000
SECOND_NS = 1_000_000_000
SHA1_OF_NOTHING = "DA39A3EE5E6B4B0D3255BFEF95601890AFD80709"
PERMISSIONS = 0o777
"""Bits of a mode that are published and applied: no set-user-id, set-group-id or sticky bit."""

AT_ONCE_OCTETS = 32 * 1024
"""Up to this size a read from the page cache takes less time than the way to a thread and back."""

PIECE_OCTETS = 16 * BLOCK_OCTETS
READING_THREADS = 4
CHECKING_THREADS = 2


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


class FileChangedError(Exception):
    """A published file is not what the list of files says any more."""


class FileReader:
    """Handles `ReadChunk` and `CheckPart`.

    Args:
        open_file: opens a published file by its name; raises OSError or ContainmentError.
        look_again: updates the list of files about a name whose file has changed.
    """

    def __init__(self, open_file: Callable[[str], int], look_again: Callable[[str], Awaitable[None]]) -> None:
        self._open_file, self._look_again = open_file, look_again
        self._reading = ThreadPoolExecutor(READING_THREADS, thread_name_prefix="filemq-read")
        self._checking = ThreadPoolExecutor(CHECKING_THREADS, thread_name_prefix="filemq-check")

    async def read(self, request: ReadChunk) -> bytes | None:
        """Return the octets; None after `look_again` if the file has changed."""
        try:
            # The last chunk of a large file may need its digest.
            is_last = request.offset + request.size == request.entry.size
            if max(request.size, request.entry.size if is_last else 0) <= AT_ONCE_OCTETS:
                return self.read_now(request)
            return await asyncio.get_running_loop().run_in_executor(self._reading, self.read_now, request)
        except FileChangedError:
            await self._look_again(request.entry.name)
            return None

    async def check(self, request: CheckPart) -> str | None:
        """Return the digest; None after `look_again` if the file has changed."""
        loop, sha1 = asyncio.get_running_loop(), new_sha1()
        try:
            for offset in range(0, request.size, PIECE_OCTETS):
                end = min(offset + PIECE_OCTETS, request.size)
                await loop.run_in_executor(
                    self._checking, self._update, sha1, request.entry, range(offset, end)
                )
        except FileChangedError:
            await self._look_again(request.entry.name)
            return None
        return sha1.hexdigest().upper()

    async def close(self) -> None:
        """Wait for the threads."""
        for threads in (self._reading, self._checking):
            await asyncio.to_thread(threads.shutdown, cancel_futures=True)

    def read_now(self, request: ReadChunk) -> bytes:
        """Return the octets; raises FileChangedError."""
        entry, offset, size = request.entry, request.offset, request.size
        with self._opened(entry) as descriptor:
            octets = os.pread(descriptor, size, offset)
            found = os.fstat(descriptor)
            if len(octets) != size or sign(found) != entry.signature:
                raise FileChangedError
            is_proved = found.st_ctime_ns == entry.touched_ns and not entry.fresh
            if offset + size == entry.size and not is_proved and not _has_digest(descriptor, entry.sha1):
                raise FileChangedError
            return octets

    def _update(self, sha1: hashlib._Hash, entry: Entry, piece: range) -> None:
        """Add a piece of a file to a digest; raises FileChangedError."""
        with self._opened(entry) as descriptor:
            for offset in range(piece.start, piece.stop, BLOCK_OCTETS):
                size = min(BLOCK_OCTETS, piece.stop - offset)
                block = os.pread(descriptor, size, offset)
                if len(block) != size:
                    raise FileChangedError
                sha1.update(block)
            if sign(os.fstat(descriptor)) != entry.signature:
                raise FileChangedError

    @contextmanager
    def _opened(self, entry: Entry) -> Iterator[int]:
        """Open a file for the block; raises FileChangedError, also for errors of the disk in the block."""
        try:
            descriptor = self._open_file(entry.name)
            try:
                yield descriptor
            finally:
                os.close(descriptor)
        except (OSError, ContainmentError) as error:
            raise FileChangedError(str(error)) from error


def _has_digest(descriptor: int, sha1: str) -> bool:
    """Return whether all octets of the file are those that were announced."""
    try:
        return digest_file(descriptor).sha1 == sha1
    except UnstableError:
        return False
