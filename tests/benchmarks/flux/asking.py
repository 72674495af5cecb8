"""Clients that ask: one request at a time, and many under way; a bare one and ours, by the same measure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from time import perf_counter, process_time
from typing import NamedTuple, cast

from specwire.runtime.flux.handle import connect
from tests.benchmarks.flux.cost import cpu_s
from tests.benchmarks.flux.framing import PAYLOAD, REQUESTS, cut, join
from tests.benchmarks.flux.watching import STALL_S, Progress, Watch


class Load(NamedTuple):
    """How much is asked."""

    alone: int
    """Requests, each after the answer to the one before."""
    pipelined: int
    """Requests, of which `window` are under way."""
    window: int
    turns: int = 8
    """In how many parts; they are short, so that on a machine with other work some have it for themselves."""


class Figures(NamedTuple):
    """What came of it, p50 and rate of the best turn; seconds of processor time are of the pipelined part, a message."""

    p50_s: float
    rate: float
    client_cpu_s: float
    broker_cpu_s: tuple[float, ...]


class Caller(asyncio.Protocol):
    """The bare client that awaits each answer, as whoever calls `rpc` does."""

    def __init__(self, octets: bytes) -> None:
        self._octets, self._buffer = octets, bytearray()
        self._loop = asyncio.get_running_loop()
        self._answer: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.out = cast("asyncio.Transport", transport)

    async def call(self) -> None:
        """Send one, and return when it is answered."""
        self._answer = self._loop.create_future()
        self.out.write(self._octets)
        await self._answer

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if cut(self._buffer):
            self._answer.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(error or ConnectionResetError("the other side has closed"))


class Asker(asyncio.Protocol):
    """The bare client that keeps `window` messages under way until `total` have been answered.

    Attributes:
        done: is done then; fails where the connection is lost before.
    """

    def __init__(self, octets: bytes, total: int, window: int, progress: Progress) -> None:
        self._octets, self._left, self._to_send, self._window = octets, total, total, window
        self._progress = progress
        self._buffer = bytearray()
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.out = cast("asyncio.Transport", transport)

    def begin(self) -> None:
        """Send the first."""
        self._send(self._window)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        answers = len(cut(self._buffer))
        self._left -= answers
        self._progress.done += answers
        if self._left:
            self._send(answers)
        else:
            self.done.set_result(None)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionResetError("the other side has closed"))

    def _send(self, messages: int) -> None:
        messages = min(messages, self._to_send)
        self._to_send -= messages
        for _ in range(messages):
            self.out.write(self._octets)


async def price(work: Callable[[int], Awaitable[None]], load: Load, pids: Sequence[int]) -> Figures:
    """Return the rate of the best turn of `work`, and what all of them cost this process and those of `pids`."""
    messages = max(load.pipelined // load.turns // load.window, 1) * load.window
    before, own_before = [cpu_s(pid) for pid in pids], process_time()
    seconds = []
    for _ in range(load.turns):
        began = perf_counter()
        await work(messages)
        seconds.append(perf_counter() - began)
    done = messages * load.turns
    brokers = [(cpu_s(pid) - was) / done for pid, was in zip(pids, before, strict=True)]
    return Figures(0.0, messages / min(seconds), (process_time() - own_before) / done, tuple(brokers))


def best_median(took_s: Sequence[float], turns: int) -> float:
    """Return the lowest median of so many parts."""
    each = len(took_s) // turns
    return min(median(took_s[at * each : (at + 1) * each]) for at in range(turns))


async def ask_bare(path: str, rank: int, load: Load, pids: Sequence[int], watch: Watch) -> Figures:
    """Ask bare sockets."""
    octets, progress = join(REQUESTS[rank]), Progress()
    took_s: list[float] = []

    loop = asyncio.get_running_loop()

    async def alone() -> None:
        transport, caller = await loop.create_unix_connection(lambda: Caller(octets), path)
        for _ in range(load.alone):
            began = perf_counter()
            await caller.call()
            took_s.append(perf_counter() - began)
            progress.done += 1
        transport.close()

    await watch.see_through(f"bare sockets, rank {rank}, one at a time", alone(), progress)

    async def ask(messages: int) -> None:
        transport, asker = await loop.create_unix_connection(
            lambda: Asker(octets, messages, load.window, progress), path
        )
        asker.begin()
        await asker.done
        transport.close()

    async def many(messages: int) -> None:
        await watch.see_through(f"bare sockets, rank {rank}", ask(messages), progress)

    figures = await price(many, load, pids)
    return figures._replace(p50_s=best_median(took_s, load.turns))


async def ask_ours(path: str, rank: int, load: Load, pids: Sequence[int], watch: Watch) -> Figures:
    """Ask a broker."""
    progress = Progress()
    async with connect(f"local://{path}", timeout_s=STALL_S) as handle:

        async def ask(times: int) -> None:
            for _ in range(times):
                await handle.rpc("broker.ping", PAYLOAD, nodeid=rank)
                progress.done += 1

        async def gathered(messages: int) -> None:
            await asyncio.gather(*(ask(messages // load.window) for _ in range(load.window)))

        async def many(messages: int) -> None:
            await watch.see_through(f"brokers, rank {rank}", gathered(messages), progress)

        took_s: list[float] = []

        async def alone() -> None:
            for _ in range(load.alone):
                began = perf_counter()
                await handle.rpc("broker.ping", PAYLOAD, nodeid=rank)
                took_s.append(perf_counter() - began)
                progress.done += 1

        await watch.see_through(f"brokers, rank {rank}, one at a time", alone(), progress)
        figures = await price(many, load, pids)
        return figures._replace(p50_s=best_median(took_s, load.turns))
