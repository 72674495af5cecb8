"""Sending to one client: credit, the queue of changes, and the file under way.

Rules carried out here, from FILEMQ v2:

- content is sent against credit, exact to the octet: a chunk is cut to what is left;
- chunks of one file are consecutive: between the first chunk and the end of a file nothing else is sent. A
  file that changes meanwhile begins again at offset 0, and is followed by others unfinished only where it has
  done so `MAX_RESTARTS` times and others wait.

The specification has no end of file. Here it is an empty chunk at offset = size, and the headers of every chunk
carry `size` and `sha-1`, so that the client can check what it got.

A client that writes in place (`Outflow.in_place`, see `Habits`) needs more: a file given up half-way is closed by
an empty chunk and deleted, and a new version of a file that it may hold comes after a deletion.

A file of which the client holds the beginning (`resuming`) goes before all others, and from there on where the
beginning is that of the file as it is published; a client that writes in place is sent the whole.

At most one chunk is being read for a client at any time, and after about `BATCH` commands the socket is asked
whether the client takes them, so that a slow client costs little memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from specwire.generated.filemq import Cheezburger, Operation
from specwire.runtime.filemq.actions import Abandon, CheckPart, Pause, ReadChunk, Report, Send, ServerAction
from specwire.runtime.filemq.catalogue import Entry, Listing
from specwire.runtime.filemq.dialect import Command
from specwire.runtime.filemq.events import FileResumed, FileSent
from specwire.runtime.filemq.nameset import NameSet
from specwire.runtime.filemq.progress import UnderWay
from specwire.runtime.filemq.resuming import Beginning
from specwire.runtime.filemq.sendqueue import SendQueue

MAX_CREDIT = 2**64 - 1
BATCH = 32
MAX_RESTARTS = 3


class Transfer(msgspec.Struct):
    """A file on its way; `offset` counts the octets sent, `replaces` tells that an old version may be there.

    `claimed` is what the client says it holds of the file, until that is known to be so or not.
    """

    number: int
    entry: Entry
    replaces: bool
    restarts: int = 0
    offset: int = 0
    reading: bool = False
    claimed: Beginning | None = None


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
        self.octets_sent = 0
        self.in_place = False
        self._peer, self._files, self._chunk_octets = peer, files, chunk_octets
        self._send, self._number = send, number
        self._queue = SendQueue(files)
        self._transfer: Transfer | None = None
        self._claim: tuple[str, Beginning] | None = None
        self._sequence = 0
        self._paused = False

    @property
    def queued(self) -> int:
        """Number of changes that wait behind the file under way."""
        return len(self._queue)

    @property
    def waiting(self) -> int:
        """Number of changes that are kept one by one."""
        return self._queue.by_name

    @property
    def under_way(self) -> UnderWay | None:
        """The file under way, and how much of it was sent."""
        transfer = self._transfer
        if transfer is None:
            return None
        entry = transfer.entry
        return UnderWay(entry.name, transfer.offset, entry.size, self._peer.hex())

    def grant(self, credit: int) -> bool:
        """Add credit; False, and nothing added, where the sum does not fit 64 bits."""
        if credit > MAX_CREDIT - self.credit:
            return False
        self.credit += credit
        return True

    def queue_deletions(self, names: Iterable[str]) -> None:
        """Have these deleted before everything else; a file that is under way already is not queued again.

        None of them is published, so nothing that waits is harmed, and what takes the place of one must wait for it.
        """
        for name in reversed([*names]):
            if self._transfer is None or self._transfer.entry.name != name:
                self._queue.put_first(name, Operation.DELETE)

    def queue_lacking(self, names: NameSet) -> None:
        """Send these files later; the set is the queue's from now on."""
        if self._transfer is not None:
            names.discard(self._transfer.entry.name)
        self._queue.put_lacking(names)

    def queue_rest(self, name: str, claimed: Beginning) -> None:
        """Send the rest of this file before everything else; one that is under way already is not queued again."""
        if self._transfer is None or self._transfer.entry.name != name:
            self._queue.put_first(name, Operation.CREATE)
            self._claim = name, claimed

    def stop(self) -> list[ServerAction]:
        """Drop everything."""
        self._queue = SendQueue(self._files)
        return self._abandon()

    def publish(self, entry: Entry, now: float, *, replaces: bool = False) -> list[ServerAction]:
        """A file is new, or has new content (`replaces`)."""
        transfer = self._transfer
        if transfer is None or transfer.entry.name != entry.name:
            self._queue.put(entry.name, Operation.CREATE, replaces=replaces)
            return self.pump(now)
        return [] if entry.has_content_of(transfer.entry) else self._restart(transfer, entry, now)

    def withdraw(self, name: str, now: float) -> list[ServerAction]:
        """A file is gone; where it is under way, its deletion comes next."""
        if self._transfer is None or self._transfer.entry.name != name:
            self._queue.put(name, Operation.DELETE, replaces=True)
            return self.pump(now)
        self._queue.put_first(name, Operation.DELETE)
        return [*self._close_cut(now), *self._abandon(), *self.pump(now)]

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
        actions = self._send_chunk(transfer, chunk, now)
        transfer.offset += len(chunk)
        transfer.reading = False
        self.credit -= len(chunk)
        self.octets_sent += len(chunk)
        return [*actions, *self.pump(now)]

    def part_checked(self, number: int, sha1: str, now: float) -> list[ServerAction]:
        """The digest that was asked for is here: go on where the client's part ends, or begin at 0."""
        transfer = self._transfer
        if transfer is None or transfer.number != number or transfer.claimed is None:
            return []
        claimed, transfer.claimed = transfer.claimed, None
        transfer.reading = False
        if sha1 != claimed.sha1:
            return self.pump(now)
        transfer.offset = claimed.size
        resumed = FileResumed(transfer.entry.name, claimed.size, self._peer.hex())
        return [Report(resumed), *self.pump(now)]

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
            end = self._send_chunk(transfer, b"", now)
            return [*end, Report(FileSent(entry.name, entry.size, self._peer.hex()))]
        size = min(left, self.credit, self._chunk_octets)
        if transfer.reading or size == 0:
            return []
        transfer.reading = True
        return [ReadChunk(self._peer, transfer.number, entry.name, transfer.offset, size)]

    def _begin_next(self, now: float) -> list[ServerAction]:
        while (change := self._queue.take()) is not None:
            name, (operation, replaces) = change
            if operation is Operation.DELETE:
                return [self._send_deletion(name, now)]
            entry = self._files.find(name)
            if entry is not None:  # a file that went meanwhile has its deletion in the queue
                self._transfer = Transfer(self._number(), entry, replaces)
                return self._check_claim(self._transfer) or self._send_next(now)
        return []

    def _check_claim(self, transfer: Transfer) -> list[ServerAction]:
        """Where the client says that it holds the beginning of the file, ask for the digest of as much of it."""
        claim, self._claim = self._claim, None  # whichever file comes first takes the place of what is held
        name = transfer.entry.name
        if claim is None or claim[0] != name or claim[1].size > transfer.entry.size:
            return []
        transfer.claimed, transfer.reading = claim[1], True
        return [CheckPart(self._peer, transfer.number, name, claim[1].size)]

    def _restart(self, transfer: Transfer, entry: Entry, now: float) -> list[ServerAction]:
        actions = self._close_cut(now)
        if actions:
            actions.append(self._send_deletion(entry.name, now))
        actions += self._abandon()
        if transfer.restarts < MAX_RESTARTS or not self._queue:
            again = transfer.restarts + 1
            self._transfer = Transfer(self._number(), entry, transfer.replaces, restarts=again)
        else:
            self._queue.put(entry.name, Operation.CREATE, replaces=transfer.replaces)
        return [*actions, *self.pump(now)]

    def _close_cut(self, now: float) -> list[ServerAction]:
        """Close the file under way where the client would take the next chunks for its continuation."""
        transfer = self._transfer
        if transfer is None or transfer.offset == 0 or not self.in_place:
            return []
        return [*self._send_chunk(transfer, b"", now)]

    def _abandon(self) -> list[ServerAction]:
        transfer, self._transfer = self._transfer, None
        return [] if transfer is None else [Abandon(self._peer, transfer.number)]

    def _send_deletion(self, name: str, now: float) -> Send:
        return self._send(self._cheezburger(name, Operation.DELETE, 0, (), b""), now)

    def _send_chunk(self, transfer: Transfer, chunk: bytes, now: float) -> list[ServerAction]:
        entry, actions = transfer.entry, list[ServerAction]()
        if transfer.replaces and self.in_place:
            actions.append(self._send_deletion(entry.name, now))
        transfer.replaces = False
        headers = (("size", str(entry.size)), ("sha-1", entry.sha1))
        command = self._cheezburger(entry.name, Operation.CREATE, transfer.offset, headers, chunk)
        return [*actions, self._send(command, now)]

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
