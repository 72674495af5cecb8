"""Bounds on unfinished messages: disconnects a peer that sends frames with MORE set and never ends.

libzmq holds the frames of a message until the last one arrives. It bounds neither their octets nor
their number: MAXMSGSIZE applies to one frame, and the high-water mark counts whole messages. So
this module counts outside libzmq: the octets that a TCP connection has received
(`tcp_connections`) since its last whole message (`Link.origins`). An epoll instance wakes the event
loop when octets arrive. Then connections are examined every `TICK_S`; an idle socket wakes once a
second. `InflowState` and `find_overruns` decide, `Inflow` acts. Decision 19 has the reasons.

Surprises:

- Whole messages may wait in libzmq when reading is paused or this process is slow. Octets are
  *certain* to belong to an unfinished message only when nothing can be received. Under steady load,
  libzmq serves the connections in turn: a connection that delivered no message in two rounds had no
  whole message when the rounds began.
- An empty frame has 2 octets on the wire and takes 64 in libzmq (`FRAME_COST`). Without encryption,
  a bound on octets does not bound memory. So the growth of the process counts too, as far as
  unfinished octets can explain it.
- A ZMTP PING is not a message. Its PONG is 2 octets shorter (it has no time to live). So a few
  octets that were answered with 2 fewer do not count as part of a message.
- `ipc://` connections have no counts. Only users who may write to the socket's file can connect
  there: with the usual umask, the same user.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

import msgspec

from specwire.runtime.transport.errors import ShortageError
from specwire.runtime.transport.link import Link
from specwire.runtime.transport.tcp_connections import (
    ResidentMemory,
    TcpOctets,
    find_connections,
    peer_address,
    read_octets,
    shut_down,
    trim_heap,
)

TICK_S = 0.01
"""How long an endless message can grow unnoticed: libzmq fills up to 0.5 GB of memory a second."""

QUIET_TICKS = 10
"""Ticks without octets after which the timer stops until octets arrive: restarting costs more."""

EVENTS = select.EPOLLIN | select.EPOLLOUT | select.EPOLLET
"""`poll` omits a connection that is no longer readable, because libzmq has read the octets. But a
connection is nearly always writable, so with EPOLLOUT there is an event whenever octets arrive."""

SWEEP_S, SWEEP_CONNECTIONS = 1.0, 256
"""Every `SWEEP_S`, this many connections are examined without an event: a connection whose peer
does not read is not writable."""

LONGEST_PAUSE_TICKS = 16
"""Longest time between two looks at a connection whose octets libzmq does not read."""

TRIM_S, TRIMS = 0.01, 20
"""Interval and number of heap trims after a cut: libzmq takes a while to free the frames."""

FIRST_OCTETS = 8 << 20
UNDELIVERED_OCTETS = 256 << 20
HANDSHAKE_OCTETS = 1024
"""Upper bound of a greeting and a handshake, in any mechanism."""

PONG_OCTETS, HEARTBEAT_OCTETS = 7, 64
"""Shortest PONG, and an upper bound of a PING in any mechanism."""

CALM_OCTETS = 64 << 10
"""Up to this many undelivered octets, no bound is checked. A connection's bound is larger by it."""

FRAME_COST = 34
"""Octets of memory per octet of empty frames, the worst case (33.4 measured); 2.2 with CURVE."""

MEMORY_FACTOR = 1.25
SPARE_MEMORY_OCTETS = 16 << 20
"""Unfinished messages may take this and `MEMORY_FACTOR` times their octets; large frames take 1."""

WAITING_FACTOR = 8
"""Same factor for octets that may belong to whole messages, which can have many small frames."""

ROUNDS = 3
"""libzmq delivers a whole message of a connection within two rounds; one round is spare."""

MESSAGE_MEMORY_OCTETS = 4096
DELIVERED_FACTOR = 2
"""Memory that a delivered message, and each of its octets, may take in this process. Half of the
allowance that a tick did not use is carried over to the next."""


class InflowBounds(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds on the octets of unfinished messages.

    Attributes:
        message_octets: bound of the first message of a connection; later ones have `legal_octets`.
        legal_octets: size of the protocol's largest message.
        undelivered_octets: bound of all connections together.
    """

    message_octets: int = FIRST_OCTETS
    legal_octets: int
    undelivered_octets: int = UNDELIVERED_OCTETS

    def of(self, connection: InboundConnection) -> int:
        """Return the bound for a connection, with room for the lengths and flags of frames."""
        octets = self.legal_octets if connection.is_known else min(self.message_octets, self.legal_octets)
        return octets + octets // 64 + CALM_OCTETS


@dataclass(slots=True, eq=False)
class InboundConnection:
    """Octet counts of one connection.

    Attributes:
        received: octets that libzmq has read.
        unread: octets that wait for libzmq in the kernel.
        sent: octets sent to the peer.
        settled: received octets of whole messages, heartbeats and the handshake.
        certain: octets that certainly belong to an unfinished message; at most `undelivered`.
        is_known: the connection has delivered a whole message.
        is_stale: messages were delivered since the last counts.
    """

    descriptor: int
    peer: str
    received: int = 0
    unread: int = 0
    sent: int = 0
    settled: int = HANDSHAKE_OCTETS
    certain: int = 0
    is_known: bool = False
    is_stale: bool = False
    _lap_octets: int = 0
    _lap_ends: int = 0

    @property
    def undelivered(self) -> int:
        """Octets received since the last whole message."""
        return max(0, self.received - self.settled)

    def update(self, octets: TcpOctets, *, delivered: bool) -> int:
        """Update the counts; return how many octets were received since the last update.

        Args:
            delivered: a whole message was delivered since the last update.
        """
        received = max(self.received, octets.received - octets.unread)
        grown, answered = received - self.received, octets.sent - self.sent
        self.received, self.unread, self.sent = received, octets.unread, octets.sent
        if delivered or self.is_stale:
            self.settled, self.certain, self._lap_octets = received, 0, 0
            self.is_known, self.is_stale = True, False
        elif answered >= PONG_OCTETS and grown <= min(HEARTBEAT_OCTETS, answered + 2):
            self.settled += grown
        return grown

    def update_certain(self, *, is_drained: bool, messages: int, connections: int) -> None:
        """Update `certain`: on a drained socket at once, else after `ROUNDS` rounds of messages.

        Args:
            is_drained: no message could be received after the last `update`.
            messages: number of messages received so far, over all connections.
            connections: number of connections that libzmq serves in one round.
        """
        if is_drained or messages >= self._lap_ends:
            self.certain = min(self.undelivered if is_drained else self._lap_octets, self.undelivered)
            self._lap_octets = self.undelivered
            self._lap_ends = messages + ROUNDS * connections


@dataclass(slots=True)
class InflowState:
    """Counts of all connections of a socket.

    Attributes:
        growing: the connections with undelivered octets.
        undelivered: undelivered octets of all connections.
        measured: growth of the process that unfinished messages explain.
    """

    connections: dict[int, InboundConnection] = field(default_factory=dict)
    growing: dict[int, InboundConnection] = field(default_factory=dict)
    undelivered: int = 0
    measured: int = 0
    _resident: int | None = None
    _messages: int = 0
    _explained: int = 0
    _arrived_octets: int = 0

    def update(self, connection: InboundConnection, octets: TcpOctets, *, delivered: bool) -> bool:
        """Update the counts of one connection; return whether octets came since the last update."""
        before = connection.undelivered
        grown = connection.update(octets, delivered=delivered)
        self._change(connection, before)
        if delivered:
            self._explained += DELIVERED_FACTOR * (before + grown)
        self._arrived_octets += max(0, connection.undelivered - before)
        return grown > 0

    def defer(self, connection: InboundConnection) -> bool:
        """Mark a connection that delivered messages as stale; return False if it needs counts now.

        The kernel locks a connection to count, which is expensive for a busy one. A stale
        connection is counted in the first tick without a message.
        """
        if self.undelivered > CALM_OCTETS or connection.undelivered:
            return False
        connection.is_known = connection.is_stale = True
        return True

    def forget(self, connection: InboundConnection) -> None:
        """Remove a connection that has ended."""
        if self.connections.get(connection.descriptor) is connection:
            del self.connections[connection.descriptor]
        if self.growing.pop(connection.descriptor, None) is not None:
            self.undelivered -= connection.undelivered

    def measure(self, resident: int | None, messages: int, frame_cost: int) -> None:
        """Update `measured` from the memory of the process and the number of received messages.

        Growth counts only in a tick in which octets of unfinished messages arrived. It counts up to
        `frame_cost` for each of them, less the memory that delivered messages may have taken.
        """
        explained = self._explained + MESSAGE_MEMORY_OCTETS * (messages - self._messages)
        grown = 0 if resident is None or self._resident is None else resident - self._resident
        unexplained = max(0, min(grown - explained, frame_cost * self._arrived_octets))
        self.measured = min(self.measured + unexplained, frame_cost * self.undelivered)
        self._explained = max(0, explained - max(0, grown)) // 2
        self._resident, self._messages, self._arrived_octets = resident, messages, 0

    def reset_memory(self, messages: int) -> None:
        """Discard the measurements; the next `measure` starts again."""
        self.measured = self._explained = self._arrived_octets = 0
        self._resident, self._messages = None, messages

    def memory_bound(self, bounds: InflowBounds) -> int:
        """Return the octets of memory that unfinished messages may take."""
        certain = sum(connection.certain for connection in self.growing.values())
        allowed = MEMORY_FACTOR * certain + WAITING_FACTOR * (self.undelivered - certain)
        return SPARE_MEMORY_OCTETS + int(min(allowed, MEMORY_FACTOR * bounds.undelivered_octets))

    def _change(self, connection: InboundConnection, before: int) -> None:
        now = connection.undelivered
        self.undelivered += now - before
        if now:
            self.growing[connection.descriptor] = connection
        else:
            self.growing.pop(connection.descriptor, None)


class Excess(Enum):
    """Kind of bound that was exceeded."""

    FIRST = "first"
    MESSAGE = "message"
    TOTAL = "total"
    MEMORY = "memory"


class Overrun(msgspec.Struct, frozen=True):
    """Connection to cut off: it sent `octets` of an unfinished message; `found` exceeds `bound`."""

    connection: InboundConnection
    excess: Excess
    octets: int
    found: int
    bound: int

    def describe(self) -> str:
        """Return the line for the log."""
        peer = self.connection.peer
        cut = f"{peer} was disconnected: it sent {self.octets:,} octets of an unfinished message"
        match self.excess:
            case Excess.FIRST:
                return (
                    f"{cut}, and the first message of a connection may have {self.bound:,}; "
                    "send a small message first, or raise message_octets"
                )
            case Excess.MESSAGE:
                return f"{cut}, and the largest accepted message has {self.bound:,}"
            case Excess.TOTAL:
                return (
                    f"{cut}, the most of all connections, which sent {self.found:,} together "
                    f"and may send {self.bound:,}; raise undelivered_octets to allow more"
                )
            case Excess.MEMORY:
                return (
                    f"{cut} in small frames, which took {self.found:,} octets of memory "
                    f"and may take {self.bound:,}; send larger frames, or use CURVE"
                )


def find_overruns(
    state: InflowState, counted: Iterable[InboundConnection], bounds: InflowBounds
) -> list[Overrun]:
    """Return the connections to cut off.

    Args:
        counted: connections with new counts, each of which may exceed the bound of a connection.
    """
    overruns = [
        Overrun(
            connection=connection,
            excess=Excess.MESSAGE if connection.is_known else Excess.FIRST,
            octets=connection.undelivered,
            found=connection.certain,
            bound=bounds.of(connection),
        )
        for connection in counted
        if connection.certain > bounds.of(connection)
    ]
    left = state.undelivered - sum(overrun.octets for overrun in overruns)
    if left > bounds.undelivered_octets:
        ended = {overrun.connection.descriptor for overrun in overruns}
        by_size = sorted(state.growing.values(), key=lambda connection: -connection.undelivered)
        for connection in by_size:
            if left <= bounds.undelivered_octets:
                break
            if connection.descriptor not in ended:
                octets = connection.undelivered
                overruns.append(Overrun(connection, Excess.TOTAL, octets, left, bounds.undelivered_octets))
                left -= octets
    if not overruns and state.measured > SPARE_MEMORY_OCTETS:
        bound = state.memory_bound(bounds)
        if state.measured > bound:
            largest = max(state.growing.values(), key=lambda connection: connection.undelivered)
            overruns.append(Overrun(largest, Excess.MEMORY, largest.undelivered, state.measured, bound))
    return overruns


class Inflow:
    """Limiter of what a ROUTER's peers send without ending a message.

    Create it before the socket is bound. `Arrivals` reports connections to it and closes it.

    Args:
        link: the socket. Close this object before it.
        on_cut: called with a line for the log after a connection was cut off.

    Attributes:
        bounds: may be replaced at any time.
        looks: number of ticks in which connections were examined.

    Raises:
        ShortageError: there are not enough descriptors.
    """

    def __init__(self, link: Link, bounds: InflowBounds, on_cut: Callable[[str], None]) -> None:
        self.bounds = bounds
        self._link, self._on_cut = link, on_cut
        self._loop = asyncio.get_running_loop()
        self._state = InflowState()
        self._memory = ResidentMemory()
        self._cost = 0 if link.encrypted else FRAME_COST
        self._due: dict[int, int] = {}
        """Connections to examine, by descriptor, and the ticks between two looks at each."""
        self.looks = 0
        self._quiet_ticks = 0
        self._tick: asyncio.TimerHandle | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._unswept: list[int] = []
        self._uncounted: set[int] = set()
        """Descriptors of connections without counts: those of `ipc://`."""
        self._ended = 0
        """Connections that ended since the socket was last drained; their messages may wait."""
        self._trim: asyncio.TimerHandle | None = None
        self._trims_left = 0
        try:
            self._epoll = select.epoll()
            try:
                self._loop.add_reader(self._epoll.fileno(), self._wake)
            except OSError:
                self._epoll.close()
                raise
        except OSError as error:
            raise ShortageError(f"no socket can be watched: {error.strerror}") from error

    @property
    def undelivered(self) -> int:
        """Octets received since the last whole message, over all connections."""
        return self._state.undelivered

    @property
    def connections(self) -> int:
        """Number of open TCP connections."""
        return len(self._state.connections)

    def opened(self, descriptor: int, endpoint: str) -> None:
        """Handle a new connection to `endpoint`, a bound one."""
        if not endpoint.startswith("tcp://"):
            self._uncounted.add(descriptor)
        elif (peer := peer_address(descriptor, int(endpoint.rpartition(":")[2]))) is not None:
            self._watch(descriptor, peer)

    def closed(self, descriptor: int) -> None:
        """Handle the end of a connection."""
        self._ended += 1
        self._forget(descriptor)

    def _forget(self, descriptor: int) -> None:
        """Remove what is known of the connection that had this descriptor."""
        self._due.pop(descriptor, None)
        self._link.origins.discard(descriptor)
        self._uncounted.discard(descriptor)
        if (connection := self._state.connections.get(descriptor)) is not None:
            self._state.forget(connection)

    def search(self) -> None:
        """Find connections whose events were lost, by examining each descriptor of the process."""
        with suppress(OSError):
            found = find_connections(self._link.ports)
            for connection in tuple(self._state.connections.values()):
                if found.get(connection.descriptor) == connection.peer:
                    del found[connection.descriptor]
                else:
                    self.closed(connection.descriptor)
            for descriptor, peer in found.items():
                self._watch(descriptor, peer)

    def close(self) -> None:
        """Stop watching. May be called twice."""
        if self._epoll.closed:
            return
        for timer in (self._tick, self._sweep, self._trim):
            if timer is not None:
                timer.cancel()
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
        self._memory.close()

    def _watch(self, descriptor: int, peer: str) -> None:
        self._forget(descriptor)  # a connection that had the same descriptor before
        with suppress(OSError):
            try:
                self._epoll.register(descriptor, EVENTS)
            except FileExistsError:
                self._epoll.modify(descriptor, EVENTS)
            self._state.connections[descriptor] = InboundConnection(descriptor, peer)
            if self._sweep is None:
                self._sweep = self._loop.call_later(SWEEP_S, self._sweep_next)

    def _sweep_next(self) -> None:
        """Examine the next `SWEEP_CONNECTIONS` connections in the next tick."""
        self._sweep = None
        if self._state.connections:
            self._sweep = self._loop.call_later(SWEEP_S, self._sweep_next)
            if not self._unswept:
                self._unswept = list(self._state.connections)
            due, self._unswept = self._unswept[:SWEEP_CONNECTIONS], self._unswept[SWEEP_CONNECTIONS:]
            self._due.update(dict.fromkeys(due, 1))
            if self._tick is None:
                self._wake()

    def _wake(self) -> None:
        """Start the ticks, when octets have arrived or a sweep is due."""
        self._loop.remove_reader(self._epoll.fileno())
        self._tick = self._loop.call_later(TICK_S, self._look)

    def _look(self) -> None:
        self.looks += 1
        self._due.update(dict.fromkeys(self._link.origins, 1))
        for descriptor, _ in self._epoll.poll(0, max(1, len(self._state.connections))):
            self._due[descriptor] = 1
        self._quiet_ticks = 0 if self._due else self._quiet_ticks + 1
        try:
            self._enforce_bounds(self._update_counts())
        finally:
            self._schedule_look()

    def _enforce_bounds(self, counted: list[InboundConnection]) -> None:
        self._update_certain(counted)
        if self._state.undelivered <= CALM_OCTETS:
            self._state.reset_memory(self._link.received)
            return
        self._state.measure(self._memory.read(), self._link.received, self._cost)
        for overrun in find_overruns(self._state, counted, self.bounds):
            self._cut_off(overrun)

    def _schedule_look(self) -> None:
        """Look again in the next tick if a connection needs it, else when octets arrive."""
        self._due = {
            descriptor: pause
            for descriptor, pause in self._due.items()
            if (connection := self._state.connections.get(descriptor)) is not None
            and (connection.is_stale or connection.unread or connection.certain < connection.undelivered)
        }
        if self._due or self._quiet_ticks < QUIET_TICKS:
            self._tick = self._loop.call_later(TICK_S, self._look)
        else:
            self._tick, self._quiet_ticks = None, 0
            self._loop.add_reader(self._epoll.fileno(), self._wake)

    def _update_certain(self, counted: list[InboundConnection]) -> None:
        if not counted:
            return
        is_drained = self._link.exhausted()  # after counting: all counted messages were delivered
        if is_drained:
            self._ended = 0
        connections = len(self._state.connections) + len(self._uncounted) + self._ended
        messages = self._link.received
        for connection in counted:
            connection.update_certain(is_drained=is_drained, messages=messages, connections=connections)

    def _update_counts(self) -> list[InboundConnection]:
        """Update the counts of the connections that are due; return those that were counted."""
        counted = []
        origins = self._link.origins
        for descriptor, pause in self._due.items():
            connection = self._state.connections.get(descriptor)
            if connection is None or self.looks % pause:
                continue
            delivered = descriptor in origins
            if delivered and self._state.defer(connection):
                continue
            if (octets := read_octets(descriptor)) is None:
                continue
            has_grown = self._state.update(connection, octets, delivered=delivered)
            self._due[descriptor] = 1 if has_grown else min(2 * pause, LONGEST_PAUSE_TICKS)
            counted.append(connection)
        origins.clear()
        return counted

    def _cut_off(self, overrun: Overrun) -> None:
        connection = overrun.connection
        self._state.forget(connection)
        with suppress(OSError):
            self._epoll.unregister(connection.descriptor)
        if not shut_down(connection.descriptor, connection.peer):
            return  # it has ended, and its number may belong to another connection
        self._on_cut(overrun.describe())
        self._trims_left = TRIMS
        if self._trim is None:
            self._trim = self._loop.call_later(TRIM_S, self._trim_heap)

    def _trim_heap(self) -> None:
        """Trim the heap in another thread: libzmq's threads may hold the lock for a long time."""
        self._trims_left -= 1
        self._loop.run_in_executor(None, trim_heap).add_done_callback(self._on_trimmed)

    def _on_trimmed(self, trimmed: asyncio.Future[None]) -> None:
        self._trim = None
        if self._trims_left and not self._epoll.closed:
            self._trim = self._loop.call_later(TRIM_S, self._trim_heap)
