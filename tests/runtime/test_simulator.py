"""The simulator: one seed is one run, and it disturbs only as ZeroMQ and a store may."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.generated import zre
from specwire.runtime.kernel.effects import (
    Ask,
    AwaitRoom,
    CancelAsk,
    Connect,
    HostEffect,
    Log,
    Now,
    Return,
    Send,
    Stop,
    Story,
    Wait,
    ask,
    commit,
)
from specwire.runtime.kernel.engine import PackageCodec, StoryEngine
from specwire.runtime.kernel.events import (
    Answered,
    Called,
    Event,
    MessageReceived,
    Noticed,
    PeerConnected,
    PeerDisconnected,
    PeerId,
    Reloaded,
    RoomMade,
    Started,
    Stopping,
)
from specwire.runtime.kernel.log import LogEvent
from specwire.runtime.kernel.service import HandlerError
from specwire.runtime.kernel.store import Execute, Schema, Statement
from specwire.runtime.simulator import Disturbances, SimulatedNode, SimulatedStore, Simulator

UP = PeerId("up")
CODEC = PackageCodec(zre)
SEEDS = st.integers(0, 2**32)


class Noted(LogEvent, frozen=True):
    """Anything that a test looks for."""

    what: Any


@dataclass
class Sender:
    """Engine that connects, sends numbered messages, and connects again when it is disconnected."""

    count: int
    endpoint: str = "tcp://server"
    connections: int = 0
    sent: list[int] = field(default_factory=list)

    def handle(self, event: Event, now: float) -> Iterable[HostEffect]:
        """Connect at the start and after each loss; send one message for each call."""
        match event:
            case Started() | PeerDisconnected():
                self.connections += 1
                return (Connect(UP, self.endpoint, b"\x01sender"),)
            case Called(request=number):
                self.sent.append(number)
                return (Send(UP, zre.Ping(sequence=number)),)
            case Stopping(reason=reason):
                return (Send(UP, zre.PingOk(sequence=0)), Stop(reason))
        return (Log(Noted(event)),)

    def deadline(self) -> float | None:
        """Return None."""
        return None


@dataclass
class Receiver:
    """Engine that keeps the numbers of messages, by peer, and answers with the same number."""

    received: defaultdict[PeerId, list[int]] = field(default_factory=lambda: defaultdict(list))
    gone: list[PeerId] = field(default_factory=list)

    def handle(self, event: Event, now: float) -> Iterable[HostEffect]:
        """Keep and answer."""
        match event:
            case MessageReceived(peer=peer, message=message):
                self.received[peer].append(message.sequence)
                return (Send(peer, zre.PingOk(sequence=message.sequence)),)
            case PeerDisconnected(peer=peer):
                self.gone.append(peer)
            case Called(request=peer):
                return (Send(peer, zre.Ping(sequence=1)),)
            case Stopping(reason=reason):
                return (Stop(reason),)
        return ()

    def deadline(self) -> float | None:
        """Return None."""
        return None


def meeting(seed: int, lost: float = 0.0, messages: int = 50) -> tuple[Simulator, Sender, Receiver]:
    """Let a sender send to a receiver, one message every millisecond."""
    simulator = Simulator(seed, Disturbances(lost_connections=lost, delay_s=(0.0, 0.02)))
    receiver, sender = Receiver(), Sender(messages)
    simulator.add("server", receiver, CODEC, listeners={"front": "tcp://server"})
    simulator.add("client", sender, CODEC)
    for number in range(messages):
        simulator.at(number / 1000, partial(simulator.call, "client", number))
    simulator.run(10.0)
    return simulator, sender, receiver


@given(SEEDS, st.sampled_from([0.0, 0.05, 0.3]))
def test_one_seed_is_one_run(seed: int, lost: float) -> None:
    """Every event, with its time."""
    assert meeting(seed, lost)[0].trace == meeting(seed, lost)[0].trace


@given(SEEDS)
def test_connections_keep_the_order(seed: int) -> None:
    """However long messages take, nothing is lost without a loss of the connection."""
    _, _, receiver = meeting(seed)
    (numbers,) = receiver.received.values()
    assert numbers == list(range(50))


@given(SEEDS)
def test_messages_are_lost_with_their_connection(seed: int) -> None:
    """What arrives is in order and arrives once; each loss is told to the side that connected."""
    _, sender, receiver = meeting(seed, lost=0.1)
    (numbers,) = receiver.received.values() or ([],)
    assert numbers == sorted(set(numbers))
    if numbers != list(range(50)):
        assert sender.connections > 1


def test_handover_and_losses() -> None:
    """A listener is told of a lost peer by the next message to it; a new connection is the same peer."""
    simulator, _, receiver = meeting(1)
    (peer,) = receiver.received
    simulator.lose_connections("client", "server")
    simulator.call("server", peer)
    simulator.run(11.0)
    assert receiver.gone == [peer]
    simulator.call("client", 99)
    simulator.run(12.0)
    assert receiver.received[peer][-1] == 99
    simulator.call("server", peer)
    simulator.run(13.0)
    assert receiver.gone == [peer], "it is there again"


def test_nobody_listens() -> None:
    """Each attempt fails, until the server is there."""
    simulator = Simulator(1)
    sender = Sender(1)
    node = simulator.add("client", sender, CODEC)
    simulator.run(0.1)
    assert sender.connections > 2 and not node.logged(Noted)
    simulator.add("server", Receiver(), CODEC, listeners={"front": "tcp://server"})
    simulator.run(0.2)
    assert [event.what for event in node.logged(Noted)] == [PeerConnected(UP)]


def test_last_messages_arrive() -> None:
    """Those that were sent before `Stop`; a killed engine says nothing."""
    for how in ("stop", "kill"):
        simulator, _, receiver = meeting(1)
        (numbers,) = receiver.received.values()
        numbers.clear()
        getattr(simulator, how)("client")
        simulator.run(11.0)
        assert numbers == ([0] if how == "stop" else [])


@dataclass
class Clerk:
    """State of an engine that stores what it is called with."""

    accepted: list[Any] = field(default_factory=list)
    refused: list[Any] = field(default_factory=list)


def react(clerk: Clerk, event: Event) -> Story:
    """Commit, ask, wait, reload."""
    match event:
        case Called(call=call, request=("ask", number)):
            answered = yield from ask(number)
            yield Return(call, answered.value or answered.failure)
        case Called(call=call, request=("wait", seconds)):
            yield Wait(call, (yield Now()) + seconds)
            yield Return(call, (yield Now()))
        case Called(call=call, request=record):
            failure = yield from commit(record)
            (clerk.refused if failure else clerk.accepted).append(record)
            yield Return(call, failure)
        case Reloaded(settings=settings):
            yield Log(Noted(settings))
        case Stopping(reason=reason):
            yield Stop(reason)


class NumberRecords:
    """Records that are numbers; one that is there already fails."""

    schema = Schema(1, ("CREATE TABLE number (number INTEGER PRIMARY KEY)",))

    def statements(self, record: int) -> Sequence[Statement]:
        """Return one INSERT."""
        return (Execute("INSERT INTO number VALUES (?)", (record,)),)

    def load(self, connection: sqlite3.Connection) -> list[int]:
        """Return the numbers in order."""
        return [number for (number,) in connection.execute("SELECT number FROM number ORDER BY number")]


def handle_number(number: int) -> int:
    """Return the square; 13 and 14 do not work."""
    if number == 13:
        raise OSError("not 13")
    if number == 14:
        raise HandlerError("not 14")
    return number * number


@given(SEEDS, st.sampled_from([0.0, 0.3, 1.0]), st.integers(0, 30))
def test_acknowledged_is_stored(seed: int, failed: float, count: int) -> None:
    """What the store has is exactly what the engine was told of, in the order of the commits."""
    simulator = Simulator(seed, Disturbances(failed_commits=failed, commit_s=(0.0, 0.1)))
    clerk = Clerk()
    store = SimulatedStore(NumberRecords())
    node = simulator.add("clerk", StoryEngine(partial(react, clerk)), CODEC, store=store)
    for number in range(count):
        simulator.at(number / 100, partial(simulator.call, "clerk", number))
    simulator.run(60.0)
    assert node.records == clerk.accepted == store.load()
    assert sorted(clerk.accepted + clerk.refused) == list(range(count))
    assert len(clerk.refused) in {0.0: (0,), 1.0: (count,)}.get(failed, range(count + 1))


def test_killed_engine_stores_nothing_more() -> None:
    """A commit on its way is lost with a kill, and completed by a stop. The next engine finds what is stored."""
    simulator = Simulator(1, Disturbances(commit_s=(1.0, 1.0)))
    stores = {name: SimulatedStore(NumberRecords()) for name in ("one", "other")}

    def start(name: str) -> SimulatedNode:
        return simulator.add(name, StoryEngine(partial(react, Clerk())), CODEC, store=stores[name])

    nodes = [start(name) for name in stores]
    simulator.call("one", 1)
    simulator.call("other", 2)
    simulator.run(0.5)
    simulator.kill("one")
    simulator.stop("other")
    simulator.run(5.0)
    assert [node.records for node in nodes] == [[], [2]]
    for name in stores:
        start(name)
    assert [event.restored for _, _, event in simulator.trace[-2:] if isinstance(event, Started)] == [[], [2]]


def test_records_are_stored_as_by_a_host() -> None:
    """A record that the database refuses fails alone. An engine that commits needs a store."""
    simulator = Simulator(1)
    node = simulator.add(
        "clerk", StoryEngine(partial(react, Clerk())), CODEC, store=SimulatedStore(NumberRecords())
    )
    calls = [simulator.call("clerk", number) for number in (5, 5, 6)]
    simulator.run(1.0)
    answers = [node.returned[call].value for call in calls]
    assert answers == ["", "UNIQUE constraint failed: number.number", ""] and node.records == [5, 6]
    simulator.add("other", StoryEngine(partial(react, Clerk())), CODEC)
    with pytest.raises(AssertionError, match="other commits, and has no store"):
        simulator.call("other", 7)


def test_clock_handlers_and_reload() -> None:
    """Ten hours pass at once, and exactly."""
    simulator = Simulator(1)
    clerk = StoryEngine(partial(react, Clerk()))
    node = simulator.add("clerk", clerk, CODEC, handlers={int: handle_number})
    calls = [
        simulator.call("clerk", request)
        for request in (("wait", 36_000.0), ("ask", 5), ("ask", 13), ("ask", 14))
    ]
    simulator.reload("clerk", "settings")
    simulator.run(40_000.0)
    assert [node.returned[call].value for call in calls] == [36_000.0, 25, "not 13", "not 14"]
    assert node.logged(Noted) == [Noted("settings")]
    simulator.stop("clerk", "enough")
    assert node.stopped == "enough"
    assert simulator.call("clerk", ("ask", 1)) not in node.returned


@dataclass
class Waiter:
    """Engine that asks for room when a peer sends, and asks its host on a call; it keeps what comes of it."""

    rooms: list[RoomMade] = field(default_factory=list)
    answers: list[Answered] = field(default_factory=list)
    noticed: list[Any] = field(default_factory=list)

    def handle(self, event: Event, now: float) -> Iterable[HostEffect]:
        """Ask for room of 100 octets; perform the effects of a call."""
        match event:
            case MessageReceived(peer=peer):
                return (AwaitRoom(peer, 100), AwaitRoom(peer))
            case Called(request=effects):
                return tuple(effects)
            case RoomMade():
                self.rooms.append(event)
            case Answered():
                self.answers.append(event)
            case Noticed(value=value):
                self.noticed.append(value)
        return ()

    def deadline(self) -> float | None:
        """Return None."""
        return None


@given(SEEDS)
def test_room_is_some_part_of_what_is_asked_for(seed: int) -> None:
    """At least one octet, later; nothing for a small message, and nothing for a peer that has gone."""
    simulator = Simulator(seed)
    waiter = Waiter()
    simulator.add("server", waiter, CODEC, listeners={"front": "tcp://server"})
    simulator.add("client", Sender(2), CODEC)
    simulator.run(1.0)
    simulator.call("client", 1)
    simulator.run(2.0)
    assert sorted(room.octets == 0 for room in waiter.rooms) == [False, True]
    assert all(0 <= room.octets <= 100 for room in waiter.rooms)
    simulator.call("client", 2)
    while simulator.trace[-1][2] != MessageReceived(waiter.rooms[0].peer, zre.Ping(sequence=2)):
        simulator.run(simulator.now + 1e-5)
    simulator.kill("client")
    simulator.run(3.0)
    assert len(waiter.rooms) == 2


def test_cancelled_request_is_not_answered() -> None:
    """Its handler is not called."""
    simulator = Simulator(1)
    waiter, handled = Waiter(), list[str]()
    node = simulator.add("one", waiter, CODEC, handlers={str: handled.append})
    simulator.call("one", [Ask("first", 1), Ask("second", 2)])
    simulator.call("one", [CancelAsk(1)])
    simulator.run(1.0)
    assert (handled, waiter.answers, node.cancelled) == (["second"], [Answered(2)], {1})


def test_outside_changes() -> None:
    """The engine has them at once."""
    simulator = Simulator(1)
    waiter = Waiter()
    simulator.add("one", waiter, CODEC)
    simulator.notice("one", "a change")
    assert waiter.noticed == ["a change"]
