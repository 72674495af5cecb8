"""Events that a host passes to an engine.

`Engine.handle` receives one of these values and the time. Messages are decoded: the host's codec
turns frames into the classes of a generated package, and reports frames that are no message as
`MessageMalformed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from specwire.generated.errors import CodecError
from specwire.runtime.kernel.store import Failure


class PeerId(NamedTuple):
    """Address of a peer: a socket of the host, and the routing id of the peer at this socket.

    A listener (ROUTER) has many peers, each with a routing id. A connection (DEALER) is a socket
    with one peer, whose routing id is empty.
    """

    socket: str
    routing_id: bytes = b""

    def __str__(self) -> str:
        return f"{self.socket}:{self.routing_id.hex()}" if self.routing_id else self.socket


class Started(msgspec.Struct, frozen=True):
    """First event of a run.

    Attributes:
        endpoints: endpoint of each listener as bound, by the name of the socket.
        restored: what `Records.load` read from the store; None without a store.
    """

    endpoints: Mapping[str, str]
    restored: Any = None


class MessageReceived(msgspec.Struct, frozen=True, gc=False):
    """A decoded message; `user` is the authenticated name of the peer, empty without authentication."""

    peer: PeerId
    message: Any
    user: str = ""


class MessageMalformed(msgspec.Struct, frozen=True):
    """Frames that are no message of the protocol; `error` is the reason, from the codec."""

    peer: PeerId
    error: CodecError
    user: str = ""


class PeerConnected(msgspec.Struct, frozen=True):
    """The handshake of a `Connect` succeeded. A peer of a listener is known by its first message."""

    peer: PeerId


class PeerDisconnected(msgspec.Struct, frozen=True):
    """A peer cannot be reached any more, after all messages that it sent.

    For a connection: it failed or was lost. For a peer of a listener: a message for it had to be
    dropped, because it has gone or does not read. ZeroMQ does not report an idle peer that leaves.
    """

    peer: PeerId
    reason: str


class RoomMade(msgspec.Struct, frozen=True, gc=False):
    """Answer to `AwaitRoom`: the peer has room for a message of `octets`, at most as many as asked for."""

    peer: PeerId
    octets: int


class SendFailed(msgspec.Struct, frozen=True):
    """A message could not be encoded, for example for a peer with another edition of the protocol."""

    peer: PeerId
    message: Any
    reason: str


class Committed(msgspec.Struct, frozen=True, gc=False):
    """Every `Commit` with a ticket up to `last` is durable, except those that have failed."""

    last: int
    failures: tuple[Failure, ...] = ()


class Answered(msgspec.Struct, frozen=True):
    """Result of an `Ask`: what the handler returned, or why it failed."""

    ticket: int
    value: Any = None
    failure: str = ""


class StoreFailing(msgspec.Struct, frozen=True):
    """The disk fails, and refusable commits fail at once; an empty reason: it works again."""

    reason: str


class Noticed(msgspec.Struct, frozen=True):
    """Something has changed outside the engine, such as a file. `value` is of the protocol's own types."""

    value: Any


class Called(msgspec.Struct, frozen=True):
    """The program calls the engine, which answers with `Return`."""

    call: int
    request: Any


class Reloaded(msgspec.Struct, frozen=True):
    """Other settings apply from now on."""

    settings: Any


class Tick(msgspec.Struct, frozen=True):
    """The time that `Engine.deadline` returned has come."""


class Stopping(msgspec.Struct, frozen=True):
    """The host will stop. The engine says goodbye to its peers and ends with `Stop`."""

    reason: str


Event = (
    Started
    | MessageReceived
    | MessageMalformed
    | PeerConnected
    | PeerDisconnected
    | RoomMade
    | SendFailed
    | Committed
    | Answered
    | StoreFailing
    | Noticed
    | Called
    | Reloaded
    | Tick
    | Stopping
)
