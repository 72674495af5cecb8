"""The transfers that are being read, one for each client: small reads at once, large ones in a thread.

A transfer that is abandoned while a thread reads it is closed when the thread is done, never under its hands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from specwire.runtime.filemq.actions import ReadChunk
from specwire.runtime.filemq.catalogue import Entry
from specwire.runtime.filemq.publication import Publication
from specwire.runtime.filemq.reading import FileMovedError, TransferReader

AT_ONCE_OCTETS = 32 * 1024
"""Up to this size a read from the page cache takes less time than the way to a thread and back."""

THREADS = 4


class _Transfer:
    def __init__(self, reader: TransferReader) -> None:
        self.reader = reader
        self.busy = False
        self.abandoned = False


class Readers:
    """Performs `ReadChunk`.

    Args:
        find: returns the publication and the entry of a name, None where it is not published any more.
        on_read: called with the action and the octets, None where the file is not what was announced.
    """

    def __init__(
        self,
        find: Callable[[str], tuple[Publication, Entry] | None],
        on_read: Callable[[ReadChunk, bytes | None], None],
    ) -> None:
        self._find, self._on_read = find, on_read
        self._transfers: dict[int, _Transfer] = {}
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="filemq-read")

    def read(self, action: ReadChunk) -> None:
        """Read what `action` asks for; `on_read` is called once, before this returns, or later."""
        transfer = self._transfers.get(action.transfer) or self._open(action)
        if transfer is None:
            self._on_read(action, None)
        elif action.size <= AT_ONCE_OCTETS:
            self._on_read(action, self._read(transfer, action.size))
            self._tidy(action.transfer)
        else:
            transfer.busy = True
            reading = asyncio.get_running_loop().run_in_executor(
                self._threads, self._read, transfer, action.size
            )
            reading.add_done_callback(partial(self._take, action, transfer))

    def abandon(self, number: int) -> None:
        """Read no more of this transfer."""
        transfer = self._transfers.get(number)
        if transfer is not None:
            transfer.abandoned = True
            self._tidy(number)

    async def close(self) -> None:
        """Wait for the threads, and close every file."""
        await asyncio.to_thread(self._threads.shutdown)
        for transfer in self._transfers.values():
            transfer.reader.close()
        self._transfers.clear()

    def _open(self, action: ReadChunk) -> _Transfer | None:
        found = self._find(action.name)
        if found is None:
            return None
        transfer = self._transfers[action.transfer] = _Transfer(TransferReader(*found, action.offset))
        return transfer

    def _read(self, transfer: _Transfer, size: int) -> bytes | None:
        try:
            return transfer.reader.read(size)
        except FileMovedError:
            transfer.abandoned = True
            return None

    def _take(self, action: ReadChunk, transfer: _Transfer, reading: asyncio.Future[bytes | None]) -> None:
        transfer.busy = False
        if not reading.cancelled():
            self._on_read(action, reading.result())
        self._tidy(action.transfer)

    def _tidy(self, number: int) -> None:
        transfer = self._transfers.get(number)
        if transfer is not None and not transfer.busy and (transfer.abandoned or transfer.reader.complete):
            transfer.reader.close()
            del self._transfers[number]
