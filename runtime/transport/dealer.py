"""The DEALER of a client: one server, messages in order, what cannot be sent now is sent later."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import zmq

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.link import Frames, Link
from specwire.runtime.transport.security import NULL, Security

MAX_WAITING = 10_000
MAX_FRAME_OCTETS = 16 << 20


class Dealer:
    """A connection to one endpoint; a new connection is a new `Dealer`, with a new routing id.

    Args:
        on_message: called with the frames of each message.
        on_sent: called with the frames of each message when the socket has taken it.
        high_water: messages that libzmq queues in each direction.
        security: how this side proves who it is, and whom it expects.

    Raises:
        TransportError: the endpoint is none.
    """

    def __init__(
        self,
        context: TransportContext,
        endpoint: str,
        *,
        on_message: Callable[[Frames], None],
        on_sent: Callable[[Sequence[bytes]], None],
        high_water: int = 1000,
        security: Security = NULL,
    ) -> None:
        self._on_sent = on_sent
        self._waiting: deque[Sequence[bytes]] = deque()
        self._link = Link(
            context,
            zmq.DEALER,
            on_message=on_message,
            on_room=self._flush,
            high_water=high_water,
            max_frame_octets=MAX_FRAME_OCTETS,
            security=security,
        )
        try:
            self._link.connect(endpoint)
        except TransportError:
            self._link.close()  # an open socket would keep the context from ending
            raise

    def send(self, frames: Sequence[bytes]) -> bool:
        """Send now or when there is room; False where too much waits already and the message is dropped."""
        if len(self._waiting) >= MAX_WAITING:
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
        self._link.close(linger_s=linger_s)

    def _flush(self) -> None:
        while self._waiting and self._link.send(self._waiting[0]):
            self._on_sent(self._waiting.popleft())
