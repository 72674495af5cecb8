"""Page and metrics of a Flux broker: the tree from this rank down, its children, clients and services.

A broker itself knows only its children. `FluxTree` asks them for what is below, as long as somebody
looks at the page; otherwise the tree has one level. Metrics have a label for the rank of a child,
and there are as many children as the fanout says.
"""

from __future__ import annotations

import asyncio

from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.handle import connect
from specwire.runtime.flux.inquiry import FULL
from specwire.runtime.flux.narration import shorten
from specwire.runtime.flux.serve import FluxBroker
from specwire.runtime.flux.status import BrokerStatus, ChildStatus
from specwire.runtime.flux.survey import Branch, Survey
from specwire.runtime.observe.common import about, measure_taps, tabulate_taps
from specwire.runtime.observe.families import MAX_VALUES, Family, counter, gauge
from specwire.runtime.observe.view import (
    MAX_BRANCHES,
    Column,
    Counted,
    Fact,
    Health,
    Node,
    Subject,
    Tone,
    View,
    branch,
    tabulate,
    word,
)

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
    """Return the page of a broker; `tree` is that of `FluxTree`, None for the broker's own knowledge."""
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
            *tabulate_taps(status.captures),
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


PHASES = ("new", "joining", "online", "apart", "leaving", "stopped")
SUBTREES = ("full", "partial", "degraded", "lost", "offline")


def measure_broker(status: BrokerStatus) -> list[Family]:
    """Return the metrics of a broker."""
    phase = Family(
        "specwire_flux_phase", "gauge", "1 for where the broker is on its way into the tree.", ("phase",)
    )
    for name in PHASES:
        phase.add(status.phase == name, name)
    subtree = Family(
        "specwire_flux_subtree", "gauge", "1 for how well it and what is below it are.", ("status",)
    )
    for name in dict.fromkeys((*SUBTREES, status.subtree)):
        subtree.add(status.subtree == name, name)
    return [
        *about("flux-broker", status.protocol, status.up_s),
        gauge("specwire_flux_rank", "Place of the broker in the tree.", status.rank),
        gauge("specwire_flux_instance_brokers", "Brokers that the instance is made for.", status.size),
        phase,
        subtree,
        *_of_children(status),
        gauge("specwire_flux_services", "Services that are registered here.", len(status.services)),
        gauge(
            "specwire_flux_upward_pending_requests",
            "Requests that the parent has to answer.",
            status.pending_upward,
        ),
        gauge("specwire_flux_event_sequence", "Number of the latest event that came here.", status.sequence),
        *_counted(status),
        *_of_clients(status),
        *measure_taps(status.captures),
    ]


def _of_children(status: BrokerStatus) -> list[Family]:
    present = Family("specwire_flux_child_present", "gauge", "1 where the child is in the tree.", ("rank",))
    torpid = Family(
        "specwire_flux_child_torpid", "gauge", "1 where it has been silent for too long.", ("rank",)
    )
    idle = Family("specwire_flux_child_idle_seconds", "gauge", "Time since it was heard.", ("rank",))
    pending = Family(
        "specwire_flux_child_pending_requests", "gauge", "Requests that it has to answer.", ("rank",)
    )
    for child in status.children[:MAX_VALUES]:
        rank = str(child.rank)
        present.add(child.present, rank)
        torpid.add(child.torpid, rank)
        idle.add(child.idle_s, rank)
        pending.add(child.pending, rank)
    here = gauge(
        "specwire_flux_children",
        "Children that are in the tree.",
        sum(child.present for child in status.children),
    )
    return [here, present, torpid, idle, pending]


def _counted(status: BrokerStatus) -> list[Family]:
    counters = status.counters
    messages = Family("specwire_flux_messages", "counter", "Messages that were routed.", ("type",))
    messages.add_each(
        {"request": counters.requests, "response": counters.responses, "event": counters.events}
    )
    return [
        messages,
        counter(
            "specwire_flux_unreachable_requests",
            "Requests answered here with EHOSTUNREACH.",
            counters.unreachable,
        ),
        counter("specwire_flux_dropped_messages", "Messages that went to nobody.", counters.dropped),
        counter("specwire_flux_malformed_messages", "Messages of brokers that are none.", counters.malformed),
        counter(
            "specwire_flux_cut_connections",
            "Connections that were cut off for an unfinished message.",
            counters.cut_off,
        ),
        counter("specwire_flux_lost_events", "Events that never came here.", counters.event_gaps),
    ]


def _of_clients(status: BrokerStatus) -> list[Family]:
    local = status.local
    messages = Family(
        "specwire_flux_client_messages", "counter", "Messages of clients by direction.", ("direction",)
    )
    messages.add_each({"in": local.received, "out": local.sent})
    return [
        gauge("specwire_flux_clients", "Clients that are connected.", local.clients),
        counter("specwire_flux_accepted_clients", "Clients that were let in.", local.accepted),
        counter("specwire_flux_denied_clients", "Clients that were not let in.", local.denied),
        counter(
            "specwire_flux_malformed_clients", "Connections that ended with no message.", local.malformed
        ),
        counter("specwire_flux_slow_clients", "Clients that were ended for not reading.", local.slow),
        messages,
    ]


def broker_subject(broker: FluxBroker) -> Subject:
    """Return a running broker for page and metrics."""
    engine = broker.engine
    tree = FluxTree(broker.uri, engine.rank, engine.settings.tree.size)

    def totals() -> tuple[float, ...]:
        counters = engine.counters
        return counters.requests, counters.responses, counters.events, counters.dropped

    return Subject(
        counted=(Counted("requests"), Counted("responses"), Counted("events"), Counted("dropped")),
        totals=totals,
        measure=lambda: measure_broker(broker.status()),
        view=lambda: view_broker(broker.status(), tree.latest()),
        health=lambda: view_broker(broker.status()).health,
        close=tree.close,
    )


LOOK_S = 2.0
"""Time from the end of a look to the next one."""

ASKED_FOR_S = 10.0
"""Looks continue for this time after the last request of the page."""

TIMEOUT_S = 2.0
"""Time that each broker has for its answer."""

MOST_BROKERS = 256
"""In a larger instance a look takes too long: only the children are shown."""


class FluxTree:
    """Tree below a broker, which is asked for as long as `latest` is called.

    Args:
        uri: of the broker's local socket.
        rank: where the tree begins.
        size: of the instance.
    """

    def __init__(self, uri: str, rank: int, size: int) -> None:
        self._uri, self._rank, self._is_small = uri, rank, 1 < size <= MOST_BROKERS
        self._latest: Branch | None = None
        self._asked_at = 0.0
        self._looking: asyncio.Task[None] | None = None

    def latest(self) -> Branch | None:
        """Return the last tree that was found, None for none yet; call it on the event loop."""
        loop = asyncio.get_running_loop()
        self._asked_at = loop.time()
        if self._is_small and (self._looking is None or self._looking.done()):
            self._looking = loop.create_task(self._look())
        return self._latest

    async def close(self) -> None:
        """Stop looking."""
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)

    async def _look(self) -> None:
        clock = asyncio.get_running_loop().time
        try:
            async with connect(self._uri, timeout_s=TIMEOUT_S) as handle:
                while clock() - self._asked_at < ASKED_FOR_S:
                    self._latest = await Survey(handle, TIMEOUT_S).look(self._rank)
                    await asyncio.sleep(LOOK_S)
        except FluxError:
            await asyncio.sleep(LOOK_S)  # the tree as it is known without asking is shown meanwhile
        finally:
            self._latest = None
