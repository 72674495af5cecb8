"""The local connector: a broker's UNIX socket, its clients, and their messages as octets on a stream.

A client that connects is known to the kernel (SO_PEERCRED). Whoever runs the connector says by its uid whether it
may come in; the client gets one octet, 0 or the error number, and from then on messages go both ways, framed as
`specwire.generated.flux.stream` says. Each connection has a fresh uuid, which is its identity in route stacks.

What one client does touches no other:

- Octets that are no messages end its connection, after what was complete before them.
- A client that does not read what it asked for is not read from either, so its requests wait in its own socket.
  What comes later (events, streams, answers from elsewhere) has a bound: over it the client is disconnected.
- Nor is one read from that the caller holds back, because what it asks for goes on to where there is no room.
- The answers to requests that arrived together leave together, in one `send`.

Nothing is written to the log but faults of our own: what a client did is told to `on_gone`, whose caller knows how
many such lines a log can bear.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha1
from typing import cast
from uuid import uuid4

from specwire.generated.errors import DecodeError
from specwire.generated.flux import AnyMessage
from specwire.generated.stream import MessageStream
from specwire.runtime.flux.events import DISCONNECTED
from specwire.runtime.flux.local_socket import LocalSocket, peer_of
from specwire.runtime.flux.outgoing import Outgoing
from specwire.runtime.flux.wire import FLUX, LocalWire
from specwire.runtime.transport.accepting import Acceptor

logger = logging.getLogger(__name__)

READ_OCTETS = 64 * 1024
"""Octets that one client is read at a time, before it is another's turn."""

MAX_MESSAGE_OCTETS = 16 << 20
"""The longest message from a client; what announces to be longer is malformed."""

HOLD_BACK_OCTETS = 1 << 20
"""With more than this unread, a client is not read from."""

MAX_UNREAD_OCTETS = 16 << 20
"""With more than this unread, a client gets no further message but is disconnected."""

LINGER_S = 5.0
"""How long a connection that is being closed may take to get rid of what was sent."""

ALLOWED = 0


@dataclass(slots=True)
class Counts:
    """What a connector has done so far."""

    accepted: int = 0
    denied: int = 0
    malformed: int = 0
    slow: int = 0
    received: int = 0
    sent: int = 0


class Connector:
    """The socket of ``local://PATH``; `start` listens, `stop` lets every client go.

    Args:
        path: of the socket.
        on_accept: called with a new client's id, uid and pid; returns 0 to let it in, or the errno it is refused with.
        on_message: called with the id and the message, in the order in which a client sent them.
        on_gone: called once for each client that was let in, with the reason, when its connection is over.
        on_handed: called when the messages that one client sent together have all been handed over.
        wire: the protocol that clients speak.
        max_message_octets: the longest message that a client may send.
        max_unread_octets: what a client may leave unread before it is disconnected.

    Attributes:
        counts: what was done so far.
        octets: what each client is read into, one after the other.
    """

    def __init__(
        self,
        path: str,
        *,
        on_accept: Callable[[str, int, int], int],
        on_message: Callable[[str, AnyMessage], None],
        on_gone: Callable[[str, str], None],
        on_handed: Callable[[], None] = lambda: None,
        wire: LocalWire = FLUX,
        max_message_octets: int = MAX_MESSAGE_OCTETS,
        max_unread_octets: int = MAX_UNREAD_OCTETS,
    ) -> None:
        self.path = path
        self.counts = Counts()
        self.on_accept, self.on_message, self.on_gone = on_accept, on_message, on_gone
        self.on_handed = on_handed
        self.max_unread_octets = max_unread_octets
        self.octets = memoryview(bytearray(READ_OCTETS))
        self._wire, self._max_message_octets = wire, max_message_octets
        self._clients: dict[str, _Client] = {}
        self._encode, self._frame = wire.encode, wire.framing.frame
        self._latest: AnyMessage | None = None
        self._octets = b""

    @property
    def clients(self) -> tuple[str, ...]:
        """The ids of the clients there are."""
        return tuple(self._clients)

    async def start(self) -> None:
        """Listen; raises TransportError."""
        loop = asyncio.get_running_loop()
        self._socket = LocalSocket(self.path)
        self._acceptor = Acceptor(self._socket.socket, lambda: _Client(self, loop), self.path)

    async def stop(self, reason: str = "the broker stops") -> None:
        """Stop listening, and close every connection, with a call of `on_gone` for each."""
        self._acceptor.close()
        for client in self.clients:
            self.close(client, reason)
            self.release(client, reason)
        self._socket.close()

    def send(self, client: str, message: AnyMessage) -> None:
        """Send to a client; nothing happens where it is gone, and one that reads too slowly is disconnected.

        Raises:
            EncodeError: a field's value cannot be put on the wire.
        """
        connection = self._clients.get(client)
        if connection is None or connection.is_over:
            return
        if message is not self._latest:  # an event goes to many, one after the other, and is framed once
            self._octets = self._frame(self._encode(message))
            self._latest = message
        if connection.is_unread:
            connection.send_or_give_up(self._octets)
        else:
            self.counts.sent += 1
            connection.outgoing.write(self._octets)

    def hold(self, client: str) -> None:
        """Take no more messages from a client, be they read already, until `resume`."""
        if connection := self._clients.get(client):
            connection.hold()

    def resume(self, client: str) -> None:
        """Take messages from a client again; what had been read already comes at once."""
        if connection := self._clients.get(client):
            connection.resume()

    def close(self, client: str, reason: str) -> None:
        """End a client's connection; what was sent before still goes out, if that does not take long."""
        if connection := self._clients.get(client):
            connection.end(reason)

    def decoder(self) -> MessageStream[AnyMessage]:
        """Return what reads the stream of one client."""
        return MessageStream(self._wire.framing, self._wire.decode, self._max_message_octets)

    def admit(self, client: str, connection: _Client) -> None:
        """Take a client in."""
        self._clients[client] = connection
        self.counts.accepted += 1

    def release(self, client: str, reason: str) -> None:
        """Forget a client whose connection is over."""
        if self._clients.pop(client, None) is not None:
            self.on_gone(client, reason)


class _Client(asyncio.BufferedProtocol):
    """One connection.

    Attributes:
        is_over: whether there is a reason why nothing comes from it and goes to it: not yet, or not any more.
        is_unread: whether so much is unread that no more requests are taken.
        outgoing: what goes to it.
    """

    def __init__(self, connector: Connector, loop: asyncio.AbstractEventLoop) -> None:
        self.id = str(uuid4())
        self._connector, self._loop = connector, loop
        self._decoder = connector.decoder()
        self._waiting: list[AnyMessage] = []
        self.is_unread = self._held = self._delivering = self._is_read_from = False
        self._reason = "was not let in"
        self.is_over = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask whether the client may come in, and tell it."""
        self._transport = cast("asyncio.Transport", transport)
        self.outgoing = Outgoing(self._loop, self._transport)
        pid, uid = peer_of(self._transport.get_extra_info("socket"))
        try:
            errnum = self._connector.on_accept(self.id, uid, pid)
        except BaseException:
            self._transport.abort()
            raise
        self._transport.write(bytes((errnum,)))
        if errnum == ALLOWED:
            self._reason, self.is_over = "", False
            self._is_read_from = True
            high = min(HOLD_BACK_OCTETS, self._connector.max_unread_octets)
            self._transport.set_write_buffer_limits(high=high)
            self._connector.admit(self.id, self)
        else:
            self._connector.counts.denied += 1
            self._transport.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next octets go, and are taken from before the loop turns to another client."""
        return self._connector.octets

    def buffer_updated(self, nbytes: int) -> None:
        """Take `nbytes` octets."""
        try:
            messages = self._decoder.feed(bytes(self._connector.octets[:nbytes]))
        except DecodeError as error:
            self._refuse(error)
        else:
            self._deliver(self._waiting + messages if self._waiting else messages)

    def eof_received(self) -> None:
        """Nothing more comes from the client: its connection is over, whatever it still waits for."""
        try:
            self._decoder.eof()
        except DecodeError as error:
            self._refuse(error)

    def pause_writing(self) -> None:
        """Take no more requests while there is so much unread."""
        self.is_unread = True
        self._read_or_not()

    def resume_writing(self) -> None:
        """Take requests again."""
        self.is_unread = False
        self._deliver(self._waiting)

    def hold(self) -> None:
        """Take no more requests while the caller wants none."""
        self._held = True
        self._read_or_not()

    def resume(self) -> None:
        """Take requests again."""
        self._held = False
        if not self._delivering:
            self._deliver(self._waiting)

    def connection_lost(self, error: Exception | None) -> None:
        """The connection is over. A client that ends with something unread, as commands do, just ends."""
        just_ended = error is None or isinstance(error, BrokenPipeError | ConnectionResetError)
        self._reason = self._reason or (DISCONNECTED if just_ended else str(error))
        self.is_over = True
        self._connector.release(self.id, self._reason)

    def send_or_give_up(self, octets: bytes) -> None:
        """Send to a client that does not read, unless it has left too much unread."""
        if self.outgoing.waiting_octets > self._connector.max_unread_octets:
            self._connector.counts.slow += 1
            self._finish(f"slow subscriber: {self.outgoing.waiting_octets:,} octets are unread")
            self._transport.abort()
        else:
            self._connector.counts.sent += 1
            self.outgoing.write(octets)

    def end(self, reason: str) -> None:
        """Close once everything is sent."""
        self._finish(reason)
        self.outgoing.flush()
        self._transport.close()
        self._loop.call_later(LINGER_S, self._transport.abort)

    def _finish(self, reason: str) -> None:
        """Make it over; the connector tells that when the present message has been dealt with."""
        if not self._reason:
            self._reason, self.is_over = reason, True
            self._loop.call_soon(self._connector.release, self.id, reason)

    def _refuse(self, error: DecodeError) -> None:
        self._connector.counts.malformed += 1
        self.end(f"malformed: {error}")

    def _deliver(self, messages: list[AnyMessage]) -> None:
        """Hand messages on until the answers to them are too much at once, or the caller wants no more."""
        self._waiting = []
        self._delivering = True
        self.outgoing.hold()
        taken, message = 0, None
        hand_over, who = self._connector.on_message, self.id
        try:
            for message in messages:
                if self.is_unread or self._held or self.is_over:
                    self._waiting = messages[taken:]
                    break
                taken += 1
                hand_over(who, message)
        except Exception:
            digest = sha1(repr(message).encode(), usedforsecurity=False).hexdigest()
            logger.exception("a message of client %s could not be handled (SHA-1 %s)", self.id, digest)
            raise  # asyncio ends this connection with it
        self._connector.counts.received += taken
        self._delivering = False
        self.outgoing.release()
        if self._decoder.fault is not None and not self._waiting and not self._reason:
            self._refuse(self._decoder.fault)
        if self._is_read_from is (self.is_unread or self._held):
            self._read_or_not()
        self._connector.on_handed()

    def _read_or_not(self) -> None:
        """Read while messages are wanted."""
        wanted = not self.is_unread and not self._held
        if wanted is self._is_read_from or self._transport.is_closing():
            return
        self._is_read_from = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
