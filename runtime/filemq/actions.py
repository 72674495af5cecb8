"""What the engines want done. A shell performs these values in order and tells the engine how it went.

`Send` and `Report` belong to both sides. The server's engine asks for file content with `ReadChunk` and is
answered by `ServerEngine.chunk_read` or `ServerEngine.file_moved`; `CheckPart` is answered by
`ServerEngine.part_checked` or `file_moved`; it lets a slow peer catch up with `Pause` and goes on at
`ServerEngine.resume`. The client's engine orders disk work, each piece of which carries the
number of the connection it came from and is answered by an `Outcome`.
"""

from __future__ import annotations

import msgspec

from specwire.runtime.filemq.dialect import Command
from specwire.runtime.kernel.log import LogEvent


class Send(msgspec.Struct, frozen=True):
    """Send a command; `peer` is the routing id on the server's side and empty on the client's."""

    command: Command
    peer: bytes = b""


class Report(msgspec.Struct, frozen=True):
    """Tell whoever runs this peer."""

    event: LogEvent


class Close(msgspec.Struct, frozen=True):
    """The peering is over: forget the peer (server), or close the connection for good (client)."""

    reason: str
    peer: bytes = b""


class ReadChunk(msgspec.Struct, frozen=True):
    """Read up to `size` octets at `offset` of the file of `transfer`, a number that is never used twice."""

    peer: bytes
    transfer: int
    name: str
    offset: int
    size: int


class CheckPart(msgspec.Struct, frozen=True):
    """Take the SHA-1 of the first `size` octets of the file of `transfer`, as it is published now."""

    peer: bytes
    transfer: int
    name: str
    size: int


class Abandon(msgspec.Struct, frozen=True):
    """Read no more for this peer's transfer."""

    peer: bytes
    transfer: int


class Pause(msgspec.Struct, frozen=True):
    """Call `ServerEngine.resume` when everything sent to this peer so far has been taken by the socket."""

    peer: bytes


ServerAction = Send | Report | Close | ReadChunk | CheckPart | Abandon | Pause


class Connect(msgspec.Struct, frozen=True):
    """Drop the connection there is and open a fresh one, with a new routing id."""

    connection: int


class ListHeld(msgspec.Struct, frozen=True):
    """List what the inbox holds under `path`, after the disk work ordered so far is done."""

    connection: int
    path: str


class WriteChunk(msgspec.Struct, frozen=True):
    """Write a piece of the unfinished file `name`; offset 0 begins it anew."""

    connection: int
    name: str
    offset: int
    chunk: bytes


class CompleteFile(msgspec.Struct, frozen=True):
    """Check the unfinished file and put it into its place.

    Attributes:
        sha1: None if none was announced.
        mode: permission bits to set, None for the default. Other bits are ignored.
        mtime_ns: modification time to set, in nanoseconds since 1970; None for the current time.
    """

    connection: int
    name: str
    size: int
    sha1: str | None
    mode: int | None = None
    mtime_ns: int | None = None


class DiscardFile(msgspec.Struct, frozen=True):
    """Throw the unfinished file `name` away."""

    connection: int
    name: str


class KeepFile(msgspec.Struct, frozen=True):
    """From now on keep the unfinished file `name` whatever ends, the connection or the process: it can be resumed."""

    connection: int
    name: str


class DeleteFile(msgspec.Struct, frozen=True):
    """Take `name` out of the inbox."""

    connection: int
    name: str


class CheckInbox(msgspec.Struct, frozen=True):
    """Compare the inbox with what was received, and empty the trash of what is old."""

    connection: int


class AcceptDeletions(msgspec.Struct, frozen=True):
    """Perform the deletions that are withheld, and those that come next, however many there are."""

    connection: int


DiskAction = (
    ListHeld | WriteChunk | CompleteFile | DiscardFile | KeepFile | DeleteFile | CheckInbox | AcceptDeletions
)
ClientAction = Send | Report | Close | Connect | DiskAction


class Unfinished(msgspec.Struct, frozen=True):
    """The beginning of a file that was interrupted: its `size` so far, and the SHA-1 of that."""

    name: str
    size: int
    sha1: str


class Held(msgspec.Struct, frozen=True):
    """Outcome of `ListHeld`: digests by full virtual name, in order of name, and what is kept unfinished."""

    connection: int
    path: str
    digests: dict[str, str]
    unfinished: Unfinished | None = None


class Wrote(msgspec.Struct, frozen=True):
    """Outcome of `WriteChunk`, of a failed one too: these octets are off the engine's hands."""

    connection: int
    octets: int


class Stored(msgspec.Struct, frozen=True):
    """Outcome of `CompleteFile`: the file is in its place; `copy`: conflict copy of the old version."""

    connection: int
    name: str
    size: int
    sha1: str
    verified: bool
    copy: str = ""


class Deleted(msgspec.Struct, frozen=True):
    """Outcome of `DeleteFile`: the file is out of its place; `copy`: its conflict copy, if any."""

    connection: int
    name: str
    copy: str = ""


class Failed(msgspec.Struct, frozen=True):
    """Outcome of disk work that was not done; `again` where it may succeed later."""

    connection: int
    name: str
    reason: str
    again: bool


class Restored(msgspec.Struct, frozen=True):
    """Outcome of `DeleteFile` for another file, whose deletion was one of too many: it is back."""

    connection: int
    name: str
    sha1: str


class Checked(msgspec.Struct, frozen=True):
    """Outcome of `CheckInbox`: `repair` where the server has to send something again."""

    connection: int
    repair: bool


Outcome = Held | Wrote | Stored | Deleted | Failed | Restored | Checked
