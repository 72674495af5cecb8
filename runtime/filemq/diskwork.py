"""Disk work of a client: orders, outcomes, and batches.

The engine puts orders into a `DiskQueue` and hands them over in batches, one at a time: what
gathers while a batch is performed is the next batch. So small files cost few trips to the disk's
thread, and large files keep it busy.

Orders and outcomes carry the number of the connection that caused them. An outcome may come with a
later batch than its order; an empty batch brings the outcomes that are missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from specwire.runtime.filemq.names import covers, is_folder
from specwire.runtime.kernel.effects import Return

BATCH = 256
BATCH_OCTETS = 2 << 20
"""A batch ends with the chunk that fills it, so credit is granted before the next is written."""

LARGE_OCTETS = 256 << 10
"""A chunk of this size does not wait for others."""

NAMES_SHOWN = 5


class OfConnection(msgspec.Struct, frozen=True):
    """Order or outcome, with the number of the connection that caused it."""

    connection: int


class OfFile(OfConnection, frozen=True):
    """Order or outcome about the file `name`."""

    name: str


# ---- orders


class ListHeld(OfConnection, frozen=True):
    """List the files under `path`, after all earlier orders."""

    path: str


class WriteChunk(OfFile, frozen=True):
    """Write a chunk of the unfinished file; offset 0 begins the file again."""

    offset: int
    chunk: bytes


class CompleteFile(OfFile, frozen=True):
    """Check the unfinished file and move it to its place.

    Attributes:
        sha1: None if none was announced.
        mode: permission bits to set, None for the default. Other bits are ignored.
        mtime_ns: modification time to set, in nanoseconds since 1970; None for the current time.
    """

    size: int
    sha1: str | None
    mode: int | None = None
    mtime_ns: int | None = None


class CompleteRenamed(OfFile, frozen=True):
    """Complete a file with the content of one that was just deleted, or of which the deletion is withheld.

    The attributes are those of `CompleteFile`.
    """

    size: int
    sha1: str
    mode: int | None = None
    mtime_ns: int | None = None


class DiscardFile(OfFile, frozen=True):
    """Remove the unfinished file."""


class KeepFile(OfFile, frozen=True):
    """Keep the unfinished file when the connection or the process ends, to resume it."""


class DeleteFile(OfFile, frozen=True):
    """Remove a file from the inbox."""


class CheckInbox(OfConnection, frozen=True):
    """Compare the inbox with what was received, and remove old files from the trash."""


class AcceptDeletions(OfConnection, frozen=True):
    """Perform the withheld deletions, and the next ones, however many there are."""


DiskAction = (
    ListHeld
    | WriteChunk
    | CompleteFile
    | CompleteRenamed
    | DiscardFile
    | KeepFile
    | DeleteFile
    | CheckInbox
    | AcceptDeletions
)


# ---- outcomes


class Unfinished(msgspec.Struct, frozen=True):
    """The beginning of an interrupted file: its size so far, and the SHA-1 of that."""

    name: str
    size: int
    sha1: str


class Held(OfConnection, frozen=True):
    """Outcome of `ListHeld`: digests in order of virtual name, and the file kept unfinished."""

    path: str
    digests: dict[str, str]
    unfinished: Unfinished | None = None


class Wrote(OfConnection, frozen=True):
    """Outcome of `WriteChunk`, also of a failed one: these octets are no longer in memory."""

    octets: int


class Stored(OfFile, frozen=True):
    """Outcome of `CompleteFile`: the file is in its place; `copy`: conflict copy, if any."""

    size: int
    sha1: str
    verified: bool
    copy: str = ""


class Deleted(OfFile, frozen=True):
    """Outcome of `DeleteFile`: the file is gone; `copy`: its conflict copy, if any."""

    copy: str = ""


class Failed(OfFile, frozen=True):
    """Outcome of an order that was not performed; `again` if it may succeed later."""

    reason: str
    again: bool


class ContentLost(OfFile, frozen=True):
    """Outcome of `CompleteRenamed`: the inbox does not have the content any more."""


class Restored(OfFile, frozen=True):
    """Outcome of `DeleteFile` for another file: too many were deleted, and this one is back."""

    sha1: str


class Checked(OfConnection, frozen=True):
    """Outcome of `CheckInbox`: `repair` if the server has to send something again."""

    repair: bool


Outcome = Held | Wrote | Stored | Deleted | Failed | ContentLost | Restored | Checked


# ---- batches


class DiskBatch(msgspec.Struct, frozen=True):
    """Orders to perform; the request of an `Ask`."""

    orders: tuple[DiskAction, ...]


class BatchDone(msgspec.Struct, frozen=True):
    """Answer to a `DiskBatch`; `pending` if outcomes are missing, which an empty batch brings."""

    outcomes: Sequence[Outcome]
    pending: bool


class DiskQueue:
    """Orders that wait, and the one batch that is performed."""

    def __init__(self) -> None:
        self.waiting: list[DiskAction] = []
        self._is_busy = self._is_pending = self._has_large = False

    @property
    def is_ready(self) -> bool:
        """Whether a batch can be handed over."""
        return not self._is_busy and (bool(self.waiting) or self._is_pending)

    @property
    def is_idle(self) -> bool:
        """Whether everything that was ordered is done."""
        return not (self._is_busy or self._is_pending or self.waiting)

    def add(self, action: DiskAction) -> None:
        """Add an order."""
        self.waiting.append(action)
        if isinstance(action, WriteChunk) and len(action.chunk) >= LARGE_OCTETS:
            self._has_large = True

    def next_batch(self, *, gather: bool) -> DiskBatch | None:
        """Return the next batch; None if another one is performed, or nothing waits.

        Args:
            gather: small chunks wait for others.
        """
        if not self.is_ready or (gather and not self._has_large):
            return None
        count = octets = 0
        for action in self.waiting[:BATCH]:
            count += 1
            octets += len(action.chunk) if isinstance(action, WriteChunk) else 0
            if octets >= BATCH_OCTETS:
                break
        batch = DiskBatch(tuple(self.waiting[:count]))
        del self.waiting[:count]
        self._is_busy, self._has_large = True, False
        return batch

    def end_batch(self, *, pending: bool) -> None:
        """Note that the batch was performed; `pending` as in `BatchDone`."""
        self._is_busy, self._is_pending = False, pending

    def fail(self) -> None:
        """Drop everything: the disk work has failed."""
        self.waiting.clear()
        self.end_batch(pending=False)


# ---- what the inbox holds


class AwaitFiles(msgspec.Struct, frozen=True):
    """Call: return when the inbox holds exactly `expected`; TimeoutError after `timeout_s`."""

    expected: Mapping[str, str]
    timeout_s: float


class Holdings:
    """Files of the inbox, as the outcomes say, and the calls that wait for certain files.

    Attributes:
        digests: SHA-1 of each file by name, without empty folders.
        calls: request of each call that waits, and the time at which it fails.
    """

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}
        self.calls: dict[int, tuple[AwaitFiles, float]] = {}
        self._is_changed = False

    def apply(self, outcome: Outcome) -> None:
        """Take over what an outcome says of the files."""
        match outcome:
            case Stored(name=name, sha1=sha1) | Restored(name=name, sha1=sha1) if not is_folder(name):
                self.digests[name] = sha1
            case Deleted(name=name):
                self.digests.pop(name, None)
            case Held(path=path, digests=digests):
                kept = {name: sha1 for name, sha1 in self.digests.items() if not covers(path, name)}
                self.digests = kept | {name: sha1 for name, sha1 in digests.items() if not is_folder(name)}
            case _:
                return
        self._is_changed = True

    def wait(self, call: int, request: AwaitFiles, now: float) -> None:
        """Let a call wait."""
        self.calls[call] = request, now + request.timeout_s
        self._is_changed = True

    def answers(self, now: float) -> Iterator[Return]:
        """Yield the answers that are due: a TimeoutError names files that differ."""
        changed, self._is_changed = self._is_changed, False
        for call, (request, until) in [*self.calls.items()]:
            if changed and self.digests == request.expected:
                del self.calls[call]
                yield Return(call)
            elif now >= until:
                del self.calls[call]
                yield Return(call, error=TimeoutError(self._describe_differences(request)))

    def _describe_differences(self, request: AwaitFiles) -> str:
        names = sorted({name for name, _ in self.digests.items() ^ request.expected.items()})
        shown = ", ".join(names[:NAMES_SHOWN])
        return f"{len(names)} files differ after {request.timeout_s} s: {shown}"
