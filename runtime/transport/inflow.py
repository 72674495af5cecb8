"""Bounds for messages without end: a peer that sends frames with MORE set for ever is cut off.

libzmq holds the frames of a message until the last one has come, and bounds neither their octets
nor their number: MAXMSGSIZE is for one frame, and the high-water mark counts whole messages. So
they are counted from outside: the octets that a TCP connection has received (`tcp_connections`)
since its last whole message (`Link.origins`). An epoll instance wakes the event loop when octets
come. Only then are connections looked at, every `TICK_S`; an idle socket wakes once a second.
`InflowState` and `judge` decide, `Inflow` acts. Decision 19 has the reasons.

Surprises:

- Whole messages may wait in libzmq, when reading is paused or this process is slow. Octets are
  *certain* to be of an unfinished message only when nothing can be received. Under steady load,
  libzmq serves the connections in turn: after two rounds, a connection that delivered no message
  had none whole when the rounds began.
- An empty frame has 2 octets and takes 64 in libzmq (`FRAME_COST`). Without encryption, octets
  alone do not bound memory. So while unfinished octets could explain it, the growth of the process
  counts.
- A PING of ZMTP is not a message. Its PONG is 2 octets shorter (no time to live), so a few octets
  that were answered with as many but for two are not part of one.
- `ipc://` has no counts. There, only users who may write to the socket's file can connect: with the
  usual umask, the same user.
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
"""How long an endless message can grow unseen: libzmq fills 0.5 GB of memory a second at most."""

QUIET_TICKS = 10
"""After so many ticks in which nothing came, none follows until octets come: to begin again costs more."""

EVENTS = select.EPOLLIN | select.EPOLLOUT | select.EPOLLET
"""epoll drops an event that is over when it is asked, and libzmq may have read what came. But a
connection is nearly always writable, so with EPOLLOUT there is an event whenever octets come."""

SWEEP_S, SWEEP_CONNECTIONS = 1.0, 256
"""So many are also looked at in turn: a connection whose peer does not read is not writable."""

LONGEST_PAUSE_TICKS = 16
"""A connection whose octets libzmq does not read is looked at less often, down to this."""

TRIM_S, TRIMS = 0.01, 20
"""When freed memory is returned to the system after a cut, and how often: libzmq takes a while."""

FIRST_OCTETS = 8 << 20
UNDELIVERED_OCTETS = 256 << 20
HANDSHAKE_OCTETS = 1024
"""More than a greeting and a handshake have, in any mechanism."""

PONG_OCTETS, HEARTBEAT_OCTETS = 7, 64
"""The shortest PONG, and more than a PING has in any mechanism."""

CALM_OCTETS = 64 << 10
"""With no more undelivered than this, nothing is measured or judged; each bound has as much on top."""

FRAME_COST = 34
"""Octets of memory for an octet of empty frames, the worst case (33.4 measured); 2.2 with CURVE."""

MEMORY_FACTOR = 1.25
SPARE_MEMORY_OCTETS = 16 << 20
"""Unfinished messages may take this and `MEMORY_FACTOR` times their octets; large frames take once."""

WAITING_FACTOR = 8
"""The same factor for octets that may be of whole messages, which can have many small frames."""

ROUNDS = 3
"""libzmq serves a connection that has a whole message within two rounds; one to spare."""

MESSAGE_MEMORY_OCTETS = 4096
DELIVERED_FACTOR = 2
"""Memory that a delivered message, and each of its octets, may take in this process. Half of what
it has not taken in one tick is left for the next."""


class InflowBounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much a peer may send without ending a message.

    Attributes:
        message_octets: of the first message of a connection; after it, `legal_octets`.
        legal_octets: of the largest message that the protocol has.
        undelivered_octets: of all connections together.
    """

    message_octets: int = FIRST_OCTETS
    legal_octets: int
    undelivered_octets: int = UNDELIVERED_OCTETS

    def of(self, connection: InboundConnection) -> int:
        """Return the bound that is in force; the lengths and flags of frames come on top."""
        octets = self.legal_octets if connection.is_known else min(self.message_octets, self.legal_octets)
        return octets + octets // 64 + CALM_OCTETS


@dataclass(slots=True, eq=False)
class InboundConnection:
    """Octets of one connection.

    Attributes:
        received: octets that libzmq has read.
        unread: octets that wait for it in the kernel.
        sent: octets that were sent.
        settled: of those received, what was of whole messages, heartbeats and the handshake.
        certain: what is certainly of an unfinished message; at most `undelivered`.
        is_known: it has delivered a whole message.
        is_stale: messages came since the counts were taken.
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
        """Octets since the last whole message."""
        return max(0, self.received - self.settled)

    def note(self, octets: TcpOctets, *, is_heard: bool) -> int:
        """Update the counts; return how many octets came since the last look.

        Args:
            is_heard: a whole message was delivered since the last look.
        """
        received = max(self.received, octets.received - octets.unread)
        grown, answered = received - self.received, octets.sent - self.sent
        self.received, self.unread, self.sent = received, octets.unread, octets.sent
        if is_heard or self.is_stale:
            self.settled, self.certain, self._lap_octets = received, 0, 0
            self.is_known, self.is_stale = True, False
        elif answered >= PONG_OCTETS and grown <= min(HEARTBEAT_OCTETS, answered + 2):
            self.settled += grown
        return grown

    def ascertain(self, *, is_drained: bool, messages: int, connections: int) -> None:
        """See which octets are certainly of an unfinished message.

        Args:
            is_drained: no message could be received after the look.
            messages: how many were received so far, over all connections.
        """
        if is_drained or messages >= self._lap_ends:
            self.certain = min(self.undelivered if is_drained else self._lap_octets, self.undelivered)
            self._lap_octets = self.undelivered
            self._lap_ends = messages + ROUNDS * connections


@dataclass(slots=True)
class InflowState:
    """All connections of a socket; `growing` are those with undelivered octets."""

    connections: dict[int, InboundConnection] = field(default_factory=dict)
    growing: dict[int, InboundConnection] = field(default_factory=dict)
    undelivered: int = 0
    """Octets of all."""
    measured: int = 0
    """Growth of the process that unfinished messages explain."""
    _resident: int | None = None
    _messages: int = 0
    _explained: int = 0
    _came: int = 0

    def note(self, connection: InboundConnection, octets: TcpOctets, *, is_heard: bool) -> bool:
        """Update the counts of one connection; return whether octets came since the last look."""
        before = connection.undelivered
        grown = connection.note(octets, is_heard=is_heard)
        self._change(connection, before)
        if is_heard:
            self._explained += DELIVERED_FACTOR * (before + grown)
        self._came += max(0, connection.undelivered - before)
        return grown > 0

    def skip(self, connection: InboundConnection) -> bool:
        """Note that messages came over a connection, without its counts; False where these are needed.

        The kernel locks a connection to count, so those of busy ones cost most. They are counted in
        the first tick without a message.
        """
        if self.undelivered > CALM_OCTETS or connection.undelivered:
            return False
        connection.is_known = connection.is_stale = True
        return True

    def forget(self, connection: InboundConnection) -> None:
        """The connection has ended."""
        if self.connections.get(connection.descriptor) is connection:
            del self.connections[connection.descriptor]
        if self.growing.pop(connection.descriptor, None) is not None:
            self.undelivered -= connection.undelivered

    def measure(self, resident: int | None, messages: int, frame_cost: int) -> None:
        """Update `measured` from the memory of the process and the messages it has received.

        Growth counts only in a tick in which octets of unfinished messages came, at most
        `frame_cost` for each, and less what delivered messages may have taken.
        """
        explained = self._explained + MESSAGE_MEMORY_OCTETS * (messages - self._messages)
        grown = 0 if resident is None or self._resident is None else resident - self._resident
        theirs = max(0, min(grown - explained, frame_cost * self._came))
        self.measured = min(self.measured + theirs, frame_cost * self.undelivered)
        self._explained = max(0, explained - max(0, grown)) // 2
        self._resident, self._messages, self._came = resident, messages, 0

    def rest(self, messages: int) -> None:
        """Begin measuring again the next time."""
        self.measured = self._explained = self._came = 0
        self._resident, self._messages = None, messages

    def memory_bound(self, bounds: InflowBounds) -> int:
        """Return what unfinished messages may take."""
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
    """Which bound a connection has crossed."""

    FIRST = "first"
    MESSAGE = "message"
    TOTAL = "total"
    MEMORY = "memory"


class Overrun(msgspec.Struct, frozen=True):
    """A connection to cut off: `octets` of an unfinished message came; `found` is above `bound`."""

    connection: InboundConnection
    excess: Excess
    octets: int
    found: int
    bound: int

    def describe(self) -> str:
        """Return the line for the log."""
        begun = (
            f"{self.connection.peer} was disconnected: {self.octets:,} octets of a message without end came"
        )
        match self.excess:
            case Excess.FIRST:
                return (
                    f"{begun}, and the first message of a connection may have {self.bound:,}; "
                    "send a small message first, or raise message_octets"
                )
            case Excess.MESSAGE:
                return f"{begun}, and the largest message that is accepted has {self.bound:,}"
            case Excess.TOTAL:
                return (
                    f"{begun}, the most of all connections, which had {self.found:,} together "
                    f"and may have {self.bound:,}; raise undelivered_octets to allow more at a time"
                )
            case Excess.MEMORY:
                return (
                    f"{begun} in small frames, which took {self.found:,} octets of memory, "
                    f"and may take {self.bound:,}; send larger frames, or use CURVE"
                )


def judge(state: InflowState, looked_at: Iterable[InboundConnection], bounds: InflowBounds) -> list[Overrun]:
    """Return the connections to cut off.

    Args:
        looked_at: connections whose counts are new, and may be above their own bound.
    """
    overruns = [
        Overrun(
            connection=connection,
            excess=Excess.MESSAGE if connection.is_known else Excess.FIRST,
            octets=connection.undelivered,
            found=connection.certain,
            bound=bounds.of(connection),
        )
        for connection in looked_at
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
    """Guard of a ROUTER, from before it is bound until `close`; `Arrivals` reports connections.

    Args:
        link: the socket; it is closed after this.
        on_cut: called with a line for the log when a connection was cut off.

    Attributes:
        bounds: may be replaced at any time.
        looks: how often connections were looked at.

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
        """Connections to look at, by descriptor, and the ticks between two looks."""
        self.looks = 0
        self._quiet_ticks = 0
        self._tick: asyncio.TimerHandle | None = None
        self._sweep: asyncio.TimerHandle | None = None
        self._unswept: list[int] = []
        self._uncounted: set[int] = set()
        """Connections that have no counts, by descriptor: those of `ipc`."""
        self._ended = 0
        """Connections that ended since the socket was last drained: messages of them may wait."""
        self._trim: asyncio.TimerHandle | None = None
        self._trims_left = 0
        try:
            self._arrived = select.epoll()
            self._loop.add_reader(self._arrived.fileno(), self._wake)
        except OSError as error:
            raise ShortageError(f"no socket can be watched: {error.strerror}") from error

    @property
    def undelivered(self) -> int:
        """Octets that were received since the last whole message, of all connections."""
        return self._state.undelivered

    @property
    def connections(self) -> int:
        """Connections that there are."""
        return len(self._state.connections)

    def opened(self, descriptor: int, endpoint: str) -> None:
        """Somebody has connected to `endpoint`, the one that is bound."""
        if not endpoint.startswith("tcp://"):
            self._uncounted.add(descriptor)
        elif (peer := peer_address(descriptor, int(endpoint.rpartition(":")[2]))) is not None:
            self._watch(descriptor, peer)

    def closed(self, descriptor: int) -> None:
        """A connection has ended."""
        self._due.pop(descriptor, None)
        self._link.origins.discard(descriptor)
        self._uncounted.discard(descriptor)
        self._ended += 1
        if (connection := self._state.connections.get(descriptor)) is not None:
            self._state.forget(connection)

    def search(self) -> None:
        """Find connections whose events were lost; examines each descriptor of the process."""
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
        """Look at nothing any more. May be called twice."""
        if self._arrived.closed:
            return
        for timer in (self._tick, self._sweep, self._trim):
            if timer is not None:
                timer.cancel()
        self._loop.remove_reader(self._arrived.fileno())
        self._arrived.close()
        self._memory.close()

    def _watch(self, descriptor: int, peer: str) -> None:
        self.closed(descriptor)  # who had the number before
        with suppress(OSError):
            try:
                self._arrived.register(descriptor, EVENTS)
            except FileExistsError:
                self._arrived.modify(descriptor, EVENTS)
            self._state.connections[descriptor] = InboundConnection(descriptor, peer)
            if self._sweep is None:
                self._sweep = self._loop.call_later(SWEEP_S, self._look_in_turn)

    def _look_in_turn(self) -> None:
        self._sweep = None
        if self._state.connections:
            self._sweep = self._loop.call_later(SWEEP_S, self._look_in_turn)
            if not self._unswept:
                self._unswept = list(self._state.connections)
            due, self._unswept = self._unswept[:SWEEP_CONNECTIONS], self._unswept[SWEEP_CONNECTIONS:]
            self._due.update(dict.fromkeys(due, 1))
            if self._tick is None:
                self._wake()

    def _wake(self) -> None:
        """Octets have come while nothing was looked at."""
        self._loop.remove_reader(self._arrived.fileno())
        self._tick = self._loop.call_later(TICK_S, self._look)

    def _look(self) -> None:
        self.looks += 1
        self._due.update(dict.fromkeys(self._link.origins, 1))
        for descriptor, _ in self._arrived.poll(0, max(1, len(self._state.connections))):
            self._due[descriptor] = 1
        self._quiet_ticks = 0 if self._due else self._quiet_ticks + 1
        try:
            self._judge(self._note())
        finally:
            self._look_again()

    def _judge(self, looked_at: list[InboundConnection]) -> None:
        self._ascertain(looked_at)
        if self._state.undelivered <= CALM_OCTETS:
            self._state.rest(self._link.received)
            return
        self._state.measure(self._memory.read(), self._link.received, self._cost)
        for overrun in judge(self._state, looked_at, self.bounds):
            self._end(overrun)

    def _look_again(self) -> None:
        """Look in the next tick where there is a reason to, else when octets come."""
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
            self._loop.add_reader(self._arrived.fileno(), self._wake)

    def _ascertain(self, looked_at: Iterable[InboundConnection]) -> None:
        if not looked_at:
            return
        is_drained = self._link.exhausted()  # after the look: all that it counted was handed over
        if is_drained:
            self._ended = 0
        connections = len(self._state.connections) + len(self._uncounted) + self._ended
        for connection in looked_at:
            connection.ascertain(is_drained=is_drained, messages=self._link.received, connections=connections)

    def _note(self) -> list[InboundConnection]:
        """Look at the connections that are due, and return them."""
        looked_at = []
        heard = self._link.origins
        for descriptor, pause in self._due.items():
            connection = self._state.connections.get(descriptor)
            if connection is None or self.looks % pause:
                continue
            is_heard = descriptor in heard
            if is_heard and self._state.skip(connection):
                continue
            if (octets := read_octets(descriptor)) is None:
                continue
            has_grown = self._state.note(connection, octets, is_heard=is_heard)
            self._due[descriptor] = 1 if has_grown else min(2 * pause, LONGEST_PAUSE_TICKS)
            looked_at.append(connection)
        heard.clear()
        return looked_at

    def _end(self, overrun: Overrun) -> None:
        connection = overrun.connection
        self._state.forget(connection)
        with suppress(OSError):
            self._arrived.unregister(connection.descriptor)
        if not shut_down(connection.descriptor, connection.peer):
            return  # it has ended, and its number may be another's
        self._on_cut(overrun.describe())
        self._trims_left = TRIMS
        if self._trim is None:
            self._trim = self._loop.call_later(TRIM_S, self._give_back)

    def _give_back(self) -> None:
        """Trim the heap, in another thread: it waits for libzmq's, which may hold the lock for long."""
        self._trims_left -= 1
        self._loop.run_in_executor(None, trim_heap).add_done_callback(self._given_back)

    def _given_back(self, trimmed: asyncio.Future[None]) -> None:
        self._trim = None
        if self._trims_left and not self._arrived.closed:
            self._trim = self._loop.call_later(TRIM_S, self._give_back)
