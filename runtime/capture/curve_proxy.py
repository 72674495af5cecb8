"""Proxy between peers that use CURVE, with the server's key pair and a key that the server admits.

Encrypted traffic cannot be read between two peers. So each client uses CURVE with the proxy, which
has the key that clients expect of the server. The proxy uses CURVE with the server, with a separate
connection for each client, under the client's routing id. The server sees one key for all of them.
Nothing is dropped: a peer that does not read pauses the other side. A server that does not read
pauses all clients, because they share a socket.

Surprise: libzmq does not say whose connection was lost. A lost client is noticed when the server
next sends to it, as servers with heartbeats do, and then its connection to the server is closed. A
lost server is noticed at once; a client's next message opens a new connection.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from specwire.runtime.capture.proxy import Recording
from specwire.runtime.transport.arrivals import Arrivals
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.guard import Guard
from specwire.runtime.transport.inflow import Inflow, InflowBounds
from specwire.runtime.transport.router import Router
from specwire.runtime.transport.security import CurveClient, CurveServer

logger = logging.getLogger(__name__)

MAX_CLIENTS = 1000
MAX_FRAMES = 1024
MAX_FRAME_OCTETS = 64 << 20
BOUNDS = InflowBounds(legal_octets=MAX_FRAME_OCTETS + (1 << 20))
PENDING = 100
"""Messages of a client that the server has not taken, from which on no client is read."""


class CurveProxy:
    """Passes messages on from `open` to `close`.

    Args:
        endpoint: where clients connect; the port may be ``*``.
        target: where the server listens.
        front: the keys that clients expect.
        back: the proxy's keys before the server, and the server's public key.
        clients: names of the clients that are let in, by their public keys.
        begin: gives what records a new conversation, by the name of its client.

    Attributes:
        endpoint: as it is, once it is open.
        connections: connections to the server so far.
        refused: refused clients, messages of clients beyond the limit, and connections that were
            cut off because an unfinished message exceeded its bound.
    """

    def __init__(
        self,
        endpoint: str,
        target: str,
        front: CurveServer,
        back: CurveClient,
        clients: Mapping[str, str],
        begin: Callable[[str], Recording],
        *,
        max_connections: int = MAX_CLIENTS,
    ) -> None:
        self.endpoint, self.target = endpoint, target
        self.connections = self.refused = 0
        self._front, self._back, self._clients = front, back, clients
        self._begin, self._max = begin, max_connections
        self._servers: dict[bytes, _Server] = {}
        self._full: set[bytes] = set()
        self._said = ""

    @property
    def open_connections(self) -> int:
        """Connections to the server that there are now."""
        return len(self._servers)

    async def open(self) -> None:
        """Listen; raises TransportError."""
        self._context = TransportContext()
        self._guard = Guard(self._context, names=self._clients, on_refused=self._refuse)
        self._guard.start()
        self._router = Router(
            self._context,
            on_message=self._from_client,
            on_sent=lambda peer, frames: None,
            on_room=self._resume,
            on_gone=self._forget,
            security=self._front,
            paced=True,
            max_frames=MAX_FRAMES,
            max_frame_octets=MAX_FRAME_OCTETS,
        )
        self._arrivals: Arrivals | None = None
        try:
            inflow = Inflow(self._router.link, BOUNDS, self._cut_off)
            self._arrivals = Arrivals(self._context, self._router.link, _ignore, inflow=inflow)
            self.endpoint = self._router.bind(self.endpoint)
        except TransportError:
            await self.close()
            raise

    async def close(self) -> None:
        """Listen no more and end all connections."""
        for server in self._servers.values():
            server.dealer.close()
        self._servers.clear()
        if self._arrivals is not None:
            self._arrivals.close()
        self._router.close()
        self._guard.close()
        await self._context.close()

    def _from_client(self, peer: bytes, frames: list[bytes]) -> None:
        server = self._servers.get(peer) or self._connect(peer)
        if server is None:
            return
        server.recording.take(frames, from_opener=True)
        server.pending += 1
        server.dealer.send(frames)
        if server.pending >= PENDING:
            self._full.add(peer)
            self._router.pause()

    def _connect(self, peer: bytes) -> _Server | None:
        if len(self._servers) >= self._max:
            self._refuse(f"there are {self._max} connections already")
            return None
        server = _Server(self._begin(peer.hex()))
        try:
            server.dealer = Dealer(
                self._context,
                self.target,
                on_message=lambda frames: self._from_server(peer, server, frames),
                on_sent=lambda frames: self._note_sent(peer, server),
                on_lost=lambda reason: self._lose(peer, server, reason),
                security=self._back,
                # One that libzmq made for want of another begins with NUL, and is nobody's name.
                identity=b"" if peer.startswith(b"\0") else peer,
                paced=True,
                max_frames=MAX_FRAMES,
                max_frame_octets=MAX_FRAME_OCTETS,
            )
        except TransportError as error:
            self._refuse(str(error))
            return None
        self.connections += 1
        self._servers[peer] = server
        return server

    def _from_server(self, peer: bytes, server: _Server, frames: list[bytes]) -> None:
        if self._servers.get(peer) is not server:
            return
        server.recording.take(frames, from_opener=False)
        self._router.send(peer, frames)
        if not self._router.ready(peer):
            server.dealer.pause()

    def _resume(self, peer: bytes) -> None:
        """The client has taken what waited for it."""
        server = self._servers.get(peer)
        if server is not None:
            server.dealer.resume()

    def _note_sent(self, peer: bytes, server: _Server) -> None:
        server.pending -= 1
        if server.pending < PENDING and self._servers.get(peer) is server:
            self._make_room(peer)

    def _make_room(self, peer: bytes) -> None:
        self._full.discard(peer)
        if not self._full:
            self._router.link.resume()

    def _forget(self, peer: bytes, reason: str) -> None:
        """The client has gone."""
        server = self._servers.pop(peer, None)
        if server is not None:
            server.dealer.close()
            self._make_room(peer)

    def _lose(self, peer: bytes, server: _Server, reason: str) -> None:
        """The server has gone, or lets nobody in."""
        if self._servers.get(peer) is server:
            logger.warning("%s: %s", self.target, reason)
            self._forget(peer, reason)

    def _refuse(self, reason: str) -> None:
        self.refused += 1
        if reason != self._said:
            self._said = reason
            logger.warning("a client was not let in: %s", reason)

    def _cut_off(self, reason: str) -> None:
        self.refused += 1
        logger.warning("%s", reason)


def _ignore(reason: str) -> None:
    """Ignore a failed handshake: the `Guard` reports refused clients, and others have no key."""


class _Server:
    """A connection to the server, for one client; `pending` are messages that it has not taken."""

    dealer: Dealer

    def __init__(self, recording: Recording) -> None:
        self.recording, self.pending = recording, 0
