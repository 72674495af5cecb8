"""Sending to one client: credit, the queue of changes, and the file under way.

Rules carried out here, from FILEMQ v2:

- content is sent against credit, exact to the octet: a chunk is cut to what is left;
- chunks of one file are consecutive: between the first chunk and the end of a file nothing else is sent. A
  file that changes meanwhile begins again at offset 0, and is followed by others unfinished only where it has
  done so `MAX_RESTARTS` times and others wait.

The specification has no end of file. Here it is an empty chunk at offset = size, and the headers of every chunk
carry `size` and `sha-1`, so that the client can check what it got.

At most one chunk is being read for a client at any time, and after about `BATCH` commands the socket is asked
whether the client takes them, so that a slow client costs little memory.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from specwire.generated.filemq import Cheezburger, Operation
from specwire.runtime.filemq.actions import Abandon, Pause, ReadChunk, Report, Send, ServerAction
from specwire.runtime.filemq.catalogue import Entry, Listing
from specwire.runtime.filemq.dialect import Command
from specwire.runtime.filemq.events import FileSent
from specwire.runtime.filemq.sendqueue import SendQueue

MAX_CREDIT = 2**64 - 1
BATCH = 32
MAX_RESTARTS = 3


class Transfer(msgspec.Struct):
    """A file on its way; `offset` counts the octets sent."""

    number: int
    entry: Entry
    restarts: int = 0
    offset: int = 0
    reading: bool = False


class Outflow:
    """What goes to one client, in order.

    Args:
        send: wraps a command for this client, and notes that it was sent.
        number: returns a transfer number that was never used before.
    """

    def __init__(
        self,
        peer: bytes,
        files: Listing,
        *,
        chunk_octets: int,
        send: Callable[[Command, float], Send],
        number: Callable[[], int],
    ) -> None:
        self.credit = 0
        self._peer, self._files, self._chunk_octets = peer, files, chunk_octets
        self._send, self._number = send, number
        self._queue = SendQueue()
        self._transfer: Transfer | None = None
        self._sequence = 0
        self._paused = False

    def grant(self, credit: int) -> bool:
        """Add credit; False, and nothing added, where the sum does not fit 64 bits."""
        if credit > MAX_CREDIT - self.credit:
            return False
        self.credit += credit
        return True

    def queue(self, name: str, operation: Operation) -> None:
        """Send this change later; a file that is under way already is not queued again."""
        if self._transfer is None or self._transfer.entry.name != name:
            self._queue.put(name, operation)

    def stop(self) -> list[ServerAction]:
        """Drop everything."""
        self._queue = SendQueue()
        return self._abandon()

    def publish(self, entry: Entry, now: float) -> list[ServerAction]:
        """A file is new or has new content."""
        transfer = self._transfer
        if transfer is None or transfer.entry.name != entry.name:
            self._queue.put(entry.name, Operation.CREATE)
            return self.pump(now)
        return [] if entry.has_content_of(transfer.entry) else self._restart(transfer, entry, now)

    def withdraw(self, name: str, now: float) -> list[ServerAction]:
        """A file is gone; where it is under way, its deletion comes next."""
        if self._transfer is None or self._transfer.entry.name != name:
            self._queue.put(name, Operation.DELETE)
            return self.pump(now)
        self._queue.put_first(name, Operation.DELETE)
        return [*self._abandon(), *self.pump(now)]

    def pump(self, now: float) -> list[ServerAction]:
        """Send what credit, the socket and the file under way allow."""
        actions: list[ServerAction] = []
        while not self._paused:
            step = self._send_next(now)
            if not step:
                break
            actions += step
            if len(actions) >= BATCH:
                self._paused = True
                actions.append(Pause(self._peer))
        return actions

    def resume(self, now: float) -> list[ServerAction]:
        """The socket has taken what was sent before `Pause`."""
        self._paused = False
        return self.pump(now)

    def chunk_read(self, number: int, chunk: bytes, now: float) -> list[ServerAction]:
        """A chunk that was asked for is here; one of an abandoned transfer is ignored."""
        transfer = self._transfer
        if transfer is None or transfer.number != number:
            return []
        action = self._send(self._chunk(transfer.entry, transfer.offset, chunk), now)
        transfer.offset += len(chunk)
        transfer.reading = False
        self.credit -= len(chunk)
        return [action, *self.pump(now)]

    def file_moved(self, number: int, now: float) -> list[ServerAction]:
        """The file under way is not what was announced any more: begin again with what there is now."""
        transfer = self._transfer
        if transfer is None or transfer.number != number:
            return []
        entry = self._files.find(transfer.entry.name)
        if entry is None:
            return self.withdraw(transfer.entry.name, now)
        return self._restart(transfer, entry, now)

    def _send_next(self, now: float) -> list[ServerAction]:
        transfer = self._transfer
        if transfer is None:
            return self._begin_next(now)
        entry = transfer.entry
        left = entry.size - transfer.offset
        if left == 0:
            self._transfer = None
            end = self._send(self._chunk(entry, transfer.offset, b""), now)
            return [end, Report(FileSent(entry.name, entry.size, self._peer.hex()))]
        size = min(left, self.credit, self._chunk_octets)
        if transfer.reading or size == 0:
            return []
        transfer.reading = True
        return [ReadChunk(self._peer, transfer.number, entry.name, transfer.offset, size)]

    def _begin_next(self, now: float) -> list[ServerAction]:
        while (change := self._queue.take()) is not None:
            name, operation = change
            if operation is Operation.DELETE:
                return [self._send(self._cheezburger(name, operation, 0, (), b""), now)]
            entry = self._files.find(name)
            if entry is not None:  # a file that went meanwhile has its deletion in the queue
                self._transfer = Transfer(self._number(), entry)
                return self._send_next(now)
        return []

    def _restart(self, transfer: Transfer, entry: Entry, now: float) -> list[ServerAction]:
        actions = self._abandon()
        if transfer.restarts < MAX_RESTARTS or not self._queue:
            self._transfer = Transfer(self._number(), entry, restarts=transfer.restarts + 1)
        else:
            self._queue.put(entry.name, Operation.CREATE)
        return [*actions, *self.pump(now)]

    def _abandon(self) -> list[ServerAction]:
        transfer, self._transfer = self._transfer, None
        return [] if transfer is None else [Abandon(self._peer, transfer.number)]

    def _chunk(self, entry: Entry, offset: int, chunk: bytes) -> Cheezburger:
        headers = (("size", str(entry.size)), ("sha-1", entry.sha1))
        return self._cheezburger(entry.name, Operation.CREATE, offset, headers, chunk)

    def _cheezburger(
        self, name: str, operation: Operation, offset: int, headers: tuple[tuple[str, str], ...], chunk: bytes
    ) -> Cheezburger:
        sequence = self._sequence
        self._sequence += 1
        return Cheezburger(
            sequence=sequence,
            operation=int(operation),
            filename=name,
            offset=offset,
            headers=headers,
            chunk=chunk,
        )
