"""What holds in every simulation: random trees, traffic, latencies, losses, kills, hung brokers and partitions.

When all faults are over and nobody asks any more, each request has had its one final answer, unless its client died;
no broker waits for anything; the tree is whole; and an event that follows comes to everybody.
"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.simulate.durations import Lognormal, Uniform
from specwire.runtime.flux.simulate.run import Simulation
from specwire.runtime.flux.simulate.scenario import (
    Broker,
    Hang,
    Kill,
    Links,
    Load,
    Partition,
    Publication,
    Scenario,
    Service,
    Start,
)
from specwire.runtime.flux.topology import Tree
from tests.examples import examples

ASKED_S, WHOLE_S, END_S = 25.0, 110.0, 120.0

RANKS = st.sampled_from(("all", "leaves", "level 1", "10%", "50%", "0"))
VICTIMS = st.sampled_from(("leaves", "level 1", "10%", "30%", "0"))
TIMES = st.floats(1.0, 20.0)
SHORT = st.floats(0.0, 30.0)
LATENCIES = st.sampled_from((0.0, 0.001, 0.1, Uniform(0.0, 0.05), Lognormal(0.001, 1.5)))

SCENARIOS = st.builds(
    Scenario,
    seed=st.integers(0, 1000),
    duration_s=st.just(END_S),
    links=st.builds(
        Links,
        latency_s=LATENCIES,
        loss=st.sampled_from((0.0, 0.01, 0.1)),
        handshake_round_trips=st.integers(0, 4),
    ),
    broker=st.builds(Broker, receive_s=st.sampled_from((0.0, 0.0001)), send_s=st.sampled_from((0.0, 0.0001))),
    start=st.builds(Start, delay_s=st.sampled_from((0.0, Uniform(0.0, 2.0)))),
    service=st.just((Service(name="work", answer_s=Uniform(0.0, 2.0)),)),
    rpc=st.lists(
        st.builds(
            Load,
            clients=RANKS,
            to=st.sampled_from(("any", "upstream", "random", "leaves", "0")),
            topic=st.sampled_from(("broker.ping", "work.do", "no.such")),
            end_s=st.just(ASKED_S),
        ),
        min_size=1,
        max_size=3,
    ).map(tuple),
    event=st.just(
        (
            Publication(at_s=1.0, rank=1, topic="early", every_s=0.5, count=40, subscribers="10%"),
            Publication(at_s=WHOLE_S, topic="late"),
        )
    ),
    kill=st.lists(
        st.builds(
            Kill,
            at_s=TIMES,
            ranks=VICTIMS,
            restart_after_s=SHORT,
            how=st.sampled_from(("process", "machine")),
        ),
        max_size=2,
    ).map(tuple),
    hang=st.lists(st.builds(Hang, at_s=TIMES, ranks=VICTIMS, for_s=SHORT), max_size=2).map(tuple),
    partition=st.lists(st.builds(Partition, at_s=TIMES, ranks=VICTIMS, for_s=SHORT), max_size=2).map(tuple),
)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.builds(Tree, st.integers(5, 30), st.sampled_from((0, 1, 2, 5))), SCENARIOS)
def test_everything_settles(tree: Tree, scenario: Scenario) -> None:
    """Whatever happens."""
    simulation = Simulation(Settings(tree=tree), scenario, through_wire=False)
    report = simulation.run(lambda now: None)
    for load in report.rpc:
        assert load.asked == load.answered + sum(load.errors.values()) + load.died
        assert load.repeated == 0
    engines = [host.engine for host in simulation.network.hosts if host is not None]
    assert len(engines) == tree.size
    assert [engine.rank for engine in engines if not engine.is_online] == []
    assert {engine.rank: waits for engine in engines if (waits := waiting(engine))} == {}
    assert engines[0].overlay.status.word == "full"
    (late,) = [events for events in report.events if events.topic == "late"]
    assert late.complete == 1


def waiting(engine: BrokerEngine) -> int:
    """Return how many requests a broker still waits for."""
    children = engine.overlay.children.known.values()
    return (
        len(engine.overlay.tracker)
        + sum(len(child.tracker) for child in children)
        + sum(engine.registry.pending().values())
    )
