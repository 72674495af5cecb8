"""A peer's status in a few words, for its log: how it is from time to time, and what is left when it stops."""

from __future__ import annotations

from collections.abc import Iterator

from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.progress import UnderWay
from specwire.runtime.filemq.status import PeerStatus, ServerStatus
from specwire.runtime.log.text import show
from specwire.runtime.quantities import show_count, show_octets

CLIENTS_SHOWN = 5


def report(status: PeerStatus) -> str:
    """Return one line about how a peer is and what it has done."""
    return f"{describe_now(status)}; {describe_done(status)}"


def describe_now(status: PeerStatus) -> str:
    """Return how a peer is in this moment."""
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
    """Return what a peer has done since its start."""
    counters = status.counters
    files, deletions = show_count(counters.files, "file"), f"{counters.deletions:,}"
    if isinstance(status, ServerStatus):
        return f"sent {files}, withdrew {deletions}; {describe_traffic(counters)}"
    return f"received {files}, deleted {deletions}; {describe_traffic(counters)}"


def describe_traffic(counters: Counters) -> str:
    """Return what travelled, and what was refused."""
    parts = [
        f"{show_octets(counters.content_octets)} of content in {show_count(counters.chunks, 'chunk')}",
        f"{show_count(counters.messages_in, 'message')} in and {counters.messages_out:,} out",
    ]
    if counters.octets_saved:
        parts.append(f"{show_octets(counters.octets_saved)} saved by resuming")
    for number, what in (
        (counters.refusals, show_count(counters.refusals, "refusal")),
        (counters.malformed, show_count(counters.malformed, "malformed message")),
        (counters.errors_sent(), f"{show_count(counters.errors_sent(), 'error')} sent"),
        (counters.errors_received(), f"{show_count(counters.errors_received(), 'error')} received"),
    ):
        if number:
            parts.append(what)
    return ", ".join(parts)


def describe_left(status: PeerStatus) -> Iterator[str]:
    """Yield lines about what is not finished in this moment, none where everything is."""
    if not isinstance(status, ServerStatus):
        if status.under_way is not None:
            yield f"left: {_describe_file(status.under_way)}; the next start asks for the rest"
        return
    behind = [client for client in status.clients if client.under_way is not None or client.queued]
    for client in behind[:CLIENTS_SHOWN]:
        file = [_describe_file(client.under_way)] if client.under_way is not None else []
        changes = [show_count(client.queued, "change")] if client.queued else []
        yield f"left for {client.label}: {' and '.join([*file, *changes])}; it gets them when it asks again"
    if len(behind) > CLIENTS_SHOWN:
        yield f"left for {len(behind) - CLIENTS_SHOWN:,} more clients: they get it when they ask again"


def _describe_file(file: UnderWay) -> str:
    if file.size is None:
        return f"{show(file.path)} after {file.octets:,} octets"
    return f"{show(file.path)} after {file.octets:,} of {file.size:,} octets"
