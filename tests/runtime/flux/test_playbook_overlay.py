"""The tree: how brokers join, stay, are lost and leave; one sentence of the measured facts a test."""

from __future__ import annotations

from math import inf

import msgspec
import pytest

from specwire.generated.flux import Control, Event, Request, Response
from specwire.runtime.flux.actions import (
    PARENT,
    Action,
    DropChild,
    LeaveParent,
    Link,
    Report,
    Stopped,
    ToChild,
    ToParent,
)
from specwire.runtime.flux.answering import pack, unpack_object
from specwire.runtime.flux.broker import BrokerEngine
from specwire.runtime.flux.control import DISCONNECT, HEARTBEAT, STATUSES, Status
from specwire.runtime.flux.events import ChildLeft, ChildRefused, ChildTorpid, Dropped, ParentLost
from specwire.runtime.flux.flags import STREAMING
from tests.runtime.flux.tree import CHAIN, Tree, alone, join, member


def hello(uuid: str = "leaf", rank: int = 2) -> Request:
    """Return a hello of a leaf."""
    word = {"rank": rank, "version": 22528, "uuid": uuid, "status": 1, "hostname": "vm"}
    return Request(topic="overlay.hello", payload=pack(word), rolemask=1)


def answers(actions: list[Action]) -> list[Response]:
    """Return the responses that go to children."""
    return [
        action.message
        for action in actions
        if isinstance(action, ToChild) and isinstance(action.message, Response)
    ]


def upward(actions: list[Action]) -> list[object]:
    """Return what goes to the parent."""
    return [action.message for action in actions if isinstance(action, ToParent)]


# --- hello


@pytest.mark.parametrize(
    ("changes", "errnum"),
    [
        ({"version": 22527}, 22),
        ({"rank": 1}, 22),
        ({"rank": 0}, 22),
        ({"rank": 3}, 22),
        ({"rank": -1}, 22),
        ({"uuid": "else"}, 71),
        ({"uuid": 5}, 71),
        ({"rank": "2"}, 71),
    ],
)
def test_hello_that_does_not_fit_is_refused(changes: dict[str, object], errnum: int) -> None:
    """Another version, a rank that is not a child, a uuid that is not the connection's: an error, and no child."""
    engine = alone(1)
    engine.start(0.0)
    word = {"rank": 2, "version": 22528, "uuid": "leaf", "status": 1, "hostname": "vm", **changes}
    request = Request(topic="overlay.hello", payload=pack(word), rolemask=1)
    actions = engine.from_child("leaf", request, 0.0)
    assert [answer.errnum for answer in answers(actions)] == [errnum]
    assert not engine.overlay.children.present
    (report,) = [action.event for action in actions if isinstance(action, Report)]
    assert isinstance(report, ChildRefused)


def test_hello_is_for_the_owner() -> None:
    """It has the owner's role."""
    engine = alone(1)
    engine.start(0.0)
    actions = engine.from_child("leaf", hello().replace(rolemask=2), 0.0)
    assert [answer.errnum for answer in answers(actions)] == [1]


def test_uuid_of_another_broker_is_refused() -> None:
    """A uuid names one broker: EEXIST."""
    tree = Tree(3, 2)
    root, child = tree.engines[0], tree.engines[1].uuid
    actions = root.from_child(child, hello(child, rank=2), 0.0)
    assert [answer.errnum for answer in answers(actions)] == [17]
    actions = root.from_child(root.uuid, hello(root.uuid, rank=2), 0.0)
    assert [answer.errnum for answer in answers(actions)] == [17]


def test_hello_that_is_said_again_is_answered_again() -> None:
    """The first answer may have been lost; nothing else changes."""
    engine = member()
    actions = engine.from_child("leaf", hello(), 1.0)
    assert actions == [
        ToChild("leaf", Response(topic="overlay.hello", payload=b'{"uuid":"middle"}\0')),
    ]


def test_rank_that_comes_again_replaces_the_old_broker() -> None:
    """It was killed before we noticed: the old one is lost, the new one is let in."""
    engine = member()
    actions = engine.from_child("fresh", hello("fresh"), 1.0)
    assert ToChild("leaf", DISCONNECT) in actions
    assert [*engine.overlay.children.present] == ["fresh"]
    assert engine.overlay.status is Status.FULL
    (left,) = [a.event for a in actions if isinstance(a, Report) and isinstance(a.event, ChildLeft)]
    assert (left.child, left.lost) == ("leaf", True)


@pytest.mark.parametrize(
    "message",
    [
        Request(topic="broker.ping"),
        Response(topic="x"),
        Event(topic="x"),
        HEARTBEAT,
        Request(topic="overlay.goodbye"),
    ],
)
def test_unknown_peer_is_told_to_disconnect(message: Request | Response | Event | Control) -> None:
    """A non-hello from an unknown peer: DISCONNECT."""
    engine = member()
    actions = engine.from_child("stranger", message, 0.0)
    assert actions[0] == ToChild("stranger", DISCONNECT)
    assert len(actions) == 2


def test_until_the_reply_only_control_is_accepted() -> None:
    """Messages before it are dropped; DISCONNECT is obeyed."""
    engine = alone(2)
    engine.start(0.0)
    for message in (Event(topic="a", sequence=3), Request(topic="broker.ping", routes=("middle",))):
        (report,) = engine.from_parent(message, 0.0)
        assert isinstance(report, Report)
        assert isinstance(report.event, Dropped)
    assert LeaveParent("the parent said to disconnect") in engine.from_parent(DISCONNECT, 0.0)


def test_hello_is_repeated_until_it_is_answered() -> None:
    """It may be lost with its connection: said again every `idle` seconds."""
    engine = alone(2)
    (first,) = upward(engine.start(0.0))
    assert engine.deadline == 5.0
    assert upward(engine.tick(4.9)) == []
    assert upward(engine.tick(5.0)) == [first]
    assert engine.deadline == 10.0


@pytest.mark.parametrize(
    "answer",
    [
        Response(topic="overlay.hello", errnum=22, payload=b"no\0"),
        Response(topic="overlay.hello", payload=b'{"uuid":"leaf"}\0'),
        Response(topic="overlay.hello", payload=b'{"uuid":""}\0'),
        Response(topic="overlay.hello"),
    ],
)
def test_refused_hello_ends_the_connection(answer: Response) -> None:
    """The broker leaves, and says why."""
    engine = alone(2)
    engine.start(0.0)
    actions = engine.from_parent(answer, 0.0)
    assert isinstance(actions[-1], LeaveParent)
    assert not engine.is_online


# --- time


def test_root_pulses_every_two_seconds() -> None:
    """Rank 0 publishes ``heartbeat.pulse`` every 2 s; what was missed is not made up for."""
    root = alone(0)
    root.start(0.0)
    join(alone(1), root)
    pulses = {}
    for now in (0.0, 1.0, 2.0, 3.9, 4.0, 11.0, 12.0, 13.0):
        pulses[now] = len([action for action in root.tick(now) if isinstance(action, ToChild)])
    assert pulses == {0.0: 1, 1.0: 0, 2.0: 1, 3.9: 0, 4.0: 1, 11.0: 1, 12.0: 0, 13.0: 1}


def test_idle_child_sends_heartbeat() -> None:
    """A child idle for 5 s sends HEARTBEAT; anything that it sends counts."""
    engine = member()
    engine.from_child("leaf", Event(topic="a"), 2.0)
    assert upward(engine.tick(6.9)) == []
    assert upward(engine.tick(7.0)) == [HEARTBEAT]
    assert engine.deadline == 12.0


def test_silent_child_is_torpid_then_lost() -> None:
    """A parent marks a silent child torpid after 30 s; one that stays silent is lost."""
    engine = member()
    engine.from_child("leaf", HEARTBEAT, 1.0)
    assert [a for a in engine.tick(30.9) if isinstance(a, Report)] == []
    assert Report(ChildTorpid(2, "leaf", "vm", True)) in engine.tick(31.0)
    assert engine.overlay.status.word == "full"
    assert engine.from_child("leaf", HEARTBEAT, 32.0) == [Report(ChildTorpid(2, "leaf", "vm", False))]
    engine.from_parent(Event(topic="heartbeat.pulse", sequence=1), 32.0)
    assert Report(ChildTorpid(2, "leaf", "vm", True)) in engine.tick(62.0)
    engine.from_parent(Event(topic="heartbeat.pulse", sequence=2), 300.0)
    actions = engine.tick(332.0)
    assert ToChild("leaf", DISCONNECT) in actions
    assert DropChild("leaf", "silent for 300 s") in actions
    assert engine.overlay.status is Status.DEGRADED


def test_deadlines_are_met_whatever_the_clock_says() -> None:
    """A tick at the deadline has its effect: sums of times are rounded, and nothing spins."""
    engine = member()
    start = 0.1 + 0.2
    engine.from_child("leaf", HEARTBEAT, start)
    now, ticks = start, 0
    while engine.deadline < inf:
        assert engine.deadline >= now
        now = engine.deadline
        engine.tick(now)
        ticks += 1
        assert ticks < 100
    assert not engine.is_online


def test_no_pulse_for_300_seconds() -> None:
    """No pulse for 300 s: the child disconnects."""
    engine = member()
    engine.from_parent(Event(topic="heartbeat.pulse", sequence=1), 10.0)
    engine.from_parent(Event(topic="other", sequence=2), 200.0)
    engine.from_child("leaf", HEARTBEAT, 300.0)
    assert engine.is_online and not [a for a in engine.tick(309.9) if isinstance(a, LeaveParent)]
    actions = engine.tick(310.0)
    assert actions[-1] == LeaveParent("no heartbeat.pulse for 300 s")
    assert ToChild("leaf", DISCONNECT) in actions


def test_ordinary_life_loses_nobody() -> None:
    """An hour in which nothing happens: everybody stays, nobody is torpid."""
    tree = Tree(13, 3)
    tree.advance(3600.0)
    assert all(engine.is_online for engine in tree.engines.values())
    assert tree.reported(ChildTorpid) == [] == tree.reported(ChildLeft)
    assert tree.engines[12].publisher.sequence == 3600 / 2 + 1


# --- status


def test_status_of_subtrees() -> None:
    """Full when all are there; degraded above a lost one; partial above one that said goodbye."""
    tree = Tree(7)
    words = {rank: engine.overlay.status.word for rank, engine in tree.engines.items()}
    assert set(words.values()) == {"full"}
    tree.kill(5)
    tree.settle()
    assert {rank: tree.engines[rank].overlay.status.word for rank in (0, 1, 2)} == {
        0: "degraded",
        1: "full",
        2: "degraded",
    }
    tree.start(5)
    tree.settle()
    assert tree.engines[0].overlay.status.word == "full"
    tree.perform(6, tree.engines[6].stop(tree.now))
    tree.settle()
    assert tree.stopped == {6}
    assert {rank: tree.engines[rank].overlay.status.word for rank in (0, 2)} == {0: "partial", 2: "partial"}


def test_status_is_told_when_it_changes_only() -> None:
    """STATUS goes up when the subtree's status changes."""
    engine = member()
    assert upward(engine.from_child("leaf", STATUSES[Status.DEGRADED], 1.0)) == [STATUSES[Status.DEGRADED]]
    assert upward(engine.from_child("leaf", STATUSES[Status.DEGRADED], 1.0)) == []
    assert upward(engine.from_child("leaf", Control(type_=1, status=99), 1.0)) == [STATUSES[Status.PARTIAL]]


@pytest.mark.parametrize("control", [Control(type_=2), Control(type_=77)])
def test_control_that_is_not_for_a_parent(control: Control) -> None:
    """It is dropped and counted; control messages are never routed."""
    (report,) = member().from_child("leaf", control, 0.0)
    assert isinstance(report, Report)
    assert isinstance(report.event, Dropped)


def test_control_that_is_not_for_a_child() -> None:
    """STATUS goes from child to parent only."""
    (report,) = member().from_parent(STATUSES[Status.FULL], 0.0)
    assert isinstance(report, Report)
    assert isinstance(report.event, Dropped)


def test_probe_of_the_parent_says_nothing() -> None:
    """A parent sends HEARTBEAT to find out whether the child can be reached."""
    assert member().from_parent(HEARTBEAT, 0.0) == []


def test_health_and_topology() -> None:
    """``overlay.health`` and ``overlay.topology`` of a tree with a loss, as tools read them."""
    tree = Tree(7)
    client = tree.client(0)
    tree.advance(10.0)
    tree.kill(5)
    tree.advance(2.0)
    value = unpack_object(client.ask("overlay.health", nodeid=2).payload)
    assert (value["rank"], value["status"]) == (2, "degraded")
    children = value["children"]
    assert [(child["rank"], child["status"]) for child in children] == [(5, "lost"), (6, "full")]
    assert [child["duration"] for child in children] == [2.0, 12.0]
    shape = unpack_object(client.ask("overlay.topology", {"rank": 2}, nodeid=2).payload)
    assert shape == {
        "rank": 2,
        "size": 3,
        "children": [{"rank": 5, "size": 1, "children": []}, {"rank": 6, "size": 1, "children": []}],
    }
    assert client.ask("overlay.topology", {"rank": 1}, nodeid=2).errnum == 2
    assert client.ask("overlay.topology", {"rank": -1}, nodeid=0).errnum == 2


def test_health_and_monitor_are_streams() -> None:
    """A change below is told to those who watch."""
    tree = Tree(3)
    client = tree.client(0)
    health = client.request("overlay.health", nodeid=0, flags=STREAMING)
    monitor = client.request("overlay.monitor", nodeid=0, flags=STREAMING)
    tree.settle()
    assert len(client.answers(health)) == 1
    assert len(client.answers(monitor)) == 2
    tree.kill(2)
    tree.settle()
    assert unpack_object(client.answers(health)[-1].payload)["status"] == "degraded"
    assert unpack_object(client.answers(monitor)[-1].payload)["status"] == "lost"
    client.request("overlay.cancel", {"matchtag": health})
    tree.settle()
    assert client.answers(health)[-1].errnum == 61


# --- loss


def test_lost_parent() -> None:
    """Parent loss: pending upstream RPCs get 113 with ``overlay disconnect``; the subtree is told to stop."""
    tree = Tree(7)
    near, far = tree.client(2), tree.client(6)
    tree.engines[0].add_service("work")
    tags = [client.request("work.do", {}, nodeid=0) for client in (near, far)]
    tree.settle()
    tree.kill(0)
    tree.settle()
    for client, tag in zip((near, far), tags, strict=True):
        (answer,) = client.answers(tag)
        assert (answer.errnum, answer.payload) == (113, b"overlay disconnect\0")
    assert tree.apart == {1, 2, 3, 4, 5, 6}
    assert {rank for rank, event in tree.reports if isinstance(event, ParentLost)} == tree.apart
    assert near.ask("broker.ping", {}, nodeid=0).errnum == 113
    assert near.ask("broker.ping", {}, nodeid=6).errnum == 113
    assert near.ask("broker.ping", {}, nodeid=2).errnum == 0


def test_subtree_joins_again_under_new_uuids() -> None:
    """Its brokers may rejoin with new identities, and all is as before."""
    tree = Tree(15, rejoin=True)
    client = tree.client(14)
    before = {rank: engine.uuid for rank, engine in tree.engines.items()}
    tree.kill(2)
    tree.start(2)
    tree.settle()
    below = {5, 6, 11, 12, 13, 14}
    assert {rank for rank, engine in tree.engines.items() if engine.uuid != before[rank]} == {2} | below
    assert client.ask("broker.ping", {}, nodeid=0).errnum == 0
    assert client.ask("broker.ping", {}, nodeid=7).errnum == 0
    assert tree.engines[0].overlay.status is Status.FULL


def test_hello_to_a_broker_between_two_lives_waits() -> None:
    """It is answered when the broker has its new uuid; the old one would lead responses to nobody."""
    tree = Tree(3, 1)
    tree.perform(1, tree.engines[1].parent_gone("cut", tree.now))
    tree.settle()
    assert tree.apart == {1, 2}
    tree.rejoin(2)
    tree.settle()
    assert not tree.engines[2].is_online
    tree.rejoin(1)
    tree.settle()
    assert tree.engines[2].overlay.parent == tree.engines[1].uuid
    for start, goal in ((0, 2), (2, 0), (1, 2), (2, 1)):
        assert tree.client(start).ask("broker.ping", {}, nodeid=goal).errnum == 0


def test_messages_under_the_old_uuid_are_refused() -> None:
    """The broker is forced to start anew before it comes back."""
    engine = member()
    engine.child_gone("leaf", "cut", 0.0)
    assert ToChild("leaf", DISCONNECT) in engine.from_child("leaf", HEARTBEAT, 1.0)


@pytest.mark.parametrize("link", [Link("child", "leaf"), Link("child", "stranger"), PARENT])
def test_malformed_message_of_a_neighbour(link: Link) -> None:
    """Disconnect of that peer, and nothing else is disturbed."""
    engine = member()
    actions = engine.malformed(link, "odd octets", 0.0)
    if link is PARENT:
        assert actions[-1] == LeaveParent("odd octets")
    else:
        assert ToChild(link.peer, DISCONNECT) in actions
        assert engine.is_online
    assert engine.counters.malformed == 1


# --- leaving


def test_stop_says_goodbye() -> None:
    """Leaving: ``overlay.goodbye``; children and clients are let go first, and the end comes with the answer."""
    engine = member()
    engine.accept_client("client", CHAIN.owner, 0.0)
    actions = engine.stop(1.0)
    kinds = [type(action).__name__ for action in actions if not isinstance(action, Report)]
    assert kinds == ["CloseClient", "ToChild", "DropChild", "ToParent"]
    assert engine.deadline == 3.0
    actions = engine.from_parent(Response(topic="overlay.goodbye"), 1.1)
    assert [type(action) for action in actions] == [LeaveParent, Stopped]
    assert engine.tick(100.0) == []
    assert engine.stop(101.0) == []


def test_stop_does_not_wait_for_ever() -> None:
    """A parent that does not answer: the broker ends all the same."""
    engine = member()
    engine.stop(1.0)
    assert isinstance(engine.tick(3.0)[-1], Stopped)


def test_stop_of_the_root_ends_all() -> None:
    """The subtree is told to stop, and nobody waits for anything."""
    tree = Tree(7)
    client = tree.client(6)
    tag = client.request("broker.ping", {}, nodeid=0)
    tree.perform(0, tree.engines[0].stop(tree.now))
    tree.settle()
    assert tree.stopped == {0}
    assert tree.apart == {1, 2, 3, 4, 5, 6}
    assert [answer.errnum for answer in client.answers(tag)] == [113]
    assert tree.pending() == {}


def test_goodbye_answers_what_was_pending_there() -> None:
    """A child that leaves owes nothing afterwards."""
    tree = Tree(3)
    tree.engines[2].add_service("work")
    client = tree.client(1)
    tag = client.request("work.do", {}, nodeid=2)
    tree.settle()
    tree.perform(2, tree.engines[2].stop(tree.now))
    tree.settle()
    assert [answer.errnum for answer in client.answers(tag)] == [113]
    assert tree.engines[0].overlay.status is Status.PARTIAL


def test_hello_to_a_broker_that_stops() -> None:
    """It is told to disconnect."""
    engine = member()
    engine.stop(1.0)
    assert ToChild("fresh", DISCONNECT) in engine.from_child("fresh", hello("fresh"), 1.0)


def test_no_table_of_the_tree() -> None:
    """An engine is small, and a hundred thousand share their settings: routing is computed."""
    settings = msgspec.structs.replace(
        CHAIN, tree=msgspec.structs.replace(CHAIN.tree, size=100_000, fanout=32)
    )
    engine = BrokerEngine(settings, 31, "uuid", lambda: "connector")
    assert engine.settings is settings
    assert not engine.overlay.children.present and not engine.overlay.children.known
