"""What the broker's engine wants done. A shell performs these values in order and tells the engine how it went."""

from __future__ import annotations

import msgspec

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.commands import Command, Role
from specwire.runtime.norfab.events import Happening


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a command to the peer with this routing id, as the `role` in which it is connected.

    Where the ROUTER has no such peer any more the shell calls `BrokerEngine.unreachable`.
    """

    peer: bytes
    role: Role
    command: Command


class Ask(msgspec.Struct, frozen=True):
    """A task of a service inside the broker that the engine does not do itself; see `BrokerEngine.answer`."""

    question: int
    service: str
    task: str
    args: bytes
    kwargs: bytes
    user: str


class Fetch(msgspec.Struct, frozen=True, gc=False):
    """The body of the result of this part is wanted from the store; see `BrokerEngine.fetched`."""

    question: int
    uuid: str
    slot: str


class Stopped(msgspec.Struct, frozen=True):
    """The broker has ended; nothing follows. `restart` where it was asked to begin anew."""

    restart: bool
    reason: str


class Report(msgspec.Struct, frozen=True, gc=False):
    """Tell whoever runs this broker."""

    happening: Happening


Action = Send | Commit | Ask | Fetch | Stopped | Report
