"""What becomes of a socket's connections, told by libzmq as it happens: made, failed, lost.

libzmq writes its events into a PAIR socket inside the context, which is read here like any other link. What would
surprise:

- An event names the endpoint that was bound or connected to, not the other side's address. Some events have the number
  of a descriptor, which may be closed, and given to another connection, before the event is read. Events come in order,
  so whoever follows them knows the present owner once all are read (`inflow`).
- libzmq's I/O thread waits where the PAIR is full or has no reader, and while it waits the watched socket can
  neither be closed nor left alone. So the queue has no bound, and `close` first ends the events and then the PAIR.
- A failed attempt to connect gives one event or two: `CONNECT_FAILED` where an attempt was made, and then
  `CONNECT_RETRIED`, which is the only one where none could be made at all, as with a name that nobody knows.
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
"""First frame of an event: which one, and a number whose meaning depends on it."""

MAX_FRAME_OCTETS = 1 << 16
_names = count()

FAULTS = {
    int(
        zmq.PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH
    ): "the mechanisms of the two sides differ (NULL, PLAIN, CURVE)",
    int(zmq.PROTOCOL_ERROR_ZMTP_CRYPTOGRAPHIC): "the keys of the two sides do not fit",
}


class Turn(Enum):
    """What can become of a connection; the values are libzmq's events."""

    CONNECTED = zmq.EVENT_CONNECTED.value
    """The network has brought both sides together, and the handshake begins."""
    CONNECT_FAILED = zmq.EVENT_CLOSED.value
    CONNECT_RETRIED = zmq.EVENT_CONNECT_RETRIED.value
    """Another attempt will be made later."""
    ACCEPTED = zmq.EVENT_ACCEPTED.value
    """Somebody has connected here, and the handshake begins."""
    ACCEPT_FAILED = zmq.EVENT_ACCEPT_FAILED.value
    OPENED = zmq.EVENT_HANDSHAKE_SUCCEEDED.value
    """Messages can flow."""
    NOT_LET_IN = zmq.EVENT_HANDSHAKE_FAILED_AUTH.value
    """The server's guard knows no such client."""
    NOT_UNDERSTOOD = zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL.value
    """The two sides do not agree about the handshake, or about its keys."""
    HUNG_UP = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL.value
    """The other side has gone before the handshake was over."""
    DISCONNECTED = zmq.EVENT_DISCONNECTED.value


class SocketEvent(msgspec.Struct, frozen=True):
    """One event; `endpoint` is the one of this side's `bind` or `connect`, `reason` is empty where it needs none.

    `descriptor` is that of the connection with `ACCEPTED` and `DISCONNECTED`, else -1.
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
        """Tell nothing any more. May be called twice."""
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
