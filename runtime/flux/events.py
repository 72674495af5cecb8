"""What happened in a broker, told to whoever runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from specwire.generated.flux import AnyMessage, Control, Request, Response
from specwire.generated.flux import Event as PublishedEvent

Kind = Literal["request", "response", "event", "control"]
Source = Literal["parent", "child", "client", "service"]

WAY_LOST = "the way to rank 0 is lost"
"""Why a broker lets its children go when it has lost its parent."""

DISCONNECTED = "disconnected"
"""Why a client is gone that has closed its connection, which is how each one ends."""


class PeerRefused(msgspec.Struct, frozen=True):
    """Somebody came to the socket for children and was not let in: the key is not of this instance, for instance."""

    reason: str


class Joined(msgspec.Struct, frozen=True):
    """The parent has let this broker into the tree; at rank 0 the tree has begun."""

    rank: int


class ChildJoined(msgspec.Struct, frozen=True):
    """A child said hello and was let in."""

    rank: int
    child: str
    hostname: str


class ChildRefused(msgspec.Struct, frozen=True):
    """A peer below was not let in, or was told to disconnect."""

    child: str
    reason: str


class ChildLeft(msgspec.Struct, frozen=True):
    """A child is gone: `lost`, or by a goodbye."""

    rank: int
    child: str
    hostname: str
    reason: str
    lost: bool


class ChildTorpid(msgspec.Struct, frozen=True):
    """A child has been silent for too long, or (not `torpid`) is heard again."""

    rank: int
    child: str
    hostname: str
    torpid: bool


class StatusChanged(msgspec.Struct, frozen=True):
    """The subtree of this broker has another status: full, partial, degraded."""

    rank: int
    status: str


class ParentLost(msgspec.Struct, frozen=True):
    """The way up is gone; pending requests upward were answered with EHOSTUNREACH."""

    reason: str


class ParentUnreachable(msgspec.Struct, frozen=True):
    """There is no connection to the parent yet; it is tried again."""

    reason: str


class EventGap(msgspec.Struct, frozen=True):
    """Events numbered `first` to `last` never came here."""

    first: int
    last: int


class Dropped(msgspec.Struct, frozen=True):
    """A message was not delivered to anybody, and nobody was to be answered."""

    kind: Kind
    source: Source
    reason: str


class ClientOpened(msgspec.Struct, frozen=True):
    """A local client was let in."""

    client: str
    userid: int


class ClientClosed(msgspec.Struct, frozen=True):
    """A local client is gone, and what it held was given back."""

    client: str
    reason: str


Event = (
    PeerRefused
    | Joined
    | ChildJoined
    | ChildRefused
    | ChildLeft
    | ChildTorpid
    | StatusChanged
    | ParentLost
    | ParentUnreachable
    | EventGap
    | Dropped
    | ClientOpened
    | ClientClosed
)


KINDS: Mapping[type[AnyMessage], Kind] = {
    Request: "request",
    Response: "response",
    PublishedEvent: "event",
    Control: "control",
}


def kind_of(message: AnyMessage) -> Kind:
    """Return what kind of message this is."""
    return KINDS[type(message)]
