"""A ZeroMQ socket on an asyncio loop, without zmq.asyncio.

The socket's file descriptor is watched with `loop.add_reader`; when it wakes, messages are taken (`messages`)
until there are none or `DRAIN` of them have been taken, so that a busy peer leaves the loop to others. The
traps this module is about:

- ZMQ_FD is edge-triggered, and *any* call on the socket may consume the edge. So after each batch of
  receives, with what was sent during it, and after each other send, EVENTS is asked again and another round is
  scheduled where it says POLLIN. After a send that stands alone it is asked at once, which saves a turn of the loop; where
  more follow, once in the next turn for all of them.
- A send that would block raises EAGAIN. It is kept by the caller (`router`, `dealer`) and tried again when
  the descriptor wakes next, because libzmq tells "there is room again" through the same descriptor. A send to
  one peer may consume the edge that was meant for another, so a timer asks again as well while one waits.
- The connections of a bound socket linger for as long as the socket said when it was *bound*, where they end before it
  does: when the peer hangs up, and when the endpoint is let go of. libzmq's own value is for ever. So one message that
  was sent to a peer while it hung up would keep a context from ending that is closed in the same moment, as would a
  peer that does not read when the keys change. So the time is bounded before anything is bound.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from hashlib import sha1

import zmq

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.errors import ShortageError, TransportError
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.messages import Frames, Messages, Traffic, watch
from specwire.runtime.transport.port import describe_refusal
from specwire.runtime.transport.security import (
    NULL,
    CurveServer,
    PlainServer,
    Security,
    apply_security,
    set_server_keys,
)

logger = logging.getLogger(__name__)

DRAIN = 64
DRAIN_OCTETS = 1 << 20
"""A wake-up takes no more messages when those before have so many octets: they may all be in memory at once."""

RETRY_S = 0.01
MAX_FRAMES = 16
MAX_PORT = 65_535
OnMessages = Callable[[list[tuple[str, Frames]]], None]
"""Called with messages, the user of each (by the name that the `Guard` knows, empty without one) and its frames. An error in one of
them is for who is called to handle: the others are lost with it."""

LINGER_S = 0.5
"""How long is tried to send what is queued on a connection that ends before its socket is closed."""


class Link:
    """One socket: receives by callback, sends at once or says that it cannot.

    Args:
        kind: the zmq socket type.
        on_message: called with the frames of each message, after which others are only received if nothing speaks against it.
        on_messages: called in its place with all messages that a wake-up finds, up to `DRAIN` and `DRAIN_OCTETS`; see
            `OnMessages`. That costs less, and a pause comes too late for those.
        on_room: called after each wake-up, when a send that was refused may be tried again.
        on_rest: called when what has come in a wake-up was handed over; what is sent here costs no further wake-up.
        high_water: messages that libzmq queues for each peer and direction.
        max_frame_octets: a peer that sends a larger frame is disconnected by libzmq.
        security: how the two sides prove who they are.
        max_frames: frames of a message that are kept.
        give_up_s: a TCP connection on which nothing is acknowledged for so long is lost; None: the system's time.
        copied, traffic: see `messages`.

    Attributes:
        encrypted: whether the socket is a CURVE server.
        origins: descriptors of a ROUTER's connections that delivered a message; `inflow` clears it.
        ports: TCP ports that the socket is bound to.

    Raises:
        ShortageError: there are not enough descriptors, or memory.
        TransportError: the credentials are none.
    """

    def __init__(
        self,
        context: TransportContext,
        kind: int,
        *,
        on_message: Callable[[Frames], None] | None = None,
        on_messages: OnMessages | None = None,
        on_room: Callable[[], None],
        high_water: int,
        max_frame_octets: int,
        security: Security = NULL,
        max_frames: int = MAX_FRAMES,
        give_up_s: float | None = None,
        on_rest: Callable[[], None] | None = None,
        copied: bool = False,
        traffic: Traffic | None = None,
    ) -> None:
        assert (on_message is None) != (on_messages is None), (
            "messages are handed over one by one or together"
        )
        self._loop = asyncio.get_running_loop()
        self.socket = _make_socket(context, kind)
        self.socket.set_hwm(high_water)
        self.socket.setsockopt(zmq.LINGER, int(LINGER_S * 1000))
        self.socket.setsockopt(zmq.MAXMSGSIZE, max_frame_octets)
        if give_up_s is not None:
            self.socket.setsockopt(zmq.TCP_MAXRT, int(give_up_s * 1000))
        apply_security(self.socket, security)
        self.encrypted = isinstance(security, CurveServer)
        self.origins: set[int] = set()
        self._messages = Messages(
            self.socket,
            max_frames,
            isinstance(security, PlainServer | CurveServer),
            copied=copied,
            traffic=traffic,
            addressed=kind == zmq.ROUTER,
            origins=self.origins if kind == zmq.ROUTER else None,
        )
        self.ports: set[int] = set()
        self._on_message, self._on_messages = on_message, on_messages
        self._on_room, self._on_rest = on_room, on_rest
        self._paused = self._draining = self._closed = self._looked = False
        self._scheduled: asyncio.Handle | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._fd = int(self.socket.getsockopt(zmq.FD))
        try:
            watch(self._loop)
            self._loop.add_reader(self._fd, self._wake)
        except OSError as error:
            self.socket.close(linger=0)
            raise ShortageError(f"no socket can be watched: {error.strerror}") from error

    @property
    def user(self) -> str:
        """Who sent the message that was received last, by the name that the `Guard` knows; empty without one.

        That is the one that is handled where they are handed over one by one.
        """
        return self._messages.user

    @property
    def received(self) -> int:
        """Number of messages that a ROUTER has received."""
        return self._messages.received

    def bind(self, endpoint: str) -> str:
        """Bind and return the endpoint as it is, the port in place of ``*``; raises TransportError."""
        try:
            self._prepare(endpoint)
            self.socket.bind(endpoint)
        except zmq.ZMQError as error:
            reason = zmq.strerror(error.errno or 0)
            raise TransportError(describe_refusal(endpoint, error.errno, reason)) from error
        last = self.socket.getsockopt(zmq.LAST_ENDPOINT)
        bound = last.rstrip(b"\0").decode() if isinstance(last, bytes) else str(last)
        if bound.startswith("tcp://"):
            self.ports.add(int(bound.rpartition(":")[2]))
        return bound

    def unbind(self, endpoint: str) -> None:
        """Listen no more on `endpoint`, as bound; who came in by it is disconnected. Raises TransportError."""
        try:
            self.socket.unbind(endpoint)
        except zmq.ZMQError as error:
            raise TransportError(f"{endpoint} was not listened on: {error.strerror}") from error

    def set_server_keys(self, keys: KeyPair) -> None:
        """Prove to be the server by other keys wherever is bound from now on; raises TransportError."""
        set_server_keys(self.socket, keys)

    def connect(self, endpoint: str) -> None:
        """Connect, which succeeds before the peer is there; raises TransportError for a bad endpoint."""
        try:
            self._prepare(endpoint)
            self.socket.connect(endpoint)
        except zmq.ZMQError as error:
            raise TransportError(f"cannot connect to {endpoint}: {zmq.strerror(error.errno or 0)}") from error
        self._schedule()  # a connection inside the process is made without a signal, and gives none until asked

    def _prepare(self, endpoint: str) -> None:
        scheme, _, address = endpoint.partition("://")
        port = address.rpartition(":")[2]
        if scheme == "tcp" and port.isdigit() and int(port) > MAX_PORT:
            # libzmq takes it modulo 65536 and listens somewhere else.
            raise TransportError(f"there is no port {port}: {endpoint}")
        if "[" in endpoint:
            self.socket.setsockopt(zmq.IPV6, 1)

    def send(self, frames: Sequence[bytes | memoryview]) -> bool:
        """Send without waiting; False where the socket has no room now.

        Raises ConnectionResetError where a ROUTER no longer knows the peer.
        """
        try:
            sent = self._messages.send(frames)
        except zmq.ZMQError as error:
            if not self._draining:
                self._look()  # what cannot be sent may have consumed the edge as well
            raise ConnectionResetError(error.strerror) from error
        if not sent:
            if self._retry is None:
                self._retry = self._loop.call_later(RETRY_S, self._ask_again)
        elif not self._draining:
            self._look()
        return sent

    def send_all(self, messages: Sequence[Sequence[bytes]], at: int) -> int:
        """Send messages from number `at` on; return the number of the first that `send` has to decide of."""
        at = self._messages.send_all(messages, at)
        if not self._draining:
            self._look()
        return at

    def pause(self) -> None:
        """Stop receiving: libzmq's queue fills, and the peer is held back by it."""
        self._paused = True

    def resume(self) -> None:
        """Receive again after `pause`."""
        if self._paused:
            self._paused = False
            self._schedule()

    def exhausted(self) -> bool:
        """Tell whether all that has come was handed over; where not, it soon is, or waits for `resume`."""
        if not self._messages.readable():
            return True
        if not self._paused:
            self._schedule()  # having asked may have consumed the edge
        return False

    def close(self, *, linger_s: float = 0.0) -> None:
        """Close; messages still queued are sent for at most `linger_s`. May be called twice."""
        if self.socket.closed:
            return
        self._closed = True
        self._loop.remove_reader(self._fd)
        for handle in (self._scheduled, self._retry):
            if handle is not None:
                handle.cancel()
        self.socket.close(linger=int(linger_s * 1000))

    def _look(self) -> None:
        """See whether a send has consumed the edge; for the second one since the last wake-up in the next turn."""
        if self._looked or self._messages.readable():
            self._schedule()
        self._looked = True

    def _schedule(self) -> None:
        if self._scheduled is None:
            self._scheduled = self._loop.call_soon(self._wake)

    def _ask_again(self) -> None:
        self._retry = None
        self._wake()

    def _wake(self) -> None:
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        self._draining, self._looked = True, False
        try:
            try:
                self._drain()
            finally:
                self._rest()
        finally:
            self._draining = False
        if self._closed:
            return
        self._on_room()
        if not self._closed and not self._paused and self._messages.readable():
            self._schedule()

    def _drain(self) -> None:
        if self._on_messages is not None:
            if not self._paused:
                self._drain_together(self._on_messages)
            return
        assert self._on_message is not None, "see above"
        octets = 0
        for _ in range(DRAIN):
            if self._paused or self._closed or octets >= DRAIN_OCTETS:
                return
            frames = self._messages.receive()
            if not frames:
                return
            octets += sum(map(len, frames))
            try:
                self._on_message(frames)
            except Exception:
                self._schedule()  # the loop reports the error, and the socket goes on
                logger.exception("a message could not be handled (%s)", name_message(frames))
                raise

    def _drain_together(self, on_messages: OnMessages) -> None:
        messages: list[tuple[str, Frames]] = []
        try:
            try:
                self._messages.receive_all(messages, DRAIN, DRAIN_OCTETS)
            finally:  # what came before a fault was taken from the socket
                if messages:
                    on_messages(messages)
        except Exception:
            if messages and not self._closed:
                self._schedule()  # as above
            raise

    def _rest(self) -> None:
        if self._on_rest is not None:
            try:
                self._on_rest()
            except Exception:
                self._schedule()  # as above
                raise


def name_message(frames: Sequence[bytes]) -> str:
    """Return by what a message is known in a log, which is not to have what is in it."""
    digest = sha1(b"".join(frames), usedforsecurity=False).hexdigest()
    return f"{len(frames)} frames, SHA-1 {digest}"


def _make_socket(context: TransportContext, kind: int) -> zmq.Socket[bytes]:
    try:
        return context.zmq.socket(kind)
    except zmq.ZMQError as error:
        raise ShortageError(f"no socket can be made: {error.strerror}") from error
