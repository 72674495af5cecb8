"""A broker's connection to its parent: a DEALER whose routing id is the uuid of this broker.

A connection that has ended is not opened again, since the parent knows a broker by its uuid, and each uuid comes once.
The next one is a new DEALER with a new uuid.

But one on which nothing ever came has not been: the parent does not listen yet, as in an instance that is just being
started. It is tried again under the same uuid, and what was said last, a hello, is said again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from specwire.generated.flux import AnyMessage
from specwire.runtime.flux.backlog import MAX_MESSAGES, Backlog
from specwire.runtime.flux.downlink import GIVE_UP_S, HIGH_WATER
from specwire.runtime.flux.encoding import Encoder
from specwire.runtime.transport.backoff import Backoff
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.security import CurveClient, Null

CONNECT_S = 5.0
"""How long the network may take to bring a broker and its parent together."""


class Uplink:
    """One connection at a time.

    Args:
        encoder: makes frames.
        endpoint: of the parent.
        security: how this broker proves that it is of the instance.
        max_frames: frames of a message that are kept.
        backoff: when to try again.
        on_message: called with the frames of each message.
        on_sent: called with the frames when the socket has taken a message.
        on_unreachable: called with the reason when there is no connection yet.
        on_lost: called once for each connection that ends by itself, or takes nothing any more.
        resume: called with a client that was held back because of the parent.
    """

    def __init__(
        self,
        encoder: Encoder,
        endpoint: str,
        *,
        security: CurveClient | Null,
        max_frames: int,
        backoff: Backoff,
        on_message: Callable[[list[bytes]], None],
        on_sent: Callable[[Sequence[bytes]], None],
        on_unreachable: Callable[[str], None],
        on_lost: Callable[[str], None],
        resume: Callable[[str], None],
    ) -> None:
        self._encoder, self.endpoint, self._security = encoder, endpoint, security
        self._max_frames, self._backoff = max_frames, backoff
        self._on_message, self._on_sent = on_message, on_sent
        self._on_unreachable, self._on_lost, self._resume = on_unreachable, on_lost, resume
        self._dealer: Dealer | None = None
        self._backlog = Backlog(resume)
        self._said: Sequence[bytes] | None = None
        self._offered: Sequence[bytes] | None = None
        self._is_heard = False
        self._next_try: asyncio.TimerHandle | None = None

    @property
    def waiting(self) -> int:
        """Messages that wait for the parent."""
        return self._backlog.messages

    def open(self, context: TransportContext, uuid: str) -> None:
        """Connect under `uuid`; raises TransportError where the endpoint is none."""
        self._context = context
        self._begin(uuid)
        self._connect()

    def change_security(self, security: CurveClient) -> None:
        """Prove to be of the instance by other keys from the next connection on."""
        self._security = security

    def reopen(self, uuid: str) -> None:
        """Connect under another `uuid`; where that cannot be, it is tried again later."""
        self._begin(uuid)
        self._try_again()

    def _begin(self, uuid: str) -> None:
        self._uuid, self._is_heard, self._said = uuid, False, None

    def _connect(self) -> None:
        self._dealer = Dealer(
            self._context,
            self.endpoint,
            on_message=self._take,
            on_sent=self._sent,
            on_lost=self._lost,
            high_water=HIGH_WATER,
            security=self._security,
            identity=self._uuid.encode("latin-1"),
            max_waiting=MAX_MESSAGES,
            paced=True,
            max_frames=self._max_frames,
            give_up_s=GIVE_UP_S,
            connect_s=CONNECT_S,
        )

    def close(self, *, linger_s: float = 0.0) -> None:
        """End the connection where there is one; what libzmq has queued is sent for at most `linger_s`."""
        if self._next_try is not None:
            self._next_try.cancel()
        dealer, self._dealer = self._dealer, None
        backlog, self._backlog = self._backlog, Backlog(self._resume)
        if dealer is not None:
            dealer.close(linger_s=linger_s)
        backlog.release()

    def send(self, message: AnyMessage) -> Backlog | None:
        """Send up, and return what waits where that is too much already; raises EncodeError."""
        frames, backlog = self._encoder.frames_of(message), self._backlog
        if not self._is_heard:
            self._said = frames
        if self._dealer is None:
            return None
        self._offered = frames
        fits = self._dealer.send(frames)
        if self._offered is None:
            return None  # it was taken at once, so nothing waits
        self._offered = None
        backlog.add(frames)
        if not fits or backlog.is_full:
            self._on_lost(
                f"the parent left {backlog.messages:,} messages of {backlog.octets:,} octets unread"
            )
            return None
        return backlog if backlog.is_long else None

    def _take(self, frames: list[bytes]) -> None:
        self._is_heard = True
        self._on_message(frames)

    def _lost(self, reason: str) -> None:
        if self._is_heard:
            self._on_lost(reason)
            return
        self.close()
        loop = asyncio.get_running_loop()
        self._next_try = loop.call_at(self._backoff.next_try(loop.time()), self._try_again)
        self._on_unreachable(reason)

    def _try_again(self) -> None:
        try:
            self._connect()
        except TransportError as error:  # of descriptors, for instance, there may be more later
            self._lost(str(error))
            return
        if self._said is not None and self._dealer is not None:
            self._backlog.add(self._said)
            self._dealer.send(self._said)

    def _sent(self, frames: Sequence[bytes]) -> None:
        if frames is self._offered:
            self._offered = None
        else:
            self._backlog.take(frames)
        self._on_sent(frames)
