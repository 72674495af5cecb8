"""State of a ZRE node, with the calls and notices that change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from specwire.runtime.kernel.effects import Send
from specwire.runtime.kernel.events import PeerId
from specwire.runtime.zre.settings import ZreSettings

LAST_SEQUENCE = 0xFFFF


class BeaconReceived(msgspec.Struct, frozen=True):
    """Notice: a beacon has come from `host`. The port 0 means that the node leaves."""

    uuid: bytes
    host: str
    port: int


class ZreError(Exception):
    """A call failed: the peer is unknown, the name of the group is too long, or there are too many frames."""


class SetMembership(msgspec.Struct, frozen=True):
    """Call: join or leave a group."""

    group: str
    is_member: bool


class WhisperTo(msgspec.Struct, frozen=True):
    """Call: send a message to a peer, by its UUID; raises ZreError."""

    peer: bytes
    content: tuple[bytes, ...]


class ShoutTo(msgspec.Struct, frozen=True):
    """Call: send a message to the peers in a group; returns their number."""

    group: str
    content: tuple[bytes, ...]


@dataclass(eq=False)
class Remote:
    """A known peer; `sent` and `received` are the numbers of the last messages."""

    uuid: bytes
    connection: PeerId
    endpoint: str
    received_at: float
    sent: int = 0
    received: int = 1
    name: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    groups: set[str] = field(default_factory=set)
    evasive: bool = False

    @property
    def label(self) -> str:
        """The UUID in hexadecimal."""
        return self.uuid.hex()

    def send(self, kind: Any, **fields: Any) -> Send:
        """Return the effect that sends the next message of this kind."""
        self.sent = (self.sent + 1) & LAST_SEQUENCE
        return Send(self.connection, kind(sequence=self.sent, **fields))

    def is_next(self, sequence: int) -> bool:
        """Whether a received message is the next one, by its number."""
        last, self.received = self.received, sequence
        return sequence == (last + 1) & LAST_SEQUENCE or (sequence, last) == (0, LAST_SEQUENCE - 1)


@dataclass
class LocalNode:
    """State of this node.

    Attributes:
        dialing: the greeted endpoints that have not greeted back.
        beacons: time of the last beacon of each endpoint that is dialed because of beacons.
        greeted: time of each HELLO that was accepted within `AGAIN_S`, by UUID, in order of time.
    """

    uuid: bytes
    settings: ZreSettings
    name: str = ""
    endpoint: str = ""
    status: int = 0
    groups: dict[str, None] = field(default_factory=dict)
    peers: dict[bytes, Remote] = field(default_factory=dict)
    dialing: dict[str, Remote] = field(default_factory=dict)
    beacons: dict[str, float] = field(default_factory=dict)
    greeted: dict[bytes, float] = field(default_factory=dict)
    connections: int = 0

    def find(self, peer: PeerId) -> Remote | None:
        """Return the peer that sends under this routing id: the octet 1 and its UUID."""
        return self.peers.get(peer.routing_id[1:])

    def wants(self, endpoint: str, now: float) -> bool:
        """Whether to dial an endpoint: it is in the settings, or its beacons come."""
        beacon_at = self.beacons.get(endpoint)
        is_announced = beacon_at is not None and now - beacon_at < self.settings.expired_after
        return is_announced or endpoint in self.settings.endpoint
