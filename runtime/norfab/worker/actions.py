"""Effects of the worker's engine. A host performs them in order, and reports each outcome to the engine."""

from __future__ import annotations

import msgspec

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.commands import Command
from specwire.runtime.norfab.worker.events import Happening


class Connect(msgspec.Struct, frozen=True, gc=False):
    """Open a new connection. If that fails, or the connection is lost, call `WorkerEngine.lost`.

    Attributes:
        broker: index of the broker.
        named: use the worker's name as the routing id; otherwise libzmq chooses one.
    """

    broker: int
    named: bool = True


class Close(msgspec.Struct, frozen=True, gc=False):
    """Close the connection. What was sent on it is still delivered."""


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a command on the connection."""

    command: Command


class Load(msgspec.Struct, frozen=True, gc=False):
    """Read the result of a job for a client; see `WorkerEngine.loaded`."""

    number: int
    uuid: str
    client: bytes


class Start(msgspec.Struct, frozen=True, gc=False):
    """Run a task; see `WorkerEngine.ended`. `client` is the address of the client that posted it."""

    uuid: str
    task: str
    body: bytes
    client: bytes


class Cancel(msgspec.Struct, frozen=True, gc=False):
    """Cancel a task, with the reason."""

    uuid: str
    reason: str


class Abandon(msgspec.Struct, frozen=True, gc=False):
    """Ignore a task that does not end after it was cancelled. Another one gets its place."""

    uuid: str


class Input(msgspec.Struct, frozen=True, gc=False):
    """Pass input of its client to a task."""

    uuid: str
    body: bytes


class Stopped(msgspec.Struct, frozen=True, gc=False):
    """Last action: the worker has stopped. `restart`: start it again."""

    restart: bool
    reason: str


class Report(msgspec.Struct, frozen=True, gc=False):
    """Pass an event to the user of this worker."""

    happening: Happening


Action = Connect | Close | Send | Commit | Load | Start | Cancel | Abandon | Input | Stopped | Report
