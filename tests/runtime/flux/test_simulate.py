"""The simulator's figures against those that follow by hand from a constant latency.

Times are sums of `HOP_S`, a power of two, so that they are exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import pytest

from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.simulate import Report, Scenario, simulate
from specwire.runtime.flux.simulate.report import LoadReport
from specwire.runtime.flux.simulate.scenario import Broker, Kill, Links, Load, Publication, Start, Timers
from specwire.runtime.flux.topology import Tree

HOP_S = 2**-10
PLAIN = Scenario(duration_s=6.5, links=Links(latency_s=HOP_S, handshake_round_trips=0))


def run(size: int, fanout: int, scenario: Scenario = PLAIN, *, through_wire: bool = False) -> Report:
    """Simulate a tree."""
    return simulate(Settings(tree=Tree(size, fanout)), scenario, through_wire=through_wire)


def changed(**parts: object) -> Scenario:
    """Return the plain scenario with other parts."""
    return msgspec.structs.replace(PLAIN, **parts)


@pytest.mark.parametrize(
    ("size", "fanout", "joined_hops", "full_hops"),
    [
        (1, 2, 0, 0),
        (2, 1, 2, 1),  # the hello of a leaf says that it is full
        (33, 0, 2, 1),
        (3, 1, 2, 3),  # rank 1 says so when it has been welcomed, two hops after its own hello
        (4, 1, 2, 4),  # from there each level adds a hop
        (15, 2, 2, 4),
        (31, 2, 2, 5),
    ],
)
def test_start_takes_a_hop_for_each_level(size: int, fanout: int, joined_hops: int, full_hops: int) -> None:
    """All brokers say hello at once; that the tree is full goes up through it."""
    start = run(size, fanout).start
    assert start.joined_s == joined_hops * HOP_S
    assert start.full_s == full_hops * HOP_S


def test_connections_are_made_before_anything_is_said() -> None:
    """Three round trips are six hops."""
    start = run(3, 1, changed(links=Links(latency_s=HOP_S, handshake_round_trips=3))).start
    assert start.full_s == (6 + 3) * HOP_S


def test_levels_may_start_one_after_the_other() -> None:
    """A broker that starts when its parent has joined says in its hello all that there is to say."""
    start = run(3, 1, changed(start=Start(level_s=0.5))).start
    # Rank 2 starts at 1 s; rank 1 hears it and says that it is full.
    assert start == type(start)(1.0 + 2 * HOP_S, 1.0 + 2 * HOP_S)


def only_load(size: int, fanout: int, scenario: Scenario) -> LoadReport:
    """Return what became of the one load."""
    (load,) = run(size, fanout, scenario).rpc
    return load


@pytest.mark.parametrize(
    ("clients", "to", "hops"),
    [
        ("3", "any", 0),  # broker.ping is a service of every broker
        ("3", "3", 0),
        ("3", "upstream", 2),
        ("3", "0", 4),
        ("0", "6", 4),
        ("3", "4", 4),
        ("3", "6", 8),  # up to rank 0 and down to rank 6, and back
    ],
)
def test_rpc_takes_the_way_through_the_tree(clients: str, to: str, hops: int) -> None:
    """Each link takes one latency, and nothing else takes time."""
    load = only_load(7, 2, changed(rpc=(Load(clients=clients, to=to, start_s=1.0, count=3, spread=False),)))
    assert (load.asked, load.answered, load.errors, load.open, load.repeated) == (3, 3, {}, 0, 0)
    assert [each.hops for each in load.hops] == [hops]
    assert load.latency is not None
    assert load.latency.least_s == load.latency.p50_s == load.latency.most_s == hops * HOP_S


def test_rpc_to_nobody_comes_back_with_the_error() -> None:
    """Only rank 0 says that there is no such service."""
    load = only_load(3, 1, changed(rpc=(Load(clients="2", topic="no.such", start_s=1.0, count=2),)))
    assert (load.asked, load.answered, load.errors, load.open) == (2, 0, {"ENOSYS": 2}, 0)


RECEIVE_S, SEND_S = 2**-8, 2**-7


def test_brokers_deal_with_one_message_after_the_other() -> None:
    """The client's request, the request at rank 0 and the response cost, and so do two messages sent."""
    busy = changed(
        broker=Broker(receive_s=RECEIVE_S, send_s=SEND_S),
        rpc=(Load(clients="1", to="0", start_s=1.0, count=1, spread=False),),
    )
    load = only_load(2, 1, busy)
    assert load.latency is not None
    assert load.latency.least_s == 2 * HOP_S + 3 * RECEIVE_S + 2 * SEND_S


def test_requests_that_come_together_wait_for_each_other() -> None:
    """Four children ask rank 0 at once: the last waits for those before it to be received and answered."""
    busy = changed(
        broker=Broker(receive_s=RECEIVE_S),
        rpc=(Load(clients="1-4", to="0", start_s=1.0, count=1, spread=False),),
    )
    load = only_load(5, 0, busy)
    assert load.latency is not None
    assert load.latency.least_s == 2 * HOP_S + 3 * RECEIVE_S
    assert load.latency.most_s == 2 * HOP_S + (3 + 3) * RECEIVE_S


@pytest.mark.parametrize(("size", "fanout", "levels"), [(2, 1, 1), (4, 1, 3), (15, 2, 3), (50, 0, 1)])
def test_events_go_down_level_by_level(size: int, fanout: int, levels: int) -> None:
    """The last broker has an event after as many hops as there are levels."""
    published = changed(event=(Publication(at_s=1.0, topic="news", count=5, subscribers="all"),))
    (news,) = [events for events in run(size, fanout, published).events if events.topic == "news"]
    assert (news.number, news.complete, news.least_reached) == (5, 5, size - 1)
    assert news.to_clients == 5 * size
    assert news.fan_out is not None
    assert news.fan_out.least_s == news.fan_out.most_s == levels * HOP_S


def test_events_leave_a_broker_one_after_the_other() -> None:
    """Where sending costs, the last of eight children gets an event eight costs later."""
    published = changed(broker=Broker(send_s=SEND_S), event=(Publication(at_s=1.0, topic="news"),))
    (news,) = [events for events in run(9, 0, published).events if events.topic == "news"]
    assert news.fan_out is not None
    assert news.fan_out.least_s == HOP_S + 8 * SEND_S


def test_messages_are_counted_where_they_are_received() -> None:
    """Of three children: a hello and a log line each, and a heartbeat after five seconds; three pulses by then."""
    top, bottom = run(4, 0).levels
    assert (top.brokers, top.received, top.sent) == (1, 3 + 3 + 3, 3 + 3 * 3)
    assert (bottom.brokers, bottom.received, bottom.most_received) == (3, 3 + 3 * 3, 1 + 3)


def test_times_of_the_engines_may_be_changed() -> None:
    """A pulse every second reaches two brokers six times."""
    (pulse,) = run(3, 0, changed(timers=Timers(heartbeat=1.0))).events
    assert (pulse.topic, pulse.number, pulse.complete, pulse.least_reached) == ("heartbeat.pulse", 6, 6, 2)


@dataclass
class Noted:
    """What was said of the progress."""

    times: list[float]


def test_progress_is_told() -> None:
    """The last word is the end."""
    noted = Noted([])
    simulate(Settings(tree=Tree(2)), PLAIN, on_progress=noted.times.append)
    assert noted.times == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 6.5]


LIVELY = Scenario(
    duration_s=20.0,
    links=Links(loss=0.01),
    rpc=(Load(clients="50%", to="random", rate_hz=5.0),),
    event=(Publication(at_s=1.0, rank=3, count=10, subscribers="10%"),),
    kill=(Kill(at_s=7.0, ranks="5%", restart_after_s=2.0),),
)


def test_runs_with_one_seed_are_alike() -> None:
    """Everything that is drawn comes from the seed."""
    first, again = run(60, 3, LIVELY), run(60, 3, LIVELY)
    assert first == again
    assert first != run(60, 3, msgspec.structs.replace(LIVELY, seed=1))


def test_the_wire_format_changes_nothing() -> None:
    """Whether messages are passed as they are or as the octets that they would be."""
    assert run(60, 3, LIVELY) == run(60, 3, LIVELY, through_wire=True)
