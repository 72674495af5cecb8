"""Text form of the status of FILEMQ peers: one paragraph for each peer, with tables.

Names and reasons that others chose (files, clients) are escaped before they reach the terminal.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.runtime.cli.console import output, wide_output
from specwire.runtime.filemq.status import (
    ClientStatus,
    PeerStatus,
    PublicationStatus,
    Refusal,
    ServerStatus,
    SubscriberStatus,
    UnderWay,
    report,
)
from specwire.runtime.log.text import show, show_peer
from specwire.runtime.quantities import show_duration, show_octets, show_rate, show_share

REFUSALS_SHOWN = 5
MISSING_SHOWN = 3
"""Missing files that are shown for each client."""

ENDLESS_CREDIT = 1 << 60


def print_status(peers: Sequence[PeerStatus]) -> None:
    """Write the status of each peer to standard output."""
    for number, peer in enumerate(peers):
        if number:
            _print("")
        if isinstance(peer, ServerStatus):
            _print_server(peer)
        else:
            _print_subscriber(peer)
        _print_refusals(peer.refusals)


def _print_server(server: ServerStatus) -> None:
    _print_heading(server, f"server {server.endpoint}")
    _print_table(
        ("published at", "folder", "files", "size"),
        [_publication_row(p) for p in server.publications],
        (2, 3),
    )
    doubts = [(d.name, d.reason) for p in server.publications for d in p.doubts]
    missing = [(p.path, "the folder is missing") for p in server.publications if p.missing]
    if doubts or missing:
        _print_table(("kept as it was known", "reason"), [*missing, *doubts])
    if server.clients:
        _print_table(
            ("client", "user", "subscribed to", "credit", "queued", "sent", "since"),
            [_client_row(client) for client in server.clients],
            (3, 4, 5, 6),
        )
    _print_files(
        [(client.label, client.under_way) for client in server.clients if client.under_way is not None]
    )
    waiting = [
        (name, show_peer(client.label), client.waits_for)
        for client in server.clients
        for name in client.missing[:MISSING_SHOWN]
    ]
    if waiting:
        _print_table(("missing file", "client", "waits for"), waiting)


def _print_subscriber(subscriber: SubscriberStatus) -> None:
    _print_heading(subscriber, f"subscriber of {subscriber.endpoint}")
    rows = [
        (
            subscriber.inbox,
            " ".join(subscriber.paths),
            subscriber.connection,
            f"{subscriber.files:,}",
            show_octets(subscriber.pending_octets),
            f"{subscriber.withheld:,}" if subscriber.withheld else "",
        )
    ]
    heads = ("inbox", "subscribed to", "connection", "files", "not on disk yet", "deletions withheld")
    _print_table(heads, rows, (3, 4, 5))
    if subscriber.under_way is not None:
        _print_files([("", subscriber.under_way)])


def _print_heading(peer: PeerStatus, what: str) -> None:
    process = peer.process
    _print(f"{what} ({peer.protocol}), process {process.pid}, up {show_duration(process.uptime_s)}")
    _print(f"  {report(peer)}")


def _publication_row(publication: PublicationStatus) -> tuple[str, ...]:
    return (
        publication.path,
        publication.folder,
        f"{publication.files:,}",
        show_octets(publication.octets),
    )


def _client_row(client: ClientStatus) -> tuple[str, ...]:
    return (
        show_peer(client.label),
        client.user,
        " ".join(client.subscriptions),
        "endless" if client.credit >= ENDLESS_CREDIT else show_octets(client.credit),
        f"{client.queued:,}",
        show_octets(client.octets_sent),
        show_duration(client.connected_s),
    )


def _print_files(files: Sequence[tuple[str, UnderWay]]) -> None:
    if not files:
        return
    rows = [
        (
            file.path,
            show_peer(label),
            show_share(file.octets, file.size),
            "" if file.size is None else show_octets(file.size),
            show_rate(file.octets_per_s),
        )
        for label, file in files
    ]
    _print_table(("file under way", "client", "done", "of", "rate"), rows, (2, 3, 4))


def _print_refusals(refusals: Sequence[Refusal]) -> None:
    if refusals:
        rows = [
            (refusal.at, refusal.name, show_peer(refusal.peer), refusal.reason)
            for refusal in refusals[-REFUSALS_SHOWN:]
        ]
        _print_table(("refused at", "what", "client", "reason"), rows)


def _print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> None:
    """Print rows under their heads; columns that are empty in every row are omitted."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=True, padding=(0, 1), header_style="bold")
    used = [n for n in range(len(heads)) if any(row[n] for row in rows)]
    for n in used:
        table.add_column(heads[n], justify="right" if n in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(show(row[n])) for n in used))
    console = wide_output()
    console.print()
    console.print(table)


def _print(line: str) -> None:
    console = output()
    console.print(show(line), markup=False, soft_wrap=not console.is_terminal)
