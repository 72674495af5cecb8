"""Bounds on unfinished messages: decisions, with numbers in place of sockets, kernel and clock."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specwire.runtime.cli.flux_options import MESSAGE_OCTETS, UNDELIVERED_OCTETS
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
    find_overruns,
)
from specwire.runtime.transport.inflow import UNDELIVERED_OCTETS as TOTAL_OCTETS
from specwire.runtime.transport.tcp_connections import TcpOctets

MIB = 1 << 20
BOUNDS = InflowBounds(message_octets=2 * MIB, legal_octets=16 * MIB, undelivered_octets=64 * MIB)
PING_OCTETS, PONG_OCTETS = 9, 7


class FakeSocket:
    """Counts of a socket's connections, and the overruns that they give."""

    def __init__(self, connections: int = 1, bounds: InflowBounds = BOUNDS) -> None:
        self.state, self.bounds = InflowState(), bounds
        self.connections = [InboundConnection(number, f"10.0.0.{number}:1") for number in range(connections)]
        for connection in self.connections:
            self.state.connections[connection.descriptor] = connection
            self.state.update(connection, TcpOctets(HANDSHAKE_OCTETS, 0, 0), delivered=False)
        self.received = [HANDSHAKE_OCTETS] * connections
        self.sent = [0] * connections
        self.messages = 0

    def receive(self, octets: int, number: int = 0, *, answered: int = 0) -> None:
        """Add octets that libzmq has read from a connection, and octets that it has sent."""
        self.received[number] += octets
        self.sent[number] += answered

    def look(
        self, *, delivered: tuple[int, ...] = (), drained: bool = True, unread: int = 0
    ) -> list[Overrun]:
        """Count all connections, after a message over each in `delivered`; return the overruns."""
        self.messages += len(delivered)
        for number, connection in enumerate(self.connections):
            octets = TcpOctets(self.received[number], self.sent[number], unread)
            self.state.update(connection, octets, delivered=number in delivered)
            connection.update_certain(
                is_drained=drained, messages=self.messages, connections=len(self.connections)
            )
        return find_overruns(self.state, self.connections, self.bounds)


def test_a_first_message_may_be_smaller_than_later_ones() -> None:
    socket = FakeSocket(2)
    socket.receive(100, 1)
    assert socket.look(delivered=(1,)) == []
    for number in range(2):
        socket.receive(2 * MIB, number)
    assert socket.look() == []
    for number in range(2):
        socket.receive(MIB // 2, number)
    [overrun] = socket.look()
    assert (overrun.connection.descriptor, overrun.excess) == (0, Excess.FIRST)
    assert overrun.octets == 2 * MIB + MIB // 2
    socket.receive(14 * MIB, 1)
    overrun = socket.look()[1]
    assert (overrun.connection.descriptor, overrun.excess) == (1, Excess.MESSAGE)


def test_the_first_message_may_never_have_more_than_the_largest() -> None:
    bounds = InflowBounds(message_octets=8 * MIB, legal_octets=MIB)
    stranger, known = InboundConnection(1, "a"), InboundConnection(2, "b", is_known=True)
    assert bounds.of(stranger) == bounds.of(known) < 1.1 * MIB


def test_a_delivered_message_settles_the_octets_before_it() -> None:
    socket = FakeSocket()
    for _ in range(1000):
        socket.receive(MIB)
        assert socket.look(delivered=(0,)) == []
    assert socket.state.undelivered == 0


def test_octets_that_libzmq_has_not_read_do_not_count() -> None:
    socket = FakeSocket()
    socket.receive(6 * MIB)
    assert socket.look(unread=5 * MIB) == []
    assert socket.state.undelivered == MIB
    assert socket.look()[0].octets == 6 * MIB


def test_heartbeats_do_not_count() -> None:
    """A PING each second for three days has more octets than a first message may have."""
    socket = FakeSocket()
    connection = socket.connections[0]
    received = sent = 0
    for _ in range(3 * 86400):
        received, sent = received + PING_OCTETS, sent + PONG_OCTETS
        connection.update(TcpOctets(HANDSHAKE_OCTETS + received, sent, 0), delivered=False)
    assert connection.undelivered == 0


@pytest.mark.parametrize(("octets", "answered"), [(9, 0), (2, 0), (2, 6), (11, 8), (100, 200)])
def test_octets_that_are_not_answered_like_a_heartbeat_count(octets: int, answered: int) -> None:
    socket = FakeSocket()
    for _ in range(1000):
        socket.receive(octets, answered=answered)
        socket.look()
    assert socket.state.undelivered == 1000 * octets


def test_whole_messages_may_wait_while_reading_is_paused() -> None:
    socket = FakeSocket()
    socket.receive(50 * MIB)
    for _ in range(1000):
        assert socket.look(drained=False) == []
    assert socket.look(delivered=(0,)) == [], "received after all"
    assert socket.state.undelivered == 0


def test_an_endless_message_is_found_when_reading_resumes() -> None:
    socket = FakeSocket()
    socket.receive(50 * MIB)
    assert socket.look(drained=False) == []
    [overrun] = socket.look(drained=True)
    assert overrun.excess is Excess.FIRST


def test_an_endless_message_is_found_after_rounds_on_a_socket_that_is_never_drained() -> None:
    """One peer keeps the server busy; the bounds apply to the others all the same."""
    socket = FakeSocket(3)
    socket.receive(5 * MIB, 1)
    rounds = 0
    while not (overruns := socket.look(delivered=(0,), drained=False)):
        socket.receive(1000, 0)
        rounds += 1
        assert rounds < 4 * ROUNDS * 3
    assert [overrun.connection.descriptor for overrun in overruns] == [1]
    assert rounds >= 3, "each connection could have had its turn"


def test_the_total_is_bounded_and_the_largest_are_cut() -> None:
    socket = FakeSocket(10, InflowBounds(legal_octets=16 * MIB, undelivered_octets=20 * MIB))
    for number in range(10):
        socket.receive(MIB, number)
    socket.look(delivered=tuple(range(10)))
    for number in range(10):
        socket.receive((number + 1) * MIB, number)
    overruns = socket.look(drained=False)
    assert [overrun.connection.descriptor for overrun in overruns] == [9, 8, 7, 6, 5]
    assert {overrun.excess for overrun in overruns} == {Excess.TOTAL}
    for overrun in overruns:
        socket.state.forget(overrun.connection)
    assert socket.state.undelivered == 15 * MIB


def grow(socket: FakeSocket, *, octets: int, memory: int, times: int, messages: int = 0) -> list[Overrun]:
    """Receive `octets` repeatedly, each time with growth by `memory`; return the first overruns."""
    resident = 100 * MIB
    socket.state.measure(resident, socket.messages, FRAME_COST)
    for _ in range(times):
        socket.receive(octets)
        resident += memory
        socket.messages += messages
        socket.look()
        socket.state.measure(resident, socket.messages, FRAME_COST)
        if overruns := find_overruns(socket.state, socket.connections, socket.bounds):
            return overruns
    return []


def test_small_frames_are_found_by_the_memory_that_they_take() -> None:
    socket = FakeSocket()
    socket.connections[0].is_known = True
    [overrun] = grow(socket, octets=MIB // 10, memory=32 * MIB // 10, times=100)
    assert overrun.excess is Excess.MEMORY
    assert SPARE_MEMORY_OCTETS < overrun.bound < overrun.found < overrun.bound + 4 * MIB
    assert overrun.octets < MIB


def test_large_frames_are_within_the_memory_bound() -> None:
    socket = FakeSocket()
    socket.connections[0].is_known = True
    assert grow(socket, octets=MIB, memory=int(1.1 * MIB), times=16) == []


def test_growth_that_octets_cannot_explain_does_not_count() -> None:
    """The process grows for other reasons: at most `FRAME_COST` counts for each octet."""
    socket = FakeSocket()
    assert grow(socket, octets=CALM_OCTETS // 10, memory=10 * MIB, times=50) == []
    assert 0 < socket.state.measured <= FRAME_COST * socket.state.undelivered < 50 * 10 * MIB


def test_growth_that_delivered_messages_explain_does_not_count() -> None:
    socket = FakeSocket()
    socket.connections[0].is_known = True
    assert grow(socket, octets=MIB // 10, memory=2 * MIB, times=50, messages=500) == []
    assert grow(socket, octets=MIB // 10, memory=2 * MIB, times=50) != []


def test_without_a_memory_figure_nothing_is_measured() -> None:
    socket = FakeSocket()
    socket.receive(MIB)
    socket.look()
    socket.state.measure(None, 0, FRAME_COST)
    socket.state.measure(500 * MIB, 0, FRAME_COST)
    assert socket.state.measured == 0


def test_memory_is_bounded_while_reading_is_paused() -> None:
    state = InflowState()
    for number in range(64):
        connection = state.connections[number] = InboundConnection(number, "a", received=MIB, settled=0)
        state.growing[number] = connection
        state.undelivered += MIB
    assert state.memory_bound(BOUNDS) == SPARE_MEMORY_OCTETS + int(MEMORY_FACTOR * 64 * MIB)


@pytest.mark.parametrize(
    ("excess", "words"),
    [
        (Excess.FIRST, "send a small message first, or raise message_octets"),
        (Excess.MESSAGE, "the largest accepted message has 1,000"),
        (Excess.TOTAL, "raise undelivered_octets"),
        (Excess.MEMORY, "in small frames, which took 3,000 octets of memory"),
    ],
)
def test_the_log_line_has_peer_cause_figures_and_advice(excess: Excess, words: str) -> None:
    line = Overrun(InboundConnection(7, "10.1.2.3:4567"), excess, 2000, 3000, 1000).describe()
    assert line.startswith("10.1.2.3:4567 was disconnected: it sent 2,000 octets of an unfinished message")
    assert words in line
    assert "1,000" in line


def test_settings_and_options_have_the_same_defaults() -> None:
    assert MESSAGE_OCTETS == FIRST_OCTETS
    assert UNDELIVERED_OCTETS == TOTAL_OCTETS
    for settings_ in (NorfabSettings(), FluxSettings(Tree(1))):
        assert settings_.message_octets == FIRST_OCTETS
        assert settings_.undelivered_octets == TOTAL_OCTETS


class HonestPeer:
    """Peer that sends whole messages, of which libzmq has read some octets."""

    def __init__(self, connection: InboundConnection) -> None:
        self.connection = connection
        self.read = HANDSHAKE_OCTETS
        self.ends: deque[int] = deque()
        """Offsets in the connection at which the undelivered messages end."""

    def has_whole(self) -> bool:
        return bool(self.ends) and self.ends[0] <= self.read


STEPS = st.lists(
    st.tuples(
        st.integers(0, 3),  # the peer that sends a message
        st.integers(1, 16 * MIB),  # its octets
        st.floats(0, 1),  # the part of it that libzmq reads
        st.integers(0, 6),  # number of messages that are received then
        st.booleans(),  # whether the connections are counted then
    ),
    max_size=60,
)


@given(STEPS)
@settings(deadline=None)
def test_whole_messages_are_never_cut(steps: list[tuple[int, int, float, int, bool]]) -> None:
    """With any order of reads and receives, one message of each peer in turn."""
    state = InflowState()
    bounds = InflowBounds(legal_octets=16 * MIB, undelivered_octets=1 << 40)
    peers = [HonestPeer(InboundConnection(number, str(number), is_known=True)) for number in range(4)]
    for peer in peers:
        state.connections[peer.connection.descriptor] = peer.connection
        state.update(peer.connection, TcpOctets(HANDSHAKE_OCTETS, 0, 0), delivered=False)
    turns = deque(peers)
    delivered: set[int] = set()
    messages = 0
    for number, octets, part, receives, looks in steps:
        peer = peers[number]
        if peer.ends and peer.read < peer.ends[-1]:
            peer.read = peer.ends[-1]
        peer.ends.append(peer.read + octets)
        peer.read += int(octets * part)
        for _ in range(receives):
            for _ in range(len(turns)):
                turns.rotate(-1)
                if turns[-1].has_whole():
                    turns[-1].ends.popleft()
                    delivered.add(turns[-1].connection.descriptor)
                    messages += 1
                    break
        if looks:
            drained = not any(other.has_whole() for other in peers)
            for other in peers:
                found = other.connection.descriptor in delivered
                state.update(other.connection, TcpOctets(other.read, 0, 0), delivered=found)
                other.connection.update_certain(is_drained=drained, messages=messages, connections=len(peers))
            delivered.clear()
            assert find_overruns(state, state.connections.values(), bounds) == []
