"""Flux brokers on one event loop, with real sockets between them, and what is seen of each."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import zmq

from specwire.generated import flux
from specwire.generated.errors import DecodeError, Violation
from specwire.generated.flux import AnyMessage
from specwire.generated.flux.machine import TIMERS, Session
from specwire.runtime.flux.config import Settings
from specwire.runtime.flux.events import Event
from specwire.runtime.flux.handle import FluxHandle, connect
from specwire.runtime.flux.serve import FluxBroker
from specwire.runtime.flux.topology import Tree
from specwire.runtime.transport.keys import KeyPair
from tests.integration.tcp_proxy import TcpProxy

TIMEOUT_S = 120.0

Kind = TypeVar("Kind", bound=Event)


def play(story: Coroutine[Any, Any, None]) -> None:
    """Run a story; one that hangs is a failure."""

    async def bounded() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await story

    asyncio.run(bounded())


def new_keys() -> KeyPair:
    """Return keys that nobody else has."""
    public, secret = (key.decode() for key in zmq.curve_keypair())
    return KeyPair(public, secret)


class FluxWatch:
    """A `Recorder` that holds every message against the dialog of the protocol.

    Attributes:
        messages: how many were seen.
        malformed: how many were no messages.
        violations: what was not in order.
    """

    def __init__(self) -> None:
        self.messages = self.malformed = 0
        self.violations: list[tuple[Violation, AnyMessage]] = []
        self._sessions: dict[str, Session] = {}

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """See `Recorder.record`."""
        try:
            message = flux.decode(frames)
        except DecodeError:
            self.malformed += 1
            return
        self.messages += 1
        session = self._sessions.setdefault(conversation, Session("S"))
        if (violation := session.observe(sender, message)) is not None:
            self.violations.append((violation, message))


class News:
    """The events of one broker, which can be waited for."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._came = asyncio.Event()

    def take(self, event: Event) -> None:
        """Note an event."""
        self.events.append(event)
        self._came.set()

    async def until(self, kind: type[Kind], wanted: Callable[[Kind], bool] = lambda event: True) -> Kind:
        """Return the first event of that kind that is wanted, and forget what came up to it."""
        while True:
            for at, event in enumerate(self.events):
                if isinstance(event, kind) and wanted(event):
                    del self.events[: at + 1]
                    return event
            self._came.clear()
            await self._came.wait()

    async def until_so(self, condition: Callable[[], bool]) -> None:
        """Return when something holds that a broker tells an event of; forget nothing."""
        while not condition():
            self._came.clear()
            await self._came.wait()


class Brokers:
    """The brokers of one instance.

    Attributes:
        keys: of the instance.
        watch: sees the traffic of all.
        proxy: stands between rank 0 and its children, where there is one.
        news: of each rank.
    """

    def __init__(
        self,
        folder: Path,
        tree: Tree,
        *,
        services: Mapping[int, Mapping[str, object]] | None = None,
        timers: Mapping[str, float] | None = None,
    ) -> None:
        self.folder, self.tree = folder, tree
        self.keys: KeyPair | None = new_keys()
        self.watch = FluxWatch()
        self.news = [News() for _ in range(tree.size)]
        self.brokers: dict[int, FluxBroker] = {}
        self.proxy: TcpProxy | None = None
        self._endpoints: dict[int, str] = {}
        self._services = services or {}
        self._settings = Settings(tree, owner=os.getuid(), timers={**TIMERS, **(timers or {})})

    def endpoint(self, rank: int) -> str:
        """Where the children of a rank connect to."""
        return self._endpoints.get(rank, f"ipc://{self.folder}/tree-{rank}")

    async def put_proxy(self) -> None:
        """Let rank 0, which is not started yet, and its children talk TCP through a proxy."""
        self._endpoints[0] = "tcp://127.0.0.1:*"
        broker = await self.start(0)
        self.proxy = TcpProxy(broker.endpoint)
        await self.proxy.__aenter__()
        self._endpoints[0] = self.proxy.endpoint

    def uri(self, rank: int) -> str:
        """Where clients of a rank connect to."""
        return f"local://{self.folder}/local-{rank}"

    async def start(self, rank: int, *, parent: str | None = None) -> FluxBroker:
        """Start one broker."""
        above, self.news[rank] = self.tree.parent(rank), News()
        broker = self.brokers[rank] = FluxBroker(
            msgspec.structs.replace(self._settings, hosts=("here",)),
            rank,
            local=os.fspath(self.folder / f"local-{rank}"),
            bind=self.endpoint(rank) if self.tree.children(rank) else None,
            parent=parent or (None if above is None else self.endpoint(above)),
            keys=self.keys,
            services=self._services.get(rank),
            tap=self.watch,
            on_event=self.news[rank].take,
        )
        await broker.start()
        return broker

    async def stop(self, rank: int) -> None:
        """Stop one broker."""
        await self.brokers.pop(rank).stop()

    async def until_online(self, rank: int) -> None:
        """Return when a broker knows that it is in the tree."""
        broker = self.brokers[rank]
        await self.news[rank].until_so(lambda: broker.engine.is_online)

    async def until_status(self, handle: FluxHandle, status: str) -> None:
        """Return when the subtree of the handle's broker has this status."""
        async for reply in handle.stream("overlay.health"):
            if reply.json()["status"] == status:
                return


@asynccontextmanager
async def instance(
    size: int,
    fanout: int = 2,
    *,
    services: Mapping[int, Mapping[str, object]] | None = None,
    timers: Mapping[str, float] | None = None,
    cut: bool = False,
    strangers: bool = False,
) -> AsyncIterator[Brokers]:
    """Run an instance whose tree is full; in the end nothing of the traffic was out of order.

    Args:
        cut: a proxy stands below rank 0.
        strangers: what those say who connect is not held against anybody.
    """
    with tempfile.TemporaryDirectory(prefix="sw-") as folder:  # pytest's own have names too long for a socket
        brokers = Brokers(Path(folder), Tree(size, fanout), services=services, timers=timers)
        try:
            if cut:
                await brokers.put_proxy()
            for rank in range(len(brokers.brokers), size):
                await brokers.start(rank)
            async with connect(brokers.uri(0)) as handle:
                await brokers.until_status(handle, "full")
            for rank in range(size):  # the last welcome may be on its way still
                await brokers.until_online(rank)
            yield brokers
        finally:
            for rank in sorted(brokers.brokers, reverse=True):
                await brokers.stop(rank)
            if brokers.proxy is not None:
                await brokers.proxy.__aexit__(None, None, None)
    assert brokers.watch.messages
    assert [found for found in brokers.watch.violations if not (strangers and found[0].role == "C")] == []


@asynccontextmanager
async def handles(brokers: Brokers, *ranks: int) -> AsyncIterator[list[FluxHandle]]:
    """Connect to several ranks."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(connect(brokers.uri(rank))) for rank in ranks]
