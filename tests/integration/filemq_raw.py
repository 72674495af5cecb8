"""Bare ends of a FILEMQ conversation, which say what a test tells them and nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from specwire.generated import filemq
from specwire.generated.filemq import Cheezburger, Hugz, HugzOk, Icanhaz, IcanhazOk, Ohai, OhaiOk, Operation
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.router import Router

TIMEOUT_S = 60.0


class RawPeer:
    """A bare DEALER that sends what it is told, and answers HUGZ if it is `lively`."""

    def __init__(self, context: TransportContext, endpoint: str, *, lively: bool = False) -> None:
        self._lively = lively
        self.got: asyncio.Queue[list[bytes]] = asyncio.Queue()
        self.dealer = Dealer(
            context,
            endpoint,
            on_message=self._take,
            on_sent=lambda frames: None,
            on_lost=lambda reason: None,
            high_water=8,
        )

    def _take(self, frames: list[bytes]) -> None:
        if self._lively and frames == Hugz().encode():
            self.send(HugzOk())
        else:
            self.got.put_nowait(frames)

    def send(self, *messages: filemq.AnyMessage | Sequence[bytes]) -> None:
        for message in messages:
            self.dealer.send(message.encode() if isinstance(message, filemq.AnyMessage) else message)

    async def hear(self) -> filemq.AnyMessage:
        return filemq.decode(await asyncio.wait_for(self.got.get(), TIMEOUT_S))


@asynccontextmanager
async def raw_peers(endpoint: str, *, lively: bool = False) -> AsyncIterator[Callable[[], RawPeer]]:
    context = TransportContext()
    peers: list[RawPeer] = []

    def make() -> RawPeer:
        peers.append(RawPeer(context, endpoint, lively=lively))
        return peers[-1]

    try:
        yield make
    finally:
        for peer in peers:
            peer.dealer.close()
        await asyncio.wait_for(context.close(), TIMEOUT_S)


class FakeServer:
    """A bare ROUTER with one client, which is told whatever a test likes, and gets its HUGZ answered if `lively`."""

    def __init__(self, *, lively: bool = False) -> None:
        self._lively = lively
        self.context = TransportContext()
        self.heard: asyncio.Queue[filemq.AnyMessage] = asyncio.Queue()
        self.router = Router(
            self.context,
            on_message=self._take,
            on_sent=lambda peer, frames: None,
            on_room=lambda peer: None,
            on_gone=lambda peer, reason: None,
            high_water=1000,
        )
        self.endpoint = self.router.bind("tcp://127.0.0.1:*")
        self.sequence = 0

    def _take(self, peer: bytes, frames: list[bytes]) -> None:
        self.peer = peer
        command = filemq.decode(frames)
        self.heard.put_nowait(command)
        match command:
            case Ohai():
                self.send(OhaiOk())
            case Icanhaz():
                self.send(IcanhazOk())
            case Hugz() if self._lively:
                self.send(HugzOk())

    def send(self, message: filemq.AnyMessage | Sequence[bytes]) -> None:
        frames = message.encode() if isinstance(message, filemq.AnyMessage) else message
        self.router.send(self.peer, frames)

    def send_file(
        self,
        name: str,
        chunk: bytes,
        *,
        offset: int = 0,
        operation: Operation = Operation.CREATE,
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        self.send(
            Cheezburger(
                sequence=self.sequence,
                operation=operation,
                filename=name,
                offset=offset,
                headers=headers,
                chunk=chunk,
            )
        )
        self.sequence += 1

    async def subscribed(self) -> None:
        while not isinstance(await asyncio.wait_for(self.heard.get(), TIMEOUT_S), Icanhaz):
            pass

    async def close(self) -> None:
        self.router.close()
        await asyncio.wait_for(self.context.close(), TIMEOUT_S)


@asynccontextmanager
async def fake_server(*, lively: bool = False) -> AsyncIterator[FakeServer]:
    server = FakeServer(lively=lively)
    try:
        yield server
    finally:
        await server.close()
