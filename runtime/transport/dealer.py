"""The DEALER of a client: one server, messages in order, what cannot be sent now is sent later.

libzmq would open a lost connection again without a word. But the server knows a peer by the routing id of its
connection, so what is said next would come from a stranger. So libzmq is told to wait before it connects again, for
longer than anybody keeps a `Dealer`: the loss is told, and a new connection is a new `Dealer` of its owner's. (To
forbid libzmq the second attempt, `ZMQ_RECONNECT_IVL` of -1, would be worse in two ways: what was received and not read
is dropped with the connection, and a name that nobody knows is not told.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import zmq

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.freight import Freight, view_largest
from specwire.runtime.transport.link import MAX_FRAMES, Link
from specwire.runtime.transport.messages import Frames
from specwire.runtime.transport.monitor import Monitor, SocketEvent, Turn
from specwire.runtime.transport.security import NULL, Security

MAX_WAITING = 10_000
SERVER = b""
"""Whose freight it is: the one peer of a `Dealer`."""

MAX_FRAME_OCTETS = 16 << 20
RECONNECT_MS = 24 * 3600 * 1000

ENDS = {
    Turn.CONNECT_FAILED: "no connection is possible",
    Turn.CONNECT_RETRIED: "there is no way to it, or its name is not known",
    Turn.NOT_LET_IN: "the handshake failed",
    Turn.NOT_UNDERSTOOD: "the handshake failed",
    Turn.HUNG_UP: "it hung up during the handshake: keys or mechanisms may not fit, or it does not speak ZMTP",
    Turn.DISCONNECTED: "the connection was lost",
}
"""The events after which nothing comes over this connection any more."""


class Dealer:
    """A connection to one endpoint; a new connection is a new `Dealer`, with a new routing id.

    Args:
        on_message: called with the frames of each message.
        on_sent: called with the frames of each message when the socket has taken it.
        on_open: called when the handshake has succeeded.
        on_lost: called once with the reason where there is no connection (any more), after all messages that came.
        high_water: messages that libzmq queues in each direction.
        security: how this side proves who it is, and whom it expects.
        identity: the routing id by which the server is to know this connection; without it libzmq makes one.
        max_waiting: messages that wait here when the socket has no room.
        paced: a large frame waits here until others have left, so that what libzmq holds is bounded in octets.
        max_frames: frames of a message that are kept.
        max_frame_octets: a server that sends a larger frame loses the connection.
        give_up_s: a TCP connection on which nothing is acknowledged for so long is lost.
        connect_s: a TCP connection that does not come about in so long is none; None: the system's time.
        on_rest: called when what has come in a wake-up was handed over.

    Raises:
        ShortageError: there are not enough descriptors, or memory.
        TransportError: the endpoint is none, or the credentials are.
    """

    def __init__(
        self,
        context: TransportContext,
        endpoint: str,
        *,
        on_message: Callable[[Frames], None],
        on_sent: Callable[[Sequence[bytes]], None],
        on_lost: Callable[[str], None],
        on_open: Callable[[], None] | None = None,
        high_water: int = 1000,
        security: Security = NULL,
        identity: bytes = b"",
        max_waiting: int = MAX_WAITING,
        paced: bool = False,
        max_frames: int = MAX_FRAMES,
        max_frame_octets: int = MAX_FRAME_OCTETS,
        give_up_s: float | None = None,
        connect_s: float | None = None,
        on_rest: Callable[[], None] | None = None,
    ) -> None:
        self._on_sent, self._on_lost, self._on_open = on_sent, on_lost, on_open
        self._loss: str | None = None
        self._told = False
        self._waiting: deque[Sequence[bytes]] = deque()
        self._max_waiting = max_waiting
        self._freight = Freight(lambda _: self._flush()) if paced else None
        self._link = Link(
            context,
            zmq.DEALER,
            on_message=on_message,
            on_room=self._wake,
            high_water=high_water,
            max_frame_octets=max_frame_octets,
            security=security,
            max_frames=max_frames,
            give_up_s=give_up_s,
            on_rest=on_rest,
        )
        if identity:
            self._link.socket.setsockopt(zmq.ROUTING_ID, identity)
        self._link.socket.setsockopt(zmq.RECONNECT_IVL, RECONNECT_MS)
        if connect_s is not None:
            self._link.socket.setsockopt(zmq.CONNECT_TIMEOUT, int(connect_s * 1000))
        try:
            turns = ENDS if on_open is None else (*ENDS, Turn.OPENED)
            self._monitor = Monitor(context, self._link, turns, self._notice)
        except TransportError:
            self._link.close()  # an open socket would keep the context from ending
            raise
        try:
            self._link.connect(endpoint)
        except TransportError:
            self.close()
            raise

    def send(self, frames: Sequence[bytes]) -> bool:
        """Send now or when there is room; False where too much waits already and the message is dropped."""
        if len(self._waiting) >= self._max_waiting:
            return False
        self._waiting.append(frames)
        self._flush()
        return True

    def pause(self) -> None:
        """Stop receiving until `resume`."""
        self._link.pause()

    def resume(self) -> None:
        """Receive again."""
        self._link.resume()

    def close(self, *, linger_s: float = 0.0) -> None:
        """Close; what libzmq has queued is sent for at most `linger_s`."""
        self._monitor.close()
        self._link.close(linger_s=linger_s)

    def _notice(self, event: SocketEvent) -> None:
        if event.turn is Turn.OPENED:
            if self._on_open is not None:
                self._on_open()
        elif self._loss is None:
            end = ENDS[event.turn]
            self._loss = f"{end} ({event.reason})" if event.reason else end
            self._tell_loss()

    def _wake(self) -> None:
        self._flush()
        self._tell_loss()

    def _tell_loss(self) -> None:
        """Tell of the loss once everything that came before it was handed over; until then, each wake-up asks."""
        if self._loss is not None and not self._told and self._link.exhausted():
            self._told = True
            self._on_lost(self._loss)

    def _flush(self) -> None:
        while self._waiting and self._offer(self._waiting[0]):
            self._on_sent(self._waiting.popleft())

    def _offer(self, frames: Sequence[bytes]) -> bool:
        """Return False where there is no room."""
        if self._freight is None:
            return self._link.send(frames)
        viewed, view = view_largest(frames)
        if view is None:
            return self._link.send(viewed)
        if not self._freight.room(SERVER, view.nbytes) or not self._link.send(viewed):
            return False
        self._freight.add(SERVER, view)
        return True
