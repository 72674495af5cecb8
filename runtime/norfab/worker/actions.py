"""Effects of the worker's engine. A host performs them in order, and reports each outcome to the engine."""

from __future__ import annotations

import msgspec

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.commands import Command
from specwire.runtime.norfab.worker.events import Happening


class Connect(msgspec.Struct, frozen=True, gc=False):
    """Open a fresh connection to this broker, by its place in the list; when it fails or is lost: `WorkerEngine.lost`."""

    broker: int


class Close(msgspec.Struct, frozen=True, gc=False):
    """Close the connection there is; what was sent on it still leaves."""


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a command over the connection there is."""

    command: Command


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


Action = Connect | Close | Send | Commit | Load | Start | Cancel | Abandon | Input | Stopped | Report
