"""What the broker's engine wants done. A shell performs these values in order and tells the engine how it went."""

from __future__ import annotations

import msgspec

from specwire.runtime.norfab.commands import Command, Role
from specwire.runtime.norfab.events import Happening
from specwire.runtime.norfab.records import Record


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a command to the peer with this routing id, as the `role` in which it is connected.

    Where the ROUTER has no such peer any more the shell calls `BrokerEngine.unreachable`.
    """

    peer: bytes
    role: Role
    command: Command


class Store(msgspec.Struct, frozen=True, gc=False):
    """Keep these records. Tickets count up; `BrokerEngine.stored` says up to which all are durable.

    Records of one ticket are kept together or not at all. Many tickets may be one commit.
    """

    ticket: int
    records: tuple[Record, ...]


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


Action = Send | Store | Ask | Fetch | Stopped | Report
