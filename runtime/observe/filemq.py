"""Page and metrics of a FILEMQ server or subscriber.

The tree of a server is its publications, each with the clients that subscribed to something in it.
"""

from __future__ import annotations

from specwire.runtime.filemq.names import covers
from specwire.runtime.filemq.status import (
    ClientStatus,
    Peer,
    PeerStatus,
    PublicationStatus,
    ServerStatus,
    SubscriberStatus,
)
from specwire.runtime.kernel.status import measure
from specwire.runtime.log.text import show_peer
from specwire.runtime.observe.common import about, measure_taps, tabulate_taps
from specwire.runtime.observe.families import Family
from specwire.runtime.observe.view import (
    Column,
    Counted,
    Fact,
    Health,
    Node,
    Notice,
    Subject,
    View,
    branch,
    newest,
    tabulate,
    word,
)
from specwire.runtime.quantities import show_count, show_octets

CLIENT_COLUMNS = (
    Column("client"),
    Column("user"),
    Column("subscriptions"),
    Column("under way"),
    Column("done", "share"),
    Column("speed / s", "octets"),
    Column("to come", "count"),
    Column("credit", "octets"),
    Column("sent", "octets"),
    Column("connected", "seconds"),
)
TONES = {"open": "good", "opening": "fair", "waiting": "fair", "ended": "bad"}
SUBSCRIPTIONS_SHOWN = 3


def peer_subject(peer: Peer) -> Subject:
    """Return a running server or subscriber for page and metrics."""

    def totals() -> tuple[float, ...]:
        counters = peer.counters
        return counters.content_octets, counters.files, counters.messages_in, counters.messages_out

    return Subject(
        counted=(
            Counted("content", "octets"),
            Counted("files"),
            Counted("messages in"),
            Counted("messages out"),
        ),
        totals=totals,
        measure=lambda: measure_peer(peer.status()),
        view=lambda: view_peer(peer.status()),
        health=lambda: view_peer(peer.status()).health,
    )


def measure_peer(status: PeerStatus) -> list[Family]:
    """Return the metrics of a server or a subscriber."""
    role = "filemq-server" if isinstance(status, ServerStatus) else "filemq-subscriber"
    return [
        *about(role, status.protocol, status.process.uptime_s),
        *measure(status, "specwire_filemq"),
        *measure_taps(status.captures),
    ]


def view_peer(status: PeerStatus) -> View:
    """Return the page of a server or a subscriber."""
    return view_server(status) if isinstance(status, ServerStatus) else view_subscriber(status)


def view_server(status: ServerStatus) -> View:
    """Return the page of a server."""
    clients, counters = status.clients, status.counters
    files = sum(publication.files for publication in status.publications)
    octets = sum(publication.octets for publication in status.publications)
    return View(
        title="FILEMQ server",
        name=word(status.endpoint),
        health=Health("serving", "good"),
        facts=_facts(status),
        gauges=(
            Fact("published files", files, "count"),
            Fact("published content", octets, "octets"),
            Fact("clients", len(clients), "count"),
            Fact("files under way", sum(client.under_way is not None for client in clients), "count"),
            Fact("changes to come", sum(client.queued for client in clients), "count"),
            Fact("credit", sum(client.credit for client in clients), "octets"),
            Fact("content sent", counters.content_octets, "octets"),
            Fact("refusals", counters.refusals, "count"),
        ),
        tree=branch(status.endpoint, status.publications, lambda published: _publication(published, clients)),
        tables=(
            tabulate("Clients", CLIENT_COLUMNS, clients, _client, empty="no client is connected"),
            *tabulate_taps(status.captures),
        ),
        notices=_notices(status),
    )


def _publication(published: PublicationStatus, clients: tuple[ClientStatus, ...]) -> Node:
    there = [
        client
        for client in clients
        if any(covers(path, published.path) or covers(published.path, path) for path in client.subscriptions)
    ]
    note = f"{show_count(published.files, 'file')}, {show_octets(published.octets)}"
    return branch(published.path, there, _subscriber, note=note)


def _subscriber(client: ClientStatus) -> Node:
    note = client.user
    if client.under_way is not None:
        note = f"{note} gets {client.under_way.path}".strip()
    return Node(word(show_peer(client.label)), word(note), "good")


def _client(client: ClientStatus) -> tuple[str | float | None, ...]:
    paths = client.subscriptions
    shown = ", ".join(paths[:SUBSCRIPTIONS_SHOWN])
    if len(paths) > SUBSCRIPTIONS_SHOWN:
        shown += f" and {len(paths) - SUBSCRIPTIONS_SHOWN:,} more"
    file = client.under_way
    return (
        show_peer(client.label),
        client.user,
        shown,
        "" if file is None else file.path,
        None if file is None or file.size is None else _share(file.octets, file.size),
        None if file is None else file.octets_per_s,
        client.queued,
        client.credit,
        client.octets_sent,
        client.connected_s,
    )


def view_subscriber(status: SubscriberStatus) -> View:
    """Return the page of a subscriber."""
    counters, file = status.counters, status.under_way
    under_way = () if file is None else (file,)
    columns = (
        Column("file"),
        Column("done", "share"),
        Column("of", "octets"),
        Column("speed / s", "octets"),
    )
    tone = TONES.get(status.connection, "")
    return View(
        title="FILEMQ subscriber",
        name=word(status.inbox),
        health=Health(word(status.connection), tone),  # type: ignore[arg-type]
        facts=(*_facts(status), Fact("server", word(status.endpoint))),
        gauges=(
            Fact("files held", status.files, "count"),
            Fact("files received", counters.files, "count"),
            Fact("content received", counters.content_octets, "octets"),
            Fact("waits for the disk", status.pending_octets, "octets"),
            Fact("peerings", counters.peerings, "count"),
            Fact("refusals", counters.refusals, "count"),
        ),
        tree=branch(status.endpoint, status.paths, lambda path: Node(word(path))),
        tables=(
            tabulate(
                "Under way",
                columns,
                under_way,
                lambda one: (
                    one.path,
                    None if one.size is None else _share(one.octets, one.size),
                    one.size,
                    one.octets_per_s,
                ),
                empty="no file is under way",
            ),
            *tabulate_taps(status.captures),
        ),
        notices=_notices(status),
    )


def _facts(status: PeerStatus) -> tuple[Fact, ...]:
    return (
        Fact("up", status.process.uptime_s, "seconds"),
        Fact("protocol", status.protocol),
        Fact("process", str(status.process.pid)),
        Fact("specwire", status.process.version),
    )


def _notices(status: PeerStatus) -> tuple[Notice, ...]:
    return newest(
        Notice(
            refusal.at,
            word(
                f"{refusal.name}{f' of {show_peer(refusal.peer)}' if refusal.peer else ''}: {refusal.reason}"
            ),
        )
        for refusal in status.refusals
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
