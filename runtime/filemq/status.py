"""What a running peer tells about itself: the document that `specwire filemq status` asks for.

Names and reasons in it may come from the wire; whoever prints them makes them fit to be seen (`narration.show`).
Times are seconds, sizes octets, moments ISO 8601 in UTC.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.progress import UnderWay
from specwire.runtime.filemq.refusals import Refusal
from specwire.runtime.kernel.status import ProcessStatus


class Doubtful(msgspec.Struct, frozen=True):
    """A place whose files stay listed as they were known, and why."""

    name: str
    reason: str


class PublicationStatus(msgspec.Struct, frozen=True):
    """A published folder, and what is in it; `missing` where the folder itself is away."""

    path: str
    folder: str
    files: int
    octets: int
    doubts: tuple[Doubtful, ...] = ()
    missing: bool = False


class ClientStatus(msgspec.Struct, frozen=True):
    """A client as its server sees it.

    `credit` is what may still be sent to it, `queued` the number of changes that wait to be sent and `octets_sent` the
    content that was sent, both in this peering, which began `connected_s` ago. `missing`
    has the names of the first files in the queue, and `waits_for` is why nothing is sent; empty while something is.
    """

    label: str
    user: str
    subscriptions: tuple[str, ...]
    credit: int
    under_way: UnderWay | None
    queued: int
    octets_sent: int
    connected_s: float
    missing: tuple[str, ...] = ()
    waits_for: str = ""


class ServerStatus(msgspec.Struct, frozen=True, tag="server", tag_field="role"):
    """A server."""

    endpoint: str
    protocol: str
    process: ProcessStatus
    publications: tuple[PublicationStatus, ...]
    clients: tuple[ClientStatus, ...]
    counters: Counters
    refusals: tuple[Refusal, ...]
    captures: tuple[TapCounts, ...] = ()


class SubscriberStatus(msgspec.Struct, frozen=True, tag="subscriber", tag_field="role"):
    """A subscriber; `connection` is ``opening``, ``open``, ``waiting`` or ``ended``.

    `files` are those it holds of the subscribed paths, `pending_octets` what has come and is not on
    the disk yet, `withheld` how many of the files the server has withdrawn, which are kept until
    somebody confirms that.
    """

    endpoint: str
    protocol: str
    process: ProcessStatus
    inbox: str
    paths: tuple[str, ...]
    connection: str
    files: int
    under_way: UnderWay | None
    pending_octets: int
    counters: Counters
    refusals: tuple[Refusal, ...]
    captures: tuple[TapCounts, ...] = ()
    withheld: int = 0


PeerStatus = ServerStatus | SubscriberStatus


class Peer(Protocol):
    """A `FilemqServer` or a `FilemqClient`."""

    @property
    def counters(self) -> Counters:
        """What the peer has done until now."""

    def status(self) -> PeerStatus:
        """Return the status, from `start` on."""
