"""The measures of a Flux broker. Children are told apart by rank, of which there are as many as the fanout says."""

from __future__ import annotations

from specwire.runtime.flux.status import BrokerStatus
from specwire.runtime.observe.families import MAX_VALUES, Family, counter, gauge
from specwire.runtime.observe.metrics.common import about, captured

PHASES = ("new", "joining", "online", "apart", "leaving", "stopped")
SUBTREES = ("full", "partial", "degraded", "lost", "offline")


def measure(status: BrokerStatus) -> list[Family]:
    """Return the measures of a broker."""
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
        *captured(status.captures),
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
