"""Sending to one client: credit, the queue of changes, and the file that is being sent.

Rules of FILEMQ v2:

- Content is sent against credit, exact to the octet: a chunk has at most what is left.
- Chunks of one file are consecutive: nothing else is sent between the first chunk and the end of a
  file. If a file changes meanwhile, sending stops, and begins again at offset 0 after the queued files.

The specification does not define how a file ends. Here an empty chunk at offset = size ends it, and
the headers of every chunk have `size` and `sha-1`, so that the client can verify the file.

A client that writes in place (see `Habits`) needs more: an unfinished file is ended by an empty chunk
and deleted, and a new version follows a deletion of the old one.

A file with the content of a recently withdrawn file is a renamed one. A client that keeps deleted
files (`RENAMES`) receives only its last chunk, which is empty.

A file of which the client holds the beginning (`Beginning`) is sent first. If the published file has
the same beginning, only the rest is sent.

A listing (`LIST`) has no content, and is sent before the queued changes.

One story per client sends everything. It waits if there is nothing to send, no credit, or no room in
the client's socket, and for each chunk that is read. So a slow client takes little memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from specwire.generated.filemq import Cheezburger, Operation
from specwire.generated.session import DialogSession
from specwire.runtime.filemq.catalogue import Catalogue, CheckPart, Entry, ReadChunk
from specwire.runtime.filemq.codec import Command, OutOfTurnError
from specwire.runtime.filemq.events import FileResumed, FileSent
from specwire.runtime.filemq.names import is_folder
from specwire.runtime.filemq.resync import Beginning
from specwire.runtime.filemq.sendqueue import ListingStep, SendQueue, list_files
from specwire.runtime.filemq.status import UnderWay
from specwire.runtime.kernel.effects import Ask, AwaitRoom, Log, Now, Send, Steps, Story, Wait, Wake
from specwire.runtime.kernel.events import Answered, PeerId
from specwire.runtime.transport.backoff import Backoff

Headers = tuple[tuple[str, str], ...]

RENAMED = ("renamed", "1")
RENAMED_FROM_OCTETS = 4096
"""Smaller files are sent again."""

DELETED_KEPT = 10_000
"""Digests of deleted files that are remembered for one client, to recognize renamed files."""

MAX_CREDIT = 2**64 - 1
BATCH = 32
"""After so many commands the story waits until the client's socket has taken them."""

SMALL_OCTETS = 32 * 1024
"""A chunk of at most this size is read without asking for room first."""

SETTLE_S = 0.05
LONGEST_SETTLE_S = 1.0
CALM_S = 5.0


class Transfer(msgspec.Struct):
    """A file that is being sent.

    Attributes:
        offset: octets sent.
        is_over: this version must not be sent any more; the file has changed, and begins again.
        withdrawn: the file is no longer published, or was not; the queue has what follows.
    """

    entry: Entry
    offset: int = 0
    is_over: bool = False
    withdrawn: bool = False

    def withdraw(self) -> None:
        """End the file, which is no longer published."""
        self.is_over = self.withdrawn = True


@dataclass(eq=False)
class Outflow:
    """Sender of everything that one client gets.

    Attributes:
        dialog: watches the dialog; refuses a command that must not be sent now.
        in_place: the client writes chunks into the file itself.
        credit: octets of content that may be sent.
        octets_sent: content that was sent.
        sent_at: time of the last command.
        attributes: the client asks for modes and modification times of files, and for empty
            folders.
        renames: the client can restore the content of a file that was deleted a moment ago.
        ended: nothing is sent any more.
        waits_for: what the story waits for; empty while it reads or sends.
        work_key, room_key: keys of the story's `Wait` for changes or credit, and for `RoomMade`.
    """

    peer: PeerId
    files: Catalogue
    dialog: DialogSession
    chunk_octets: int
    in_place: bool
    sent_at: float
    queue: SendQueue = field(init=False)
    credit: int = 0
    octets_sent: int = 0
    attributes: bool = False
    renames: bool = False
    ended: bool = False
    transfer: Transfer | None = None
    waits_for: str = ""
    work_key: tuple[str, PeerId] = field(init=False)
    room_key: tuple[str, PeerId] = field(init=False)
    _deleted: dict[str, None] = field(default_factory=dict)
    _claim: tuple[str, Beginning] | None = None
    _listing: Iterator[ListingStep] | None = None
    _sequence: int = 0
    _unconfirmed: int = 0
    _settling: Backoff = field(init=False)

    def __post_init__(self) -> None:
        self.queue = SendQueue(self.files)
        self.work_key, self.room_key = ("changes", self.peer), ("room", self.peer)
        self._settling = Backoff(first_s=SETTLE_S, longest_s=LONGEST_SETTLE_S, calm_s=CALM_S)

    @property
    def under_way(self) -> UnderWay | None:
        """The file that is being sent, and how much of it was sent."""
        transfer = self.transfer
        if transfer is None:
            return None
        return UnderWay(transfer.entry.name, transfer.offset, transfer.entry.size, self.peer.routing_id.hex())

    # ---- what others change

    def queue_deletions(self, names: Iterable[str]) -> None:
        """Send these deletions before everything else, except that of the file that is being sent.

        None of the files is published, so no queued file is lost. Files that replace one come later.
        """
        for name in reversed([*names]):
            if not self._is_sending(name):
                self.queue.put_first(name, Operation.DELETE)

    def queue_lacking(self, names: Sequence[str]) -> None:
        """Send these files later, in this order, except the one that is being sent."""
        self.queue.put_lacking(names)
        if self.transfer is not None and not self.transfer.withdrawn:
            self.queue.drop(self.transfer.entry.name)

    def queue_rest(self, name: str, claimed: Beginning) -> None:
        """Send the rest of this file before everything else, unless the file is being sent."""
        if not self._is_sending(name):
            self.queue.put_first(name, Operation.CREATE)
            self._claim = name, claimed

    def publish(self, entry: Entry) -> Wake:
        """Send a file that is new or has new content."""
        if not self._is_sending(entry.name):
            self.queue.put(entry.name, Operation.CREATE)
        elif self.transfer is not None and not entry.has_content_of(self.transfer.entry):
            self.transfer.is_over = True
        return Wake(self.work_key)

    def withdraw(self, entry: Entry) -> Wake:
        """Send the deletion of a file; it comes next if the file is being sent."""
        name = entry.name
        if self.transfer is not None and self._is_sending(name):
            self.transfer.withdraw()
            self.queue.put_first(name, Operation.DELETE)
            return Wake(self.work_key)
        if self.renames and not self.queue.has_creation(name):
            self._deleted.pop(entry.sha1, None)
            self._deleted[entry.sha1] = None
            if len(self._deleted) > DELETED_KEPT:
                del self._deleted[next(iter(self._deleted))]
        self.queue.put(name, Operation.DELETE)
        return Wake(self.work_key)

    def list_files(self, path: str, *, folders: bool) -> Wake:
        """List the files under a path, and its empty folders if `folders` is set."""
        self._listing = list_files(self.files, path, folders=folders)
        return Wake(self.work_key)

    def stop(self) -> Wake:
        """End the story, and clear the queue."""
        self.ended = True
        self.queue = SendQueue(self.files)
        if self.transfer is not None:
            self.transfer.withdraw()
        return Wake(self.work_key)

    def send(self, command: Command, now: float) -> Send:
        """Return the effect that sends a command.

        Raises:
            OutOfTurnError: the dialog does not allow the command now.
        """
        if violation := self.dialog.send(command):
            raise OutOfTurnError(str(violation))
        self.sent_at = now
        return Send(self.peer, command)

    def _is_sending(self, name: str) -> bool:
        transfer = self.transfer
        return transfer is not None and transfer.entry.name == name and not transfer.withdrawn

    # ---- the story

    def run(self) -> Story:
        """Send changes until the client has gone or `stop` was called."""
        while not self.ended:
            if self._unconfirmed >= BATCH:
                yield from self._await_room(0)
            elif self._listing is not None:
                if (step := next(self._listing, None)) is None:
                    self._listing = None
                else:
                    yield from self._send_cheezburger(step.name, Operation.CREATE, step.offset, step.headers)
            elif (change := self.queue.pop()) is None:
                yield Wait(self.work_key)
            else:
                name, operation = change
                entry = self.files.find(name)
                if is_folder(name) and not self.attributes:
                    continue
                if operation is Operation.DELETE:
                    yield from self._send_cheezburger(name, Operation.DELETE)
                elif entry is not None:  # the queue has the deletion of a file that was withdrawn since
                    yield from self._send_file(entry)

    def _send_file(self, entry: Entry) -> Story:
        """Send a file, or queue it again if it changes meanwhile."""
        transfer = self.transfer = Transfer(entry)
        if self._is_renamed(entry):
            yield from self._send_renamed(transfer)
            is_sent = True
        else:
            yield from self._check_claim(transfer)
            is_sent = yield from self._send_content(transfer)
        self.transfer = None
        if not (is_sent or self.ended):
            yield from self._give_up(transfer)
            if not transfer.withdrawn and self.files.find(entry.name) is not None:
                self.queue.put(entry.name, Operation.CREATE)

    def _is_renamed(self, entry: Entry) -> bool:
        """Return whether the client has deleted a file with this content, which is then used up."""
        if not self.renames or entry.size < RENAMED_FROM_OCTETS or entry.sha1 not in self._deleted:
            return False
        del self._deleted[entry.sha1]
        return True

    def _send_renamed(self, transfer: Transfer) -> Story:
        """Send a file without its content, which the client has under another name."""
        entry, self._claim = transfer.entry, None
        transfer.offset = entry.size
        yield from self._send_chunk(transfer, b"", (RENAMED,))
        yield Log(FileSent(entry.name, entry.size, self.peer.routing_id.hex()))

    def _check_claim(self, transfer: Transfer) -> Story:
        """Continue the file where the client's part ends, if the file begins like this part."""
        claim, self._claim = self._claim, None  # whichever file is sent first replaces the client's part
        entry = transfer.entry
        if claim is None or claim[0] != entry.name or claim[1].size > entry.size:
            return
        claimed = claim[1]
        answered: Answered = yield Ask(CheckPart(entry, claimed.size))
        if transfer.is_over:
            return
        if answered.value is None:
            yield from self._wait_until_settled(transfer)
        elif answered.value == claimed.sha1:
            transfer.offset = claimed.size
            yield Log(FileResumed(entry.name, claimed.size, self.peer.routing_id.hex()))

    def _send_content(self, transfer: Transfer) -> Steps[bool]:
        """Send the chunks of a file; return whether it is complete."""
        entry = transfer.entry
        while not transfer.is_over:
            left = entry.size - transfer.offset
            size = min(left, self.credit, self.chunk_octets)
            if not left:
                yield from self._send_chunk(transfer, b"")
                yield Log(FileSent(entry.name, entry.size, self.peer.routing_id.hex()))
                return True
            if not size:
                self.waits_for = "credit"
                yield Wait(self.work_key)
                self.waits_for = ""
                continue
            if size > SMALL_OCTETS or self._unconfirmed >= BATCH:
                size = yield from self._await_room(size)
                if transfer.is_over:
                    break
            answered: Answered = yield Ask(ReadChunk(entry, transfer.offset, size))
            if answered.value is None:
                yield from self._wait_until_settled(transfer)
            elif not transfer.is_over:
                yield from self._send_chunk(transfer, answered.value)
                transfer.offset += size
                self.credit -= size
                self.octets_sent += size
        return False

    def _wait_until_settled(self, transfer: Transfer) -> Story:
        """Begin again with a file that could not be read as it was published.

        If it is still published like this, it is being written or cannot be read, and is read again
        later.
        """
        if self.files.find(transfer.entry.name) is transfer.entry:
            self.waits_for = "the file, which cannot be read"
            until = self._settling.next_try((yield Now()))
            while (yield Now()) < until and not transfer.is_over:
                yield Wait(self.work_key, until)
            self.waits_for = ""
        transfer.is_over = True

    def _await_room(self, octets: int) -> Steps[int]:
        """Wait until the client has room; return for how many octets."""
        self._unconfirmed = 0
        self.waits_for = "the client to receive"
        yield AwaitRoom(self.peer, octets)
        room: int = yield Wait(self.room_key)
        self.waits_for = ""
        return room

    # ---- commands

    def _give_up(self, transfer: Transfer) -> Story:
        """End an incomplete file of a client that writes in place, which would append later chunks to it."""
        if self.in_place and transfer.offset:
            yield from self._send_chunk(transfer, b"")
            if not transfer.withdrawn:  # else the queue has the deletion
                yield from self._send_cheezburger(transfer.entry.name, Operation.DELETE)

    def _send_chunk(self, transfer: Transfer, chunk: bytes, headers: Headers = ()) -> Story:
        entry = transfer.entry
        if self.in_place and not transfer.offset:
            # The end of a longer old version would stay, and nobody knows what the client has.
            yield from self._send_cheezburger(entry.name, Operation.DELETE)
        headers = (("size", str(entry.size)), ("sha-1", entry.sha1), *headers)
        if self.attributes:
            mode = () if entry.mode is None else (("mode", f"{entry.mode:04o}"),)
            headers = (*headers, *mode, ("mtime", str(entry.mtime_ns)))
        yield from self._send_cheezburger(entry.name, Operation.CREATE, transfer.offset, headers, chunk)

    def _send_cheezburger(
        self, name: str, operation: Operation, offset: int = 0, headers: Headers = (), chunk: bytes = b""
    ) -> Story:
        command = Cheezburger(
            sequence=self._sequence,
            operation=int(operation),
            filename=name,
            offset=offset,
            headers=headers,
            chunk=chunk,
        )
        self._sequence += 1
        self._unconfirmed += 1
        yield self.send(command, (yield Now()))
