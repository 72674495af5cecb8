"""Reading of published files for the server's engine: the chunks it sends, and digests of what clients hold.

A file is opened for each request, and must be in the state that the list of files has when the octets have been
read. If this proves nothing (the digest was computed just after a change, or something happened to the file that
its size and times do not show), the SHA-1 of all octets must be the announced one before the last chunk is sent.
So a client never gets the end of a file that is a mixture of two versions.

Small chunks are read at once. Others are read in a thread, and so is the end of a large file, which may have to be
digested. The beginning of a file may have gigabytes: its digest is computed piece by piece, so that the checks of
many clients take turns, no chunk waits for one, and a cancelled one ends with the current piece.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from specwire.runtime.containment import ContainmentError
from specwire.runtime.filemq.catalogue import Entry
from specwire.runtime.filemq.digests import BLOCK_OCTETS, UnstableError, digest_file, new_sha1, sign
from specwire.runtime.filemq.requests import CheckPart, Chunk, ReadChunk, ReadingState

AT_ONCE_OCTETS = 32 * 1024
"""Up to this size a read from the page cache takes less time than the way to a thread and back."""

PIECE_OCTETS = 16 * BLOCK_OCTETS
READING_THREADS = 4
CHECKING_THREADS = 2


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

    async def read(self, request: ReadChunk) -> Chunk | None:
        """Return the chunk; None after `look_again` if the file has changed."""
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

    def read_now(self, request: ReadChunk) -> Chunk:
        """Return the chunk; raises FileChangedError."""
        entry, offset, size = request.entry, request.offset, request.size
        with self._opened(entry) as descriptor:
            state = request.state
            if state is None:
                sha1 = new_sha1() if entry.fresh and not offset else None
                state = ReadingState(sha1, os.fstat(descriptor).st_ctime_ns)
            octets = os.pread(descriptor, size, offset)
            if state.sha1 is not None:
                state.sha1.update(octets)
            found = os.fstat(descriptor)
            if len(octets) != size or sign(found) != entry.signature:
                raise FileChangedError
            if offset + size == entry.size and not _has_digest(descriptor, entry, state, found.st_ctime_ns):
                raise FileChangedError
            return Chunk(octets, state)

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


def _has_digest(descriptor: int, entry: Entry, state: ReadingState, touched_ns: int) -> bool:
    """Return whether all octets of the file are those that were announced."""
    if state.sha1 is not None:
        return bool(state.sha1.hexdigest().upper() == entry.sha1)
    if touched_ns == state.touched_ns and not entry.fresh:
        return True
    try:  # it was renamed, or written with its time put back; or it is fresh, and sent from the middle
        return digest_file(descriptor).sha1 == entry.sha1
    except UnstableError:
        return False
