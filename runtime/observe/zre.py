"""Page and metrics of a ZRE peer. The tree is this peer with those that it knows."""

from __future__ import annotations

from specwire.runtime.kernel.status import measure
from specwire.runtime.observe.common import about, measure_taps, tabulate_taps
from specwire.runtime.observe.families import Family
from specwire.runtime.observe.view import (
    Column,
    Counted,
    Fact,
    Health,
    Node,
    Subject,
    View,
    branch,
    tabulate,
    word,
)
from specwire.runtime.zre import ZrePeer, ZreStatus

PEER_COLUMNS = (
    Column("peer"),
    Column("uuid"),
    Column("endpoint"),
    Column("groups"),
    Column("silent", "seconds"),
)


def zre_subject(peer: ZrePeer) -> Subject:
    """Return a running peer for page and metrics."""

    def totals() -> tuple[float, ...]:
        host = peer.status().host
        return host.messages_in, host.messages_out, host.octets_in, host.octets_out

    return Subject(
        counted=(
            Counted("messages in"),
            Counted("messages out"),
            Counted("octets in", "octets"),
            Counted("octets out", "octets"),
        ),
        totals=totals,
        measure=lambda: measure_zre(peer.status()),
        view=lambda: view_zre(peer.status()),
        health=lambda: view_zre(peer.status()).health,
    )


def measure_zre(status: ZreStatus) -> list[Family]:
    """Return the metrics of a peer."""
    return [
        *about("zre-peer", "zre", status.host.process.uptime_s),
        *measure(status, "specwire_zre"),
        *measure_taps(status.host.captures),
    ]


def view_zre(status: ZreStatus) -> View:
    """Return the page of a peer."""
    host, process = status.host, status.host.process
    return View(
        title="ZRE peer",
        name=word(status.name),
        health=Health("running", "good"),
        facts=(
            Fact("up", process.uptime_s, "seconds"),
            Fact("endpoint", word(status.endpoint)),
            Fact("uuid", status.uuid),
            Fact("groups", word(", ".join(status.groups))),
            Fact("process", str(process.pid)),
            Fact("specwire", process.version),
        ),
        gauges=(
            Fact("known peers", len(status.peers), "count"),
            Fact("endpoints without an answer", len(status.dialing), "count"),
            Fact("malformed messages", host.counters.malformed, "count"),
        ),
        tree=branch(
            status.name, status.peers, lambda one: Node(word(one.name), word(", ".join(one.groups)), "good")
        ),
        tables=(
            tabulate(
                "Peers",
                PEER_COLUMNS,
                status.peers,
                lambda one: (one.name, one.uuid, one.endpoint, ", ".join(one.groups), one.silent_s),
                empty="no peer is known",
            ),
            *tabulate_taps(host.captures),
        ),
    )
