"""What the worker's engine wants done. A shell performs these values in order and tells the engine how it went."""

from __future__ import annotations

import msgspec

from specwire.runtime.norfab.commands import Command
from specwire.runtime.norfab.worker.events import Happening
from specwire.runtime.norfab.worker.records import Record


class Connect(msgspec.Struct, frozen=True, gc=False):
    """Open a fresh connection to this broker, by its place in the list; when it fails or is lost: `WorkerEngine.lost`."""

    broker: int


class Close(msgspec.Struct, frozen=True, gc=False):
    """Close the connection there is; what was sent on it still leaves."""


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a command over the connection there is."""

    command: Command


class Store(msgspec.Struct, frozen=True, gc=False):
    """Keep these records, all or none; see `WorkerEngine.stored` and `WorkerEngine.not_stored`.

    `patient` where more is about to follow, with which it may be committed.
    """

    ticket: int
    records: tuple[Record, ...]
    patient: bool = False


class Mark(msgspec.Struct, frozen=True, gc=False):
    """Note, before the next action, that all jobs up to this number have begun: the end of the process must not undo it."""

    number: int


class Load(msgspec.Struct, frozen=True, gc=False):
    """Read the result of a job for a client; see `WorkerEngine.loaded`."""

    number: int
    uuid: str
    client: bytes


class Start(msgspec.Struct, frozen=True, gc=False):
    """Run a task; see `WorkerEngine.ended`. `client` is the address of who posted it."""

    uuid: str
    task: str
    body: bytes
    client: bytes


class LineUp(msgspec.Struct, frozen=True, gc=False):
    """Run a task when those that run have ended; what it begins with is marked (`Mark`), then see `WorkerEngine.began`."""

    number: int
    uuid: str
    task: str
    body: bytes
    client: bytes


class Withdraw(msgspec.Struct, frozen=True, gc=False):
    """Take back what was lined up, or cancel it where it has begun; see `WorkerEngine.withdrawn`."""

    uuid: str


class Cancel(msgspec.Struct, frozen=True, gc=False):
    """Tell a task that nobody wants it any more, and why."""

    uuid: str
    reason: str


class Abandon(msgspec.Struct, frozen=True, gc=False):
    """A task does not heed its cancelling: another takes its place, whatever becomes of it."""

    uuid: str


class Input(msgspec.Struct, frozen=True, gc=False):
    """Give a task what its client has sent."""

    uuid: str
    body: bytes


class Stopped(msgspec.Struct, frozen=True, gc=False):
    """The worker has ended; nothing follows. `restart` where it was asked to begin anew."""

    restart: bool
    reason: str


class Report(msgspec.Struct, frozen=True, gc=False):
    """Tell whoever runs this worker."""

    happening: Happening


Action = (
    Connect
    | Close
    | Send
    | Store
    | Mark
    | Load
    | Start
    | LineUp
    | Withdraw
    | Cancel
    | Abandon
    | Input
    | Stopped
    | Report
)
