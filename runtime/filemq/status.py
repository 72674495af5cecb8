"""Status of FILEMQ peers: the document that `specwire filemq status` prints, and its text for the log.

Times are in seconds, sizes in octets, dates in ISO 8601 and UTC. Names and reasons may come from
other peers, so escape them before they are printed (`runtime.log.text.show`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Protocol

import msgspec

from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.filemq.events import Counters, Progress, ServerCounters, SubscriberCounters
from specwire.runtime.filemq.names import as_utf8
from specwire.runtime.kernel.log import LogEvent, Refused
from specwire.runtime.kernel.status import Measure, ProcessStatus
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_count, show_octets

LOOK_S = 1.0
"""Time between two looks at the files that are being transferred."""

REFUSALS_KEPT = 20
CLIENTS_SHOWN = 5


class Phase(StrEnum):
    """Phase of a subscriber's connection."""

    OPENING = "opening"
    OPEN = "open"
    WAITING = "waiting"
    ENDED = "ended"


class UnderWay(msgspec.Struct, frozen=True):
    """A file of which `octets` were sent or received; `size` is None if it is unknown."""

    path: str
    octets: int
    size: int | None
    peer: str = ""
    octets_per_s: float = 0.0


class Refusal(msgspec.Struct, frozen=True):
    """Something that was not accepted, and when."""

    at: str
    name: str
    reason: str
    peer: str = ""


class Doubtful(msgspec.Struct, frozen=True):
    """A place that cannot be read, so that its files stay listed as they were."""

    name: str
    reason: str


class PublicationStatus(msgspec.Struct, frozen=True):
    """A published folder; `missing` if the folder itself does not exist now."""

    path: str
    folder: str
    files: Annotated[int, Measure("gauge", "Files that are published.", "published_files", by="path")]
    octets: Annotated[int, Measure("gauge", "Their content.", "published_bytes", by="path")]
    doubts: tuple[Doubtful, ...] = ()
    missing: bool = False


class ClientStatus(msgspec.Struct, frozen=True):
    """A client as its server sees it.

    Attributes:
        label: its routing id in hexadecimal.
        credit: octets of content that may be sent.
        queued: number of changes that wait to be sent.
        octets_sent: content that was sent in this peering.
        connected_s: age of this peering.
        missing: names of the first files in the queue.
        waits_for: why nothing is sent now; empty while something is.
    """

    label: str
    user: str
    subscriptions: Annotated[tuple[str, ...], Measure("gauge", "Subscriptions of all clients.")]
    credit: Annotated[int, Measure("gauge", "Credit of all clients: what may be sent.", "credit_bytes")]
    under_way: Annotated[
        UnderWay | None, Measure("gauge", "Files of which a part has been sent.", "files_under_way")
    ]
    queued: Annotated[
        int, Measure("gauge", "Changes that clients are still to be told of.", "queued_changes")
    ]
    octets_sent: int
    connected_s: float
    missing: tuple[str, ...] = ()
    waits_for: str = ""


class ServerStatus(msgspec.Struct, frozen=True, tag="server", tag_field="role"):
    """A server.

    Clients are not told apart in metrics: their routing ids are new with each connection, and each
    would be another series.
    """

    endpoint: str
    protocol: str
    process: ProcessStatus
    publications: tuple[PublicationStatus, ...]
    clients: Annotated[tuple[ClientStatus, ...], Measure("gauge", "Open peerings.")]
    counters: ServerCounters
    refusals: tuple[Refusal, ...]
    captures: tuple[TapCounts, ...] = ()


class SubscriberStatus(msgspec.Struct, frozen=True, tag="subscriber", tag_field="role"):
    """A subscriber.

    `files` is the number of files that it holds under the subscribed paths. `pending_octets` were
    received and are not on the disk yet. `withheld` is the number of files that the server has
    withdrawn and that are kept until somebody confirms.
    """

    endpoint: str
    protocol: str
    process: ProcessStatus
    inbox: str
    paths: tuple[str, ...]
    connection: Annotated[
        Phase, Measure("gauge", "1 for the state that the connection is in.", label="state")
    ]
    files: Annotated[int, Measure("gauge", "Files of the subscribed paths in the inbox.", "held_files")]
    under_way: Annotated[
        UnderWay | None, Measure("gauge", "Files of which a part has come.", "files_under_way")
    ]
    pending_octets: Annotated[
        int, Measure("gauge", "Content that has come and is not on the disk yet.", "pending_bytes")
    ]
    counters: SubscriberCounters
    refusals: tuple[Refusal, ...]
    captures: tuple[TapCounts, ...] = ()
    withheld: int = 0


PeerStatus = ServerStatus | SubscriberStatus


class Peer(Protocol):
    """A `FilemqServer` or a `FilemqClient`."""

    @property
    def counters(self) -> Counters:
        """Counts since the start."""

    def status(self) -> PeerStatus:
        """Return the status, from `start` on."""


class Refusals:
    """The newest refusals of a peer."""

    def __init__(self) -> None:
        self._kept: deque[Refusal] = deque(maxlen=REFUSALS_KEPT)

    def note(self, event: LogEvent, at: datetime | None = None) -> None:
        """Note an event if it is a refusal."""
        if isinstance(event, Refused):
            moment = (at or datetime.now(UTC)).isoformat(timespec="seconds")
            self._kept.append(Refusal(moment, as_utf8(event.name), as_utf8(event.reason), event.peer))

    def newest(self) -> tuple[Refusal, ...]:
        """Return the refusals, the newest last."""
        return tuple(self._kept)


class ProgressLooks:
    """Rates of the files that are being transferred, from one look to the next.

    A file that is seen twice takes longer than `LOOK_S`, and is reported. Short ones cost nothing.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}
        self._rates: dict[tuple[str, str], float] = {}

    def look(self, under_way: Iterable[UnderWay], now: float) -> list[Progress]:
        """Return the progress of the files that have moved since the last look."""
        seen: dict[tuple[str, str], tuple[int, float]] = {}
        rates: dict[tuple[str, str], float] = {}
        events: list[Progress] = []
        for file in under_way:
            key = (file.peer, file.path)
            seen[key] = (file.octets, now)
            octets, at = self._seen.get(key, (file.octets, now))
            if file.octets > octets and now > at:
                rates[key] = (file.octets - octets) / (now - at)
                events.append(Progress(file.path, file.octets, file.size, rates[key], file.peer))
        self._seen, self._rates = seen, rates
        return events

    def rated(self, file: UnderWay) -> UnderWay:
        """Return `file` with its rate at the last look; 0 if it did not move."""
        rate = self._rates.get((file.peer, file.path), 0.0)
        return msgspec.structs.replace(file, octets_per_s=rate)


def report(status: PeerStatus) -> str:
    """Return the state and the counts of a peer as one line."""
    return f"{describe_now(status)}; {describe_done(status)}"


def describe_now(status: PeerStatus) -> str:
    """Return the state of a peer."""
    if isinstance(status, ServerStatus):
        credit = show_octets(sum(client.credit for client in status.clients))
        queued = show_count(sum(client.queued for client in status.clients), "change")
        doubts = sum(len(publication.doubts) + publication.missing for publication in status.publications)
        kept = f", {show_count(doubts, 'place')} that cannot be read or confirmed" if doubts else ""
        clients = show_count(len(status.clients), "client")
        return f"{clients} with credit for {credit} and {queued} to come{kept}"
    reconnects = show_count(max(0, status.counters.peerings - 1), "reconnect")
    withheld = f", {show_count(status.withheld, 'deletion')} withheld" if status.withheld else ""
    return f"{status.connection}, {show_count(status.files, 'file')} held, {reconnects}{withheld}"


def describe_done(status: PeerStatus) -> str:
    """Return the counts of a peer since its start."""
    counters = status.counters
    files, deletions = show_count(counters.files, "file"), f"{counters.deletions:,}"
    if isinstance(status, ServerStatus):
        return f"sent {files}, withdrew {deletions}; {describe_traffic(counters)}"
    return f"received {files}, deleted {deletions}; {describe_traffic(counters)}"


def describe_traffic(counters: Counters) -> str:
    """Return the counts of content, messages, refusals and errors."""
    parts = [
        f"{show_octets(counters.content_octets)} of content in {show_count(counters.chunks, 'chunk')}",
        f"{show_count(counters.messages_in, 'message')} in and {counters.messages_out:,} out",
    ]
    if counters.octets_saved:
        parts.append(f"{show_octets(counters.octets_saved)} saved by resuming")
    for number, text in (
        (counters.refusals, show_count(counters.refusals, "refusal")),
        (counters.malformed, show_count(counters.malformed, "malformed message")),
        (counters.errors_sent(), f"{show_count(counters.errors_sent(), 'error')} sent"),
        (counters.errors_received(), f"{show_count(counters.errors_received(), 'error')} received"),
    ):
        if number:
            parts.append(text)
    return ", ".join(parts)


def describe_left(status: PeerStatus) -> Iterator[str]:
    """Yield a line about each transfer that is not finished."""
    if not isinstance(status, ServerStatus):
        if status.under_way is not None:
            yield f"left: {_describe_file(status.under_way)}; the next start continues"
        return
    behind = [client for client in status.clients if client.under_way is not None or client.queued]
    for client in behind[:CLIENTS_SHOWN]:
        file = [_describe_file(client.under_way)] if client.under_way is not None else []
        changes = [show_count(client.queued, "change")] if client.queued else []
        yield f"left for {client.label}: {' and '.join([*file, *changes])}; sent when it connects again"
    if len(behind) > CLIENTS_SHOWN:
        yield f"left for {len(behind) - CLIENTS_SHOWN:,} more clients; sent when they connect again"


def _describe_file(file: UnderWay) -> str:
    if file.size is None:
        return f"{show(file.path)} after {file.octets:,} octets"
    return f"{show(file.path)} after {file.octets:,} of {file.size:,} octets"
