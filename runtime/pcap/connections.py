"""TCP connections in a recording: segments in, the octets of each direction out, in their order.

A connection begins with SYN, or with its first segment where the recorder came later; a SYN with another number on
the same addresses is a new connection. It ends with FIN of both sides, RST, or the recording.

Octets that the other side acknowledged, and that were not recorded, are lost: dropped by the recorder, or cut off
packets. Recorders may see an acknowledgement before what it acknowledges, so some packets' patience comes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import NamedTuple

from specwire.runtime.pcap.flow import Flow
from specwire.runtime.pcap.segments import ACK, FIN, RST, SYN, Address, Segment

MAX_CONNECTIONS = 8192
"""Connections that are followed at once; beyond them the one that was silent longest is let go."""

PATIENCE = 32
PATIENCE_NS = 1_000_000_000
"""Packets of a connection, and time, that may pass before octets that were acknowledged count as lost."""


class Late:
    """How long the other side of a flow has acknowledged what is not there: packets, and since when."""

    def __init__(self) -> None:
        self.packets = 0
        self.since_ns = 0

    def note(self, time_ns: int) -> bool:
        """Take note of a packet; say whether patience is at its end."""
        if not self.packets:
            self.since_ns = time_ns
        self.packets += 1
        return self.packets > PATIENCE or time_ns - self.since_ns > PATIENCE_NS


class Connection:
    """One connection.

    Attributes:
        number: count of the connections, from 1.
        opener: the side that opened it, as far as can be told.
        listener: the side that accepted it.
        is_whole: whether its beginning was recorded.
    """

    def __init__(self, number: int, opener: Address, listener: Address, *, is_whole: bool) -> None:
        self.number = number
        self.opener = opener
        self.listener = listener
        self.is_whole = is_whole
        self.flows = {opener: Flow(), listener: Flow()}
        self.late = {opener: Late(), listener: Late()}
        self.ended = False
        """Whether its end was told; it is kept, so that what comes late is not taken for another connection."""

    def other(self, side: Address) -> Address:
        """Return the other side."""
        return self.listener if side == self.opener else self.opener

    @property
    def is_over(self) -> bool:
        """Whether both sides have said all."""
        return all(flow.end is not None and flow.expected >= flow.end for flow in self.flows.values())


class Piece(NamedTuple):
    """Octets that one side sent, or the end of a connection.

    Attributes:
        time_ns: when the packet was seen that made them known.
        sender: the side that sent them; None at the end of the connection.
        octets: what was sent, as much as could be put in order at once.
        lost: octets before them that were not recorded.
    """

    time_ns: int
    connection: Connection
    sender: Address | None
    octets: bytes
    lost: int


class Connections:
    """Puts the segments of a recording together.

    Attributes:
        count: connections so far.
    """

    def __init__(self) -> None:
        self.count = 0
        self._known: OrderedDict[tuple[Address, Address], Connection] = OrderedDict()
        self._now_ns = 0

    def add(self, segment: Segment) -> Iterator[Piece]:
        """Take a segment and yield what it makes known; iterate to the end before the next call."""
        self._now_ns = segment.time_ns
        key = _key(segment)
        connection = self._known.get(key)
        if connection is not None and _begins_anew(connection, segment):
            yield from self._end(key)
            del self._known[key]
            connection = None
        if connection is None:
            if not segment.flags & SYN and not segment.payload:
                return
            connection = self._open(key, segment)
        self._known.move_to_end(key)
        if connection.ended:
            return
        if len(self._known) > MAX_CONNECTIONS:
            oldest = next(iter(self._known))
            yield from self._end(oldest)
            del self._known[oldest]
        self._place(connection, segment)
        for side in (segment.source, segment.target):
            yield from self._deliver(connection, side, segment)
        if segment.flags & RST or connection.is_over:
            yield from self._end(key)

    def end(self) -> Iterator[Piece]:
        """Yield what is left when the recording ends."""
        for key in list(self._known):
            yield from self._end(key)

    def _open(self, key: tuple[Address, Address], segment: Segment) -> Connection:
        self.count += 1
        answers = segment.flags & SYN and segment.flags & ACK
        # In the middle of a connection, the smaller port is more often the one that was listened at.
        swapped = answers or (not segment.flags & SYN and segment.source.port < segment.target.port)
        ends = (segment.target, segment.source) if swapped else (segment.source, segment.target)
        connection = Connection(self.count, *ends, is_whole=bool(segment.flags & SYN))
        self._known[key] = connection
        return connection

    def _place(self, connection: Connection, segment: Segment) -> None:
        flow = connection.flows[segment.source]
        seq = segment.seq
        if segment.flags & SYN:
            seq += 1
            if not flow.begun:
                flow.begin(seq, initial=segment.seq)
        if not flow.begun:
            if not segment.payload:
                return  # It may be a keep-alive, whose number is of the octet before.
            flow.begin(seq)
        place = flow.place(seq)
        flow.add(place, segment.payload, segment.time_ns)
        if segment.flags & FIN and flow.end is None:
            flow.end = place + len(segment.payload) + segment.missing

    def _deliver(self, connection: Connection, side: Address, segment: Segment) -> Iterator[Piece]:
        """Yield what one side's flow has ready, over what is surely lost where it has to."""
        flow = connection.flows[side]
        taken = flow.take()
        if taken:
            connection.late[side] = Late()
            # What waited for octets before it is known only now.
            yield Piece(segment.time_ns, connection, side, b"".join(octets for _, octets in taken), 0)
        elif flow.begun and (lost := self._give_up(connection, side, segment)):
            connection.late[side] = Late()
            yield from _behind(connection, side, lost, segment.time_ns)

    def _give_up(self, connection: Connection, side: Address, segment: Segment) -> int:
        """Skip what will not come any more; return how many octets."""
        flow, late = connection.flows[side], connection.late[side]
        if flow.is_full:
            return flow.skip()
        acknowledged = flow.expected
        if segment.source != side and segment.flags & ACK:
            acknowledged = flow.place(segment.ack)
        if flow.end is not None:
            acknowledged = min(acknowledged, flow.end)
        if acknowledged <= flow.expected or not late.note(segment.time_ns):
            return 0
        return flow.skip_to(acknowledged)

    def _end(self, key: tuple[Address, Address]) -> Iterator[Piece]:
        connection = self._known[key]
        if connection.ended:
            return
        connection.ended = True
        for side, flow in connection.flows.items():
            while flow.is_waiting:
                yield from _behind(connection, side, flow.skip(), self._now_ns)
        yield Piece(self._now_ns, connection, None, b"", 0)


def _behind(connection: Connection, side: Address, lost: int, now_ns: int) -> Iterator[Piece]:
    """What lies behind octets that were skipped, with the times at which it came."""
    taken = connection.flows[side].take() or [(now_ns, b"")]
    for number, (time_ns, octets) in enumerate(taken):
        yield Piece(time_ns, connection, side, octets, 0 if number else lost)


def _key(segment: Segment) -> tuple[Address, Address]:
    ends = (segment.source, segment.target)
    return ends if ends[0] < ends[1] else (ends[1], ends[0])


def _begins_anew(connection: Connection, segment: Segment) -> bool:
    """Whether a SYN is of another connection than the one known on these addresses."""
    flow = connection.flows[segment.source]
    return bool(segment.flags & SYN) and flow.begun and flow.initial != segment.seq
