"""A server that behaves as the one of libfilemq, faults and all, on a plain ROUTER socket.

It sends changes only, of everything it publishes, whatever a client subscribed to or says that it holds. It stops
for good when the next chunk is larger than the credit left; its sum of credit wraps. Any malformed message of
anybody ends it, and so does a command that it cannot decode. A client that it does not know gets RTFM without a
reason; it forgets clients without a word (`forget_clients` stands for the minute that it waits).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import zmq
import zmq.asyncio

from tests.runtime.filemq import c_wire
from tests.runtime.filemq.c_wire import CREATE, DELETE, MalformedError, Patch, Reader

CHUNK = 1_000_000
KNOWN = {c_wire.OHAI, c_wire.ICANHAZ, c_wire.NOM, c_wire.HUGZ, c_wire.KTHXBAI}


@dataclass
class Client:
    """What the server knows of one."""

    paths: list[str] = field(default_factory=list)
    options: list[dict[str, str]] = field(default_factory=list)
    caches: list[dict[str, str]] = field(default_factory=list)
    credit: int = 0
    sequence: int = 0
    patches: deque[tuple[int, str, bytes]] = field(default_factory=deque)


class CServer:
    """One server; `run` ends when it is stopped or has ended itself."""

    def __init__(self, endpoint: str = "tcp://127.0.0.1:*", *, chunk_octets: int = CHUNK) -> None:
        self.heard: list[int] = []
        self.ended: str | None = None
        self.livelocked = False
        self.clients: dict[bytes, Client] = {}
        self.without_end: set[str] = set()
        self._chunk_octets = chunk_octets
        self._changed = asyncio.Condition()
        self._turn = asyncio.Lock()  # it does one thing after the other
        self._context = zmq.asyncio.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.set_hwm(0)
        self._router.bind(endpoint)
        bound = self._router.getsockopt(zmq.LAST_ENDPOINT)
        assert isinstance(bound, bytes)
        self.endpoint = bound.rstrip(b"\0").decode()

    async def run(self) -> None:
        """Serve until a malformed message, or for ever."""
        while self.ended is None and not self.livelocked:
            peer, *frames = await self._router.recv_multipart()
            try:
                async with self._turn:
                    await self._take(peer, frames)
            except (MalformedError, UnicodeDecodeError) as error:
                self.ended = f"malformed: {error}"
            async with self._changed:
                self._changed.notify_all()

    async def until(self, condition: Callable[[CServer], bool]) -> None:
        """Return when `condition` holds; AssertionError where the server has ended before."""
        async with self._changed:
            await self._changed.wait_for(lambda: condition(self) or self.ended is not None)
        assert condition(self), self.ended

    def is_subscribed(self, *paths: str) -> bool:
        """Whether the one client there is has subscribed to these paths, and granted credit."""
        return any(client.paths == list(paths) and client.credit for client in self.clients.values())

    async def create(self, name: str, content: bytes) -> None:
        """A file is new or has new content."""
        await self._dispatch((CREATE, name, content))

    async def delete(self, name: str) -> None:
        """The server takes it that a file is gone."""
        await self._dispatch((DELETE, name, b""))

    def forget_clients(self) -> None:
        """Every client has been silent for a minute."""
        self.clients.clear()

    async def send(self, frame: bytes) -> None:
        """Send something to every client."""
        for peer in self.clients:
            await self._router.send_multipart([peer, frame])

    def close(self) -> None:
        self._router.close(linger=0)
        self._context.term()

    async def _take(self, peer: bytes, frames: list[bytes]) -> None:
        reader = Reader(frames)
        self.heard.append(reader.number)
        if reader.number not in KNOWN:
            raise MalformedError(f"message {reader.number}")
        client = self.clients.get(peer)
        if reader.number == c_wire.OHAI:
            if (reader.text(1), reader.integer(2)) != ("FILEMQ", 2):
                raise MalformedError("protocol or version")
            self.clients.setdefault(peer, Client())
            await self._answer(peer, c_wire.OHAI_OK)
        elif client is None:
            await self._router.send_multipart([peer, c_wire.rtfm()])
            return
        elif reader.number == c_wire.ICANHAZ:
            client.paths.append(reader.text(4))
            client.options.append(reader.pairs())
            client.caches.append(reader.pairs())
            await self._answer(peer, c_wire.ICANHAZ_OK)
        elif reader.number == c_wire.NOM:
            client.credit = (client.credit + reader.integer(8)) % 2**64
            reader.integer(8)
            await self._send_patches(peer, client)
        elif reader.number == c_wire.HUGZ:
            await self._answer(peer, c_wire.HUGZ_OK)
        else:
            del self.clients[peer]
        reader.end()

    async def _answer(self, peer: bytes, number: int) -> None:
        await self._router.send_multipart([peer, c_wire.plain(number)])

    async def _dispatch(self, patch: tuple[int, str, bytes]) -> None:
        async with self._turn:
            for peer, client in list(self.clients.items()):
                if client.paths:
                    client.patches.append(patch)
                    await self._send_patches(peer, client)

    async def _send_patches(self, peer: bytes, client: Client) -> None:
        while client.patches and client.credit and not self.livelocked:
            operation, name, content = client.patches.popleft()
            if operation == DELETE:
                await self._send_patch(peer, client, Patch(client.sequence, DELETE, name, 0, 0, b""))
            else:
                await self._send_file(peer, client, name, content)

    async def _send_file(self, peer: bytes, client: Client, name: str, content: bytes) -> None:
        for offset in range(0, len(content), self._chunk_octets):
            chunk = content[offset : offset + self._chunk_octets]
            if len(chunk) > client.credit:
                self.livelocked = True
                return
            client.credit -= len(chunk)
            await self._send_patch(peer, client, Patch(client.sequence, CREATE, name, offset, 0, chunk))
        if name not in self.without_end:
            end = Patch(client.sequence, CREATE, name, len(content), 1, b"")
            await self._send_patch(peer, client, end)

    async def _send_patch(self, peer: bytes, client: Client, patch: Patch) -> None:
        client.sequence += 1
        await self._router.send_multipart([peer, c_wire.cheezburger(patch)])
