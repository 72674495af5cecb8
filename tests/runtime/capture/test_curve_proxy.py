"""The proxy that has the keys: names are kept, nothing is dropped, and what has gone is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
import zmq

from specwire.generated import filemq
from specwire.runtime.capture.curve_proxy import PENDING, CurveProxy
from specwire.runtime.capture.proxy import ProxyWatch
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.guard import Guard
from specwire.runtime.transport.keys import KeyPair
from specwire.runtime.transport.router import Router
from specwire.runtime.transport.security import CurveClient, CurveServer

TIMEOUT_S = 60.0
HUGZ = bytes.fromhex("aaa309")
Got = asyncio.Queue[tuple[bytes, list[bytes]]]


def new_keys() -> KeyPair:
    """Return keys that nobody else has."""
    public, secret = (key.decode() for key in zmq.curve_keypair())
    return KeyPair(public, secret)


class Kept:
    """A recorder that counts by sender and peer."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str]] = []

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message."""
        self.rows.append((sender, peer))


class Scene:
    """A server, a proxy in front of it, and clients that it lets in."""

    def __init__(self, most: int) -> None:
        self.server_keys, self.proxy_keys, self.client_keys = new_keys(), new_keys(), new_keys()
        self.kept = Kept()
        self.context = TransportContext()
        self.got: Got = asyncio.Queue()
        self._most = most
        self._dealers: list[Dealer] = []

    async def open(self) -> None:
        """Start server and proxy."""
        self.guard = Guard(self.context, names={self.proxy_keys.public: "proxy"})
        self.guard.start()
        self.endpoint = self.serve("tcp://127.0.0.1:*")
        self.proxy = CurveProxy(
            "tcp://127.0.0.1:*",
            self.endpoint,
            CurveServer(self.server_keys),
            CurveClient(self.proxy_keys, self.server_keys.public),
            {self.client_keys.public: "alice"},
            ProxyWatch({"filemq": self.kept}, [filemq]).begin,
            max_connections=self._most,
        )
        await self.proxy.open()

    def serve(self, endpoint: str) -> str:
        """Listen."""
        self.router = Router(
            self.context,
            on_message=lambda peer, frames: self.got.put_nowait((peer, frames)),
            on_sent=lambda peer, frames: None,
            on_room=lambda peer: None,
            on_gone=lambda peer, reason: None,
            security=CurveServer(self.server_keys),
        )
        return self.router.bind(endpoint)

    def connect(self, name: bytes) -> tuple[Dealer, asyncio.Queue[list[bytes]]]:
        """A client of this name."""
        heard: asyncio.Queue[list[bytes]] = asyncio.Queue()
        dealer = Dealer(
            self.context,
            self.proxy.endpoint,
            on_message=heard.put_nowait,
            on_sent=lambda frames: None,
            on_lost=lambda reason: None,
            security=CurveClient(self.client_keys, self.server_keys.public),
            identity=name,
            max_waiting=100_000,
        )
        self._dealers.append(dealer)
        return dealer, heard

    async def close(self) -> None:
        """End everything."""
        for dealer in self._dealers:
            dealer.close()
        await self.proxy.close()
        self.router.close()
        self.guard.close()
        await self.context.close()


@asynccontextmanager
async def scene(most: int = 10) -> AsyncIterator[Scene]:
    async with asyncio.timeout(TIMEOUT_S):
        made = Scene(most)
        await made.open()
        try:
            yield made
        finally:
            await made.close()


def test_names_are_kept_and_both_ways_are_recorded() -> None:
    """One connection to the server for each client, under the client's routing id."""

    async def story() -> None:
        async with scene() as at:
            clients = {name: at.connect(name) for name in (b"a", b"b")}
            for name, (dealer, _) in clients.items():
                dealer.send([HUGZ, name])
            for _ in clients:
                peer, frames = await at.got.get()
                assert frames == [HUGZ, peer]
                at.router.send(peer, [b"to", peer])
            for name, (_, heard) in clients.items():
                assert await heard.get() == [b"to", name]
            assert sorted(at.kept.rows) == [("C", "61"), ("C", "62"), ("S", "61"), ("S", "62")]
            assert (at.proxy.connections, at.proxy.open_connections) == (2, 2)

    asyncio.run(story())


def test_nothing_is_dropped_before_a_server_that_does_not_read() -> None:
    """The proxy stops reading instead, and goes on when the server does."""

    async def story() -> None:
        async with scene() as at:
            at.router.pause()
            dealer, _ = at.connect(b"a")
            total = 40 * PENDING
            for number in range(total):
                dealer.send([number.to_bytes(4, "big"), bytes(4000)])
            seen = -1
            while seen != len(at.kept.rows) or not seen:  # until nothing goes any more
                seen = len(at.kept.rows)
                await asyncio.sleep(0.2)
            assert seen < total
            at.router.link.resume()
            for number in range(total):
                _, frames = await at.got.get()
                assert frames[0] == number.to_bytes(4, "big")

    asyncio.run(story())


def test_a_client_that_has_gone_is_noticed_when_the_server_sends() -> None:
    """Its connection to the server ends then."""

    async def story() -> None:
        async with scene() as at:
            dealer, _ = at.connect(b"a")
            dealer.send([HUGZ])
            peer, _ = await at.got.get()
            dealer.close()
            while at.proxy.open_connections:
                at.router.send(peer, [HUGZ])
                await asyncio.sleep(0.05)

    asyncio.run(story())


def test_a_server_that_comes_back_gets_a_new_connection() -> None:
    """With the client's next message; the loss is told."""

    async def story() -> None:
        async with scene() as at:
            dealer, _ = at.connect(b"a")
            dealer.send([HUGZ])
            await at.got.get()
            at.router.close()
            while at.proxy.open_connections:
                await asyncio.sleep(0.01)
            at.serve(at.endpoint)
            dealer.send([b"again"])
            assert await at.got.get() == (b"a", [b"again"])
            assert at.proxy.connections == 2

    asyncio.run(story())


def test_there_are_no_more_connections_than_there_may_be(caplog: pytest.LogCaptureFixture) -> None:
    """What others say goes no further, and is counted and told once."""

    async def story() -> None:
        async with scene(most=1) as at:
            first, _ = at.connect(b"a")
            first.send([HUGZ])
            await at.got.get()
            second, _ = at.connect(b"b")
            for _ in range(3):
                second.send([HUGZ])
            while at.proxy.refused < 3:
                await asyncio.sleep(0.01)
            assert at.got.empty()

    asyncio.run(story())
    assert [entry.message for entry in caplog.records] == [
        "a client was not let in: there are 1 connections already"
    ]
