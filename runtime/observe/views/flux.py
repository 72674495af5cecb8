"""The page of a Flux broker: the tree from this rank down, its children, clients and services.

A broker itself knows its children alone. What is below them is found by asking (`specwire.runtime.observe.fluxtree`), where
somebody looks; without that the tree has one level.
"""

from __future__ import annotations

from specwire.runtime.flux.inquiry import FULL
from specwire.runtime.flux.narration import shorten
from specwire.runtime.flux.status import BrokerStatus, ChildStatus
from specwire.runtime.flux.survey import Branch
from specwire.runtime.observe.view import (
    MAX_BRANCHES,
    Column,
    Fact,
    Health,
    Node,
    Tone,
    View,
    branch,
    tabulate,
    word,
)
from specwire.runtime.observe.views.common import captured

TONES: dict[str, Tone] = {
    "full": "good",
    "partial": "fair",
    "degraded": "fair",
    "lost": "bad",
    "offline": "fair",
}
CHILD_COLUMNS = (
    Column("rank"),
    Column("host"),
    Column("uuid"),
    Column("subtree"),
    Column("there"),
    Column("silent", "seconds"),
    Column("pending", "count"),
)


def view_broker(status: BrokerStatus, tree: Branch | None = None) -> View:
    """Return what the page of a broker shows; `tree` is what was found by asking, None where nobody was asked."""
    present = sum(child.present for child in status.children)
    pending = status.pending_upward + sum(child.pending for child in status.children)
    counters, local = status.counters, status.local
    return View(
        title="Flux broker",
        name=f"rank {status.rank} of {status.size}",
        health=_health(status),
        facts=(
            Fact("up", status.up_s, "seconds"),
            Fact("clients come to", word(status.uri)),
            *((Fact("children come to", word(status.endpoint)),) if status.endpoint else ()),
            Fact("parent", word(shorten(status.parent)) if status.parent else "none"),
            Fact("uuid", word(shorten(status.uuid))),
            Fact("protocol", status.protocol),
            Fact("fanout", str(status.fanout)),
            Fact("services", ", ".join(map(word, status.services[:MAX_BRANCHES]))),
            Fact("process", str(status.pid)),
        ),
        gauges=(
            Fact("clients", local.clients, "count"),
            Fact(f"of {len(status.children)} children there", present, "count"),
            Fact("requests pending", pending, "count"),
            Fact("event sequence", status.sequence, "count"),
            Fact("unreachable", counters.unreachable, "count"),
            Fact("dropped", counters.dropped, "count"),
            Fact("events lost", counters.event_gaps, "count"),
            Fact("clients denied", local.denied, "count"),
        ),
        tree=_own_tree(status) if tree is None else _branch(tree),
        tables=(
            tabulate("Children", CHILD_COLUMNS, status.children, _child, empty="no broker is below this one"),
            *captured(status.captures),
        ),
    )


def _health(status: BrokerStatus) -> Health:
    if status.phase != "online":
        return Health(word(status.phase), "fair" if status.phase in ("new", "joining") else "bad")
    # What is lost is below: this broker does its work.
    return Health(word(status.subtree), "good" if status.subtree == FULL else "fair")


def _own_tree(status: BrokerStatus) -> Node:
    return branch(
        f"rank {status.rank}",
        status.children,
        lambda child: Node(
            f"rank {child.rank}", word(f"{child.hostname}, {child.status}"), TONES.get(child.status, "")
        ),
        note=status.subtree,
        tone=TONES.get(status.subtree, ""),
    )


def _branch(found: Branch) -> Node:
    silent = ", silent for too long" if found.torpid else ""
    host = f"{found.host}, " if found.host else ""
    note = f"{host}{found.status}{silent}{f': {found.error}' if found.error else ''}"
    tone: Tone = "fair" if found.torpid else TONES.get(found.status, "")
    return branch(f"rank {found.rank}", found.children, _branch, note=word(note), tone=tone)


def _child(child: ChildStatus) -> tuple[str | float | None, ...]:
    return (
        str(child.rank),
        child.hostname,
        shorten(child.uuid),
        f"{child.status}{', torpid' if child.torpid else ''}",
        "yes" if child.present else "no",
        child.idle_s if child.present else None,
        child.pending,
    )
