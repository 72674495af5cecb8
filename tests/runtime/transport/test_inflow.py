"""When a message has no end: the judgement alone, with numbers in place of sockets, kernel and clock."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.runtime.cli.inflow_options import MESSAGE_OCTETS, UNDELIVERED_OCTETS
from specwire.runtime.flux.config import Settings as FluxSettings
from specwire.runtime.flux.topology import Tree
from specwire.runtime.norfab.limits import Settings as NorfabSettings
from specwire.runtime.transport.inflow import (
    CALM_OCTETS,
    FIRST_OCTETS,
    FRAME_COST,
    HANDSHAKE_OCTETS,
    MEMORY_FACTOR,
    ROUNDS,
    SPARE_MEMORY_OCTETS,
    Excess,
    InboundConnection,
    InflowBounds,
    InflowState,
    Overrun,
    judge,
)
from specwire.runtime.transport.inflow import UNDELIVERED_OCTETS as TOTAL_OCTETS
from specwire.runtime.transport.tcp_connections import TcpOctets

MIB = 1 << 20
BOUNDS = InflowBounds(message_octets=2 * MIB, legal_octets=16 * MIB, undelivered_octets=64 * MIB)
PING_OCTETS, PONG_OCTETS = 9, 7


class Socket:
    """The connections of a socket, and what a look finds."""

    def __init__(self, connections: int = 1, bounds: InflowBounds = BOUNDS) -> None:
        self.state, self.bounds = InflowState(), bounds
        self.connections = [InboundConnection(number, f"10.0.0.{number}:1") for number in range(connections)]
        for connection in self.connections:
            self.state.connections[connection.descriptor] = connection
            self.state.note(connection, TcpOctets(HANDSHAKE_OCTETS, 0, 0), is_heard=False)
        self.received = [HANDSHAKE_OCTETS] * connections
        self.sent = [0] * connections
        self.messages = 0

    def come(self, octets: int, number: int = 0, *, answered: int = 0) -> None:
        """Octets come over a connection, and have been read."""
        self.received[number] += octets
        self.sent[number] += answered

    def look(self, *, heard: tuple[int, ...] = (), drained: bool = True, unread: int = 0) -> list[Overrun]:
        """Look at all connections; a message was received over those that are `heard`."""
        self.messages += len(heard)
        for number, connection in enumerate(self.connections):
            octets = TcpOctets(self.received[number], self.sent[number], unread)
            self.state.note(connection, octets, is_heard=number in heard)
            connection.ascertain(
                is_drained=drained, messages=self.messages, connections=len(self.connections)
            )
        return judge(self.state, self.connections, self.bounds)


def test_a_stranger_may_send_less_than_who_has_said_something() -> None:
    socket = Socket(2)
    socket.come(100, 1)
    assert socket.look(heard=(1,)) == []
    for number in range(2):
        socket.come(2 * MIB, number)
    assert socket.look() == []
    for number in range(2):
        socket.come(MIB // 2, number)
    [overrun] = socket.look()
    assert (overrun.connection.descriptor, overrun.excess) == (0, Excess.FIRST)
    assert overrun.octets == 2 * MIB + MIB // 2
    socket.come(14 * MIB, 1)
    overrun = socket.look()[1]
    assert (overrun.connection.descriptor, overrun.excess) == (1, Excess.MESSAGE)


def test_the_first_message_may_never_have_more_than_the_largest() -> None:
    bounds = InflowBounds(message_octets=8 * MIB, legal_octets=MIB)
    stranger, known = InboundConnection(1, "a"), InboundConnection(2, "b", is_known=True)
    assert bounds.of(stranger) == bounds.of(known) < 1.1 * MIB


def test_messages_settle_what_came() -> None:
    socket = Socket()
    for _ in range(1000):
        socket.come(MIB)
        assert socket.look(heard=(0,)) == []
    assert socket.state.undelivered == 0


def test_what_libzmq_has_not_read_does_not_count() -> None:
    socket = Socket()
    socket.come(6 * MIB)
    assert socket.look(unread=5 * MIB) == []
    assert socket.state.undelivered == MIB
    assert socket.look()[0].octets == 6 * MIB


def test_heartbeats_are_no_message() -> None:
    """A PING each second for days, without a word of any other kind: more octets than a stranger may send."""
    socket = Socket()
    connection = socket.connections[0]
    received = sent = 0
    for _ in range(3 * 86400):
        received, sent = received + PING_OCTETS, sent + PONG_OCTETS
        connection.note(TcpOctets(HANDSHAKE_OCTETS + received, sent, 0), is_heard=False)
    assert connection.undelivered == 0


@pytest.mark.parametrize(("octets", "answered"), [(9, 0), (2, 0), (2, 6), (11, 8), (100, 200)])
def test_what_is_not_answered_like_a_heartbeat_counts(octets: int, answered: int) -> None:
    socket = Socket()
    for _ in range(1000):
        socket.come(octets, answered=answered)
        socket.look()
    assert socket.state.undelivered == 1000 * octets


def test_while_reading_is_paused_whole_messages_may_wait() -> None:
    socket = Socket()
    socket.come(50 * MIB)
    for _ in range(1000):
        assert socket.look(drained=False) == []
    assert socket.look(heard=(0,)) == [], "received after all"
    assert socket.state.undelivered == 0


def test_an_endless_message_is_found_when_reading_goes_on() -> None:
    socket = Socket()
    socket.come(50 * MIB)
    assert socket.look(drained=False) == []
    [overrun] = socket.look(drained=True)
    assert overrun.excess is Excess.FIRST


def test_where_messages_always_come_two_rounds_tell() -> None:
    """One peer keeps the server busy, so that it is never drained; the others are judged all the same."""
    socket = Socket(3)
    socket.come(5 * MIB, 1)
    rounds = 0
    while not (overruns := socket.look(heard=(0,), drained=False)):
        socket.come(1000, 0)
        rounds += 1
        assert rounds < 4 * ROUNDS * 3
    assert [overrun.connection.descriptor for overrun in overruns] == [1]
    assert rounds >= 3, "each connection could have had its turn"


def test_all_together_are_bounded_and_the_largest_is_ended() -> None:
    socket = Socket(10, InflowBounds(legal_octets=16 * MIB, undelivered_octets=20 * MIB))
    for number in range(10):
        socket.come(MIB, number)
    socket.look(heard=tuple(range(10)))
    for number in range(10):
        socket.come((number + 1) * MIB, number)
    overruns = socket.look(drained=False)
    assert [overrun.connection.descriptor for overrun in overruns] == [9, 8, 7, 6, 5]
    assert {overrun.excess for overrun in overruns} == {Excess.TOTAL}
    for overrun in overruns:
        socket.state.forget(overrun.connection)
    assert socket.state.undelivered == 15 * MIB


def grow(socket: Socket, *, octets: int, memory: int, times: int, messages: int = 0) -> list[Overrun]:
    """Octets come, for which the process grows, again and again; return the overrun, if there is one."""
    resident = 100 * MIB
    socket.state.measure(resident, socket.messages, FRAME_COST)
    for _ in range(times):
        socket.come(octets)
        resident += memory
        socket.messages += messages
        socket.look()
        socket.state.measure(resident, socket.messages, FRAME_COST)
        if overruns := judge(socket.state, socket.connections, socket.bounds):
            return overruns
    return []


def test_small_frames_are_known_by_the_memory_that_they_take() -> None:
    socket = Socket()
    socket.connections[0].is_known = True
    [overrun] = grow(socket, octets=MIB // 10, memory=32 * MIB // 10, times=100)
    assert overrun.excess is Excess.MEMORY
    assert SPARE_MEMORY_OCTETS < overrun.bound < overrun.found < overrun.bound + 4 * MIB
    assert overrun.octets < MIB


def test_large_frames_take_what_they_have() -> None:
    socket = Socket()
    socket.connections[0].is_known = True
    assert grow(socket, octets=MIB, memory=int(1.1 * MIB), times=16) == []


def test_growth_that_octets_cannot_explain_is_not_theirs() -> None:
    """A folder is read while a message comes slowly: 34 octets count for each of its octets, no more."""
    socket = Socket()
    assert grow(socket, octets=CALM_OCTETS // 10, memory=10 * MIB, times=50) == []
    assert 0 < socket.state.measured <= FRAME_COST * socket.state.undelivered < 50 * 10 * MIB


def test_growth_that_messages_explain_is_not_theirs() -> None:
    socket = Socket()
    socket.connections[0].is_known = True
    assert grow(socket, octets=MIB // 10, memory=2 * MIB, times=50, messages=500) == []
    assert grow(socket, octets=MIB // 10, memory=2 * MIB, times=50) != []


def test_a_process_that_cannot_read_its_memory_measures_nothing() -> None:
    socket = Socket()
    socket.come(MIB)
    socket.look()
    socket.state.measure(None, 0, FRAME_COST)
    socket.state.measure(500 * MIB, 0, FRAME_COST)
    assert socket.state.measured == 0


def test_memory_is_bounded_where_reading_is_paused_too() -> None:
    state = InflowState()
    for number in range(64):
        connection = state.connections[number] = InboundConnection(number, "a", received=MIB, settled=0)
        state.growing[number] = connection
        state.undelivered += MIB
    assert state.memory_bound(BOUNDS) == SPARE_MEMORY_OCTETS + int(MEMORY_FACTOR * 64 * MIB)


@pytest.mark.parametrize(
    ("excess", "told"),
    [
        (Excess.FIRST, "send a small message first, or raise message_octets"),
        (Excess.MESSAGE, "the largest message that is accepted has 1,000"),
        (Excess.TOTAL, "raise undelivered_octets"),
        (Excess.MEMORY, "in small frames, which took 3,000 octets of memory"),
    ],
)
def test_the_log_says_who_what_how_much_and_what_to_do(excess: Excess, told: str) -> None:
    line = Overrun(InboundConnection(7, "10.1.2.3:4567"), excess, 2000, 3000, 1000).describe()
    assert line.startswith("10.1.2.3:4567 was disconnected: 2,000 octets of a message without end came")
    assert told in line
    assert "1,000" in line


def test_the_servers_and_their_options_have_the_same_bounds() -> None:
    assert MESSAGE_OCTETS == FIRST_OCTETS
    assert UNDELIVERED_OCTETS == TOTAL_OCTETS
    for settings_ in (NorfabSettings(), FluxSettings(Tree(1))):
        assert settings_.message_octets == FIRST_OCTETS
        assert settings_.undelivered_octets == TOTAL_OCTETS


class HonestPeer:
    """Sends whole messages, of which libzmq has read some octets."""

    def __init__(self, connection: InboundConnection) -> None:
        self.connection = connection
        self.read = HANDSHAKE_OCTETS
        self.ends: deque[int] = deque()
        """Where the messages end that were not delivered yet, in octets of the connection."""

    def has_whole(self) -> bool:
        return bool(self.ends) and self.ends[0] <= self.read


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),  # who
        st.integers(1, 16 * MIB),  # sends a message of so many octets
        st.floats(0, 1),  # of which libzmq reads this part
        st.integers(0, 6),  # messages that are received then
        st.booleans(),  # and then a look
    ),
    max_size=60,
)


@given(STEPS)
@settings(deadline=None)
def test_who_sends_whole_messages_is_never_cut(steps: list[tuple[int, int, float, int, bool]]) -> None:
    """Whatever is read when, and however seldom messages are received: one of each peer in turn."""
    state = InflowState()
    bounds = InflowBounds(legal_octets=16 * MIB, undelivered_octets=1 << 40)
    peers = [HonestPeer(InboundConnection(number, str(number), is_known=True)) for number in range(4)]
    for peer in peers:
        state.connections[peer.connection.descriptor] = peer.connection
        state.note(peer.connection, TcpOctets(HANDSHAKE_OCTETS, 0, 0), is_heard=False)
    turns = deque(peers)
    heard: set[int] = set()
    messages = 0
    for who, octets, part, receives, looks in steps:
        peer = peers[who]
        if peer.ends and peer.read < peer.ends[-1]:
            peer.read = peer.ends[-1]
        peer.ends.append(peer.read + octets)
        peer.read += int(octets * part)
        for _ in range(receives):
            for _ in range(len(turns)):
                turns.rotate(-1)
                if turns[-1].has_whole():
                    turns[-1].ends.popleft()
                    heard.add(turns[-1].connection.descriptor)
                    messages += 1
                    break
        if looks:
            drained = not any(other.has_whole() for other in peers)
            for other in peers:
                found = other.connection.descriptor in heard
                state.note(other.connection, TcpOctets(other.read, 0, 0), is_heard=found)
                other.connection.ascertain(is_drained=drained, messages=messages, connections=len(peers))
            heard.clear()
            assert judge(state, state.connections.values(), bounds) == []
