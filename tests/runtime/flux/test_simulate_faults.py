"""What the simulator says of faults: times that follow by hand, and what holds whatever is drawn."""

from __future__ import annotations

import msgspec
import pytest

from specwire.runtime.flux.downlink import GIVE_UP_S
from specwire.runtime.flux.simulate import Report, Scenario
from specwire.runtime.flux.simulate.scenario import Hang, Kill, Links, Load, Partition, Publication, Service
from tests.runtime.flux.test_simulate import HOP_S, PLAIN, run

SLOW = Service(name="work", ranks="0", answer_s=100.0)
ASK_SLOW = Load(clients="2", topic="work.do", to="0", start_s=1.0, count=1, spread=False)


def faulty(duration_s: float, **parts: object) -> Scenario:
    """Return the plain scenario with faults."""
    return msgspec.structs.replace(PLAIN, duration_s=duration_s, **parts)


def test_killed_process_is_known_a_hop_later() -> None:
    """What is pending through it fails at once, below it; it comes back when its children look for it again."""
    kill = Kill(at_s=5.0, ranks="1", restart_after_s=1.0)
    report = run(3, 1, faulty(10.0, service=(SLOW,), rpc=(ASK_SLOW,), kill=(kill,)))
    (fault,) = report.faults
    assert (fault.kind, fault.brokers, fault.pending, fault.failed) == ("kill", 1, 1, 1)
    assert fault.failed_s == fault.answered_s == fault.noticed_s == HOP_S
    # Rank 2 hears of it after a hop, and tries after 0.05, 0.1, 0.2 and 0.4 s in vain, then after 0.8 s. Its hello
    # takes a hop, and so does the welcome, or what rank 1 then tells rank 0.
    assert fault.joined_s == fault.full_s == pytest.approx(HOP_S + 1.55 + 2 * HOP_S, abs=1e-9)
    assert report.rpc[0].errors == {"EHOSTUNREACH": 1}


def test_client_dies_with_its_broker() -> None:
    """Nobody awaits the answer then, and nobody gets it; the client comes again with the broker."""
    kill = Kill(at_s=1.5, ranks="2", restart_after_s=1.0)
    asking = msgspec.structs.replace(ASK_SLOW, count=3)
    report = run(3, 1, faulty(4.5, service=(SLOW,), rpc=(asking,), kill=(kill,)))
    (load,) = report.rpc
    assert (load.asked, load.died, load.open, load.errors) == (3, 1, 2, {})
    assert report.faults[0].pending == 0


def test_dead_machine_is_known_when_nothing_is_acknowledged() -> None:
    """The pulse of 6 s reaches it no more."""
    report = run(2, 1, faulty(30.0, kill=(Kill(at_s=5.0, ranks="1", how="machine"),)))
    (fault,) = report.faults
    assert fault.noticed_s == 1.0 + HOP_S + GIVE_UP_S
    assert (fault.full_s, fault.joined_s) == (None, None)


def test_hung_broker_is_torpid_and_comes_back() -> None:
    """What came meanwhile is dealt with afterwards; nobody is lost."""
    asking = Load(clients="0", to="1", start_s=10.0, count=1, spread=False)
    report = run(2, 1, faulty(50.0, rpc=(asking,), hang=(Hang(at_s=5.0, ranks="1", for_s=40.0),)))
    (load,) = report.rpc
    assert load.latency is not None
    assert load.latency.most_s == 45.0 + HOP_S - 10.0
    assert (report.told["ChildTorpid"], report.told.get("ChildLeft"), load.errors) == (2, None, {})


def test_short_partition_delays() -> None:
    """A request that meets it goes on when it is over, at 9 s: three hops are left."""
    asking = Load(clients="2", to="0", start_s=6.0, count=1, spread=False)
    cut = Partition(at_s=5.0, ranks="1", for_s=4.0)
    report = run(3, 1, faulty(12.0, rpc=(asking,), partition=(cut,)))
    (load,) = report.rpc
    assert load.latency is not None
    assert load.latency.most_s == 3.0 + 3 * HOP_S
    assert report.faults[0].noticed_s is None
    assert "EventGap" not in report.told


def test_rank_0_may_be_started_again() -> None:
    """Its events begin with 1 again, and everybody takes them: no pulse is missing, and nobody leaves for want of one."""
    pulses = Publication(at_s=1.0, topic="news", every_s=0.1, count=90)
    late = Publication(at_s=15.0, topic="late")
    kill = Kill(at_s=10.0, ranks="0", restart_after_s=1.0)
    report = run(4, 1, faulty(16.0, event=(pulses, late), kill=(kill,)))
    (after,) = [events for events in report.events if events.topic == "late"]
    assert (after.complete, after.least_reached) == (1, 3)
    assert "Dropped" not in report.told
    assert "EventGap" not in report.told  # what the new one had published before they came, they cannot know


def test_long_partition_ends_the_connection() -> None:
    """Both sides find out when nothing is acknowledged, and the subtree comes back under fresh names."""
    asking = Load(clients="2", to="0", start_s=6.0, count=1, spread=False)
    cut = Partition(at_s=5.0, ranks="1", for_s=60.0)
    report = run(3, 1, faulty(90.0, rpc=(asking,), partition=(cut,)))
    (fault,), (load,) = report.faults, report.rpc
    assert load.errors == {"EHOSTUNREACH": 1}
    assert fault.noticed_s == 1.0 + GIVE_UP_S
    assert fault.full_s is not None
    assert 60.0 < fault.full_s < 70.0  # the longest delay between two tries is 5 s, at each of two levels
    assert report.told["ParentLost"] == 2  # rank 1 told rank 2
    assert report.told["EventGap"] == 2


def test_lossy_link_delays_and_loses_nothing() -> None:
    """Of ten messages one is lost on its way, and sent again; every one arrives, and in order."""
    scenario = faulty(
        60.0,
        links=Links(latency_s=HOP_S, loss=0.1, handshake_round_trips=0),
        rpc=(Load(clients="all", to="random", start_s=10.0, rate_hz=2.0, end_s=30.0),),
        event=(Publication(at_s=1.0, topic="news", every_s=0.01, count=200),),
    )
    report = run(15, 2, scenario)
    (load,) = report.rpc
    (news,) = [events for events in report.events if events.topic == "news"]
    assert load.answered == load.asked == 15 * 40
    assert load.latency is not None
    assert load.latency.most_s > Links().retransmit_s
    assert news.complete == 200
    assert "EventGap" not in report.told
    assert "ChildLeft" not in report.told


def test_hopeless_link_breaks() -> None:
    """Where nearly everything is lost, connections end; what was on them is answered all the same."""
    scenario = faulty(
        300.0,
        links=Links(latency_s=HOP_S, loss=0.7, handshake_round_trips=0),
        rpc=(Load(clients="all", to="0", rate_hz=0.2, end_s=100.0),),
    )
    report = run(7, 2, scenario)
    assert report.told["ParentLost"] > 0
    assert_settled(report)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("how", ["process", "machine"])
def test_every_request_has_one_final_answer(seed: int, how: str) -> None:
    """Whoever is killed, hangs or is cut off while requests are on their way through the tree."""
    scenario = Scenario(
        seed=seed,
        duration_s=120.0,
        links=Links(loss=0.001),
        service=(Service(name="work", answer_s=0.5),),
        rpc=(
            Load(clients="all", to="random", rate_hz=2.0, end_s=30.0),
            Load(clients="30%", topic="work.do", to="random", rate_hz=2.0, end_s=30.0),
            Load(clients="leaves", topic="work.do", to="upstream", rate_hz=0.5, end_s=30.0),
        ),
        event=(Publication(at_s=1.0, rank=1, every_s=0.5, count=50),),
        kill=(
            Kill(at_s=5.0, ranks="5%", restart_after_s=3.0, how="machine" if how == "machine" else "process"),
            Kill(at_s=15.0, ranks="level 1", restart_after_s=0.0),
        ),
        hang=(Hang(at_s=10.0, ranks="3%", for_s=5.0),),
        partition=(Partition(at_s=20.0, ranks="3%", for_s=30.0),),
    )
    report = run(100, 4, scenario)
    assert_settled(report)
    assert sum(load.errors.get("EHOSTUNREACH", 0) for load in report.rpc) > 0
    assert all(fault.full_s is not None for fault in report.faults if fault.noticed_s is not None)
    assert report.faults[-1].joined_s is not None


def assert_settled(report: Report) -> None:
    """Every request was answered once, or died with its client."""
    for load in report.rpc:
        assert load.asked == load.answered + sum(load.errors.values()) + load.died
        assert (load.open, load.repeated) == (0, 0)
