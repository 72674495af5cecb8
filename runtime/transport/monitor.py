"""Events of a socket's connections, from libzmq's socket monitor: connected, failed, lost.

libzmq writes the events into a PAIR socket inside the context, which is read here as a link.

Surprises:

- An event has the endpoint that was bound or connected to, not the peer's address. Some events have
  the number of a descriptor. It may be closed, and reused for another connection, before the event
  is read. Events arrive in order, so the owner of a number is known once all are read (see
  `inflow`).
- libzmq's I/O thread blocks while the PAIR is full or has no reader, and then the watched socket
  cannot be closed. So the queue has no bound, and `close` stops the events before it closes the
  PAIR.
- A failed attempt to connect gives one or two events: `CONNECT_FAILED` if an attempt was made, then
  `CONNECT_RETRIED`. An unknown host name gives `CONNECT_RETRIED` alone.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable
from enum import Enum
from itertools import count

import msgspec
import zmq

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.errors import ShortageError
from specwire.runtime.transport.link import Link
from specwire.runtime.transport.messages import Frames

EVENT = struct.Struct("=Hi")
"""First frame of an event: its number, and a value whose meaning depends on the event."""

MAX_FRAME_OCTETS = 1 << 16
_names = count()

FAULTS = {
    int(
        zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
    ): "the mechanisms of the two sides differ (NULL, PLAIN, CURVE)",
    int(zmq.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC): "the keys of the two sides do not fit",
}


class Turn(Enum):
    """Kind of event; the values are libzmq's."""

    CONNECTED = zmq.EVENT_CONNECTED.value
    """This side has connected, and the handshake begins."""
    CONNECT_FAILED = zmq.EVENT_CLOSED.value
    CONNECT_RETRIED = zmq.EVENT_CONNECT_RETRIED.value
    """Another attempt will be made later."""
    ACCEPTED = zmq.EVENT_ACCEPTED.value
    """A peer has connected, and the handshake begins."""
    ACCEPT_FAILED = zmq.EVENT_ACCEPT_FAILED.value
    OPENED = zmq.EVENT_HANDSHAKE_SUCCEEDED.value
    """Messages can flow."""
    NOT_LET_IN = zmq.EVENT_HANDSHAKE_FAILED_AUTH.value
    """The server's `Guard` refused the client."""
    NOT_UNDERSTOOD = zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL.value
    """The two sides do not agree about the handshake, or about its keys."""
    HUNG_UP = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL.value
    """The peer hung up during the handshake."""
    DISCONNECTED = zmq.EVENT_DISCONNECTED.value


class SocketEvent(msgspec.Struct, frozen=True):
    """Event of a connection.

    Attributes:
        endpoint: endpoint of this side's `bind` or `connect`.
        reason: cause of a failure; empty for other events.
        descriptor: descriptor of the connection for `ACCEPTED` and `DISCONNECTED`, else -1.
    """

    turn: Turn
    endpoint: str
    reason: str = ""
    descriptor: int = -1


class Monitor:
    """Tells of the connections of one socket, from before it is bound or connected until `close`.

    Args:
        link: whose socket is watched; it is closed after the monitor.
        turns: what is to be told.
        on_event: called with each event, on the event loop.

    Raises:
        TransportError: the process has no descriptors left.
    """

    def __init__(
        self,
        context: TransportContext,
        link: Link,
        turns: Iterable[Turn],
        on_event: Callable[[SocketEvent], None],
    ) -> None:
        self._on_event = on_event
        self._watched = link.socket
        place = f"inproc://monitor-{next(_names)}"
        self._events = Link(
            context,
            zmq.PAIR,
            on_message=self._take,
            on_room=_nothing_to_send,
            high_water=0,
            max_frame_octets=MAX_FRAME_OCTETS,
        )
        try:
            self._watched.monitor(place, sum(turn.value for turn in set(turns)))
        except zmq.ZMQError as error:
            self._events.close()
            raise ShortageError(f"a socket cannot be watched: {error.strerror}") from error
        self._events.connect(place)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._events.socket.closed

    def close(self) -> None:
        """Stop the events. May be called twice."""
        if not self._events.socket.closed:
            self._watched.disable_monitor()
            self._events.close()

    def _take(self, frames: Frames) -> None:
        number, value = EVENT.unpack(frames[0])
        turn = Turn(number)
        descriptor = value if turn in (Turn.ACCEPTED, Turn.DISCONNECTED) else -1
        self._on_event(SocketEvent(turn, frames[1].decode(), _reason(turn, value), descriptor))


def _nothing_to_send() -> None:
    """A monitor only listens."""


def _reason(turn: Turn, value: int) -> str:
    match turn:
        case Turn.NOT_LET_IN:
            return f"the server knows no such client ({value})"
        case Turn.NOT_UNDERSTOOD:
            return FAULTS.get(value, f"it is not as ZMTP has it ({value:#x})")
        case Turn.HUNG_UP | Turn.ACCEPT_FAILED:
            return os.strerror(value)
        case _:
            return ""
