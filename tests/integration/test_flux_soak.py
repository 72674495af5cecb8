"""Everything at once on a tree of processes, with brokers killed meanwhile: each request gets one final answer.

Clients of the brokers that are not killed ask all ranks: RPCs that are answered at once, streams, requests for what is
not there; they publish events and listen to them. One broker after the other is killed and started again. Every request
ends once, with what was asked for or with an error that a loss explains; events come in order, each once; and when it
is over nothing is pending anywhere, and no broker that lived through it has grown.

The default run is short. `SPECWIRE_SOAK_SECONDS` makes it long, and `SPECWIRE_SEED` repeats the choices of a run
whose seed was printed.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from contextlib import AsyncExitStack
from time import monotonic

import pytest

from specwire.generated.flux import ENOSYS, AnyMessage, Request, Response
from specwire.runtime.flux.answering import is_last
from specwire.runtime.flux.errors import EHOSTUNREACH, FluxError
from specwire.runtime.flux.flags import STREAMING
from specwire.runtime.flux.handle import Events, FluxHandle, connect
from specwire.runtime.flux.local_connection import open_local
from specwire.runtime.flux.uri import local_path
from tests.benchmarks.flux.cost import memory_kib
from tests.integration.flux_processes import DESK, Processes, full_tree, until_full

SECONDS = float(os.environ.get("SPECWIRE_SOAK_SECONDS", "4"))
SEED = int(os.environ.get("SPECWIRE_SEED", random.randrange(2**32)))
SIZE, FANOUT = 7, 2
STAYING = (0, 1, 2)
"""Ranks whose brokers live through it; those with clients, too."""

KILLED = (3, 4, 5, 6)
ASKERS = 8
"""Tasks that ask, for each of the clients."""

WARM_SHARE = 0.3
"""Of the time: what a broker has then it may have at the end."""

ENDS_WITHIN_S = 60.0
GROWTH_KIB = 8 * 1024
"""What a resident set may differ for reasons that are the allocator's."""

LOST = {EHOSTUNREACH}
TICK, END = "soak.tick", "soak.end"
WINDOW = 32
MAX_OCTETS = 1 << 20

pytestmark = pytest.mark.peers


class Load:
    """What is asked by `FluxHandle`, and what came of it.

    Attributes:
        begun: requests that were sent, by kind.
        ended: how they ended, by kind.
        published: the numbers of the events whose publishing was answered.
        over: whether no more is to be asked.
    """

    def __init__(self, rng: random.Random) -> None:
        self.begun: Counter[str] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        self.published: list[int] = []
        self.over = False
        self.rng = rng

    async def ask(self, handle: FluxHandle) -> None:
        """Ask one thing after the other until it is over."""
        kinds = {
            "double": self._double,
            "count": self._count,
            "missing": self._missing,
            "publish": self._publish,
        }
        while not self.over:
            (kind,) = self.rng.choices(list(kinds), (6, 2, 1, 3))
            self.begun[kind] += 1
            try:
                await kinds[kind](handle, self.rng.randrange(SIZE))
            except FluxError as error:
                assert error.errnum == EHOSTUNREACH, error
                self.ended[kind, "lost"] += 1
            else:
                self.ended[kind, "done"] += 1

    async def _double(self, handle: FluxHandle, rank: int) -> None:
        n, pad = self.rng.randrange(10**6), "x" * self.rng.choice((0, 0, 0, 100, 5000))
        assert (await handle.rpc("desk.double", {"n": n, "pad": pad}, nodeid=rank)).json() == {"n": 2 * n}

    async def _count(self, handle: FluxHandle, rank: int) -> None:
        n = self.rng.randrange(20)
        came: list[int] = []
        try:
            async for reply in handle.stream("desk.count", {"n": n}, nodeid=rank):
                came.append(reply.json()["n"])
        finally:
            assert came == list(range(len(came)))
        assert len(came) == n

    async def _missing(self, handle: FluxHandle, rank: int) -> None:
        with pytest.raises(FluxError) as caught:
            await handle.rpc("nowhere.at.all", {}, nodeid=rank)
        if caught.value.errnum != ENOSYS:
            raise caught.value

    async def _publish(self, handle: FluxHandle, rank: int) -> None:
        self.published.append(await handle.publish(TICK, {"rank": rank}))


class Counting:
    """A client that never uses a matchtag twice, so that a second answer to a request shows.

    Attributes:
        finals: how many final responses came, by matchtag.
    """

    def __init__(self) -> None:
        self.finals = bytearray(1)
        self._room = asyncio.Semaphore(WINDOW)

    async def ask(self, path: str, load: Load) -> None:
        """Ask until it is over, and wait for what is still to be answered."""
        connection = await open_local(path, self._take, self._lost, MAX_OCTETS)
        while not load.over:
            await self._room.acquire()
            topic, flags = load.rng.choice((("desk.double", 0), ("desk.count", STREAMING), ("nowhere.at", 0)))
            matchtag, nodeid = len(self.finals), load.rng.randrange(SIZE)
            self.finals.append(0)
            connection.send(Request((), topic, b'{"n":3}\0', flags, nodeid=nodeid, matchtag=matchtag))
        for _ in range(WINDOW):
            await self._room.acquire()
        await connection.close()

    def _take(self, message: AnyMessage) -> None:
        assert isinstance(message, Response)
        if is_last(STREAMING, message):
            self.finals[message.matchtag] += 1
            self._room.release()

    def _lost(self, error: FluxError) -> None:
        """The end, which `close` brings about."""


async def listen(events: Events, heard: list[int]) -> None:
    """Note the number of each event until the last one."""
    async for event in events:
        heard.append(event.sequence)
        if event.topic == END:
            return


async def until_settled(handle: FluxHandle) -> None:
    """Return when nothing is pending at the handle's broker."""
    while (await handle.rpc("broker.stats-get")).json()["pending"]:
        await asyncio.sleep(0.01)


async def disturb(instance: Processes, top: FluxHandle, rng: random.Random, until: float) -> int:
    """Kill one broker after the other, and start each again; return how many."""
    kills = 0
    while monotonic() < until or not kills:
        rank = rng.choice(KILLED)
        await instance.kill(rank)
        kills += 1
        await instance.start(rank)
        await until_full(top)
    return kills


def residents(instance: Processes) -> dict[int, int]:
    """Return the resident set of each broker that stays, in KiB."""
    return {rank: memory_kib(instance.brokers[rank].pid)[1] for rank in STAYING}


def test_mixed_load_with_kills() -> None:
    """Each request ends once, events come in order and each once, and memory is flat."""
    print(f"SPECWIRE_SEED={SEED}")
    load = Load(random.Random(SEED))
    counting = [Counting() for _ in STAYING]
    heard: list[list[int]] = [[] for _ in STAYING]

    async def story() -> None:
        async with (
            asyncio.timeout(2 * SECONDS + ENDS_WITHIN_S),
            full_tree(SIZE, FANOUT, DESK) as (instance, top),
            AsyncExitStack() as stack,
        ):
            handles = [await stack.enter_async_context(connect(instance.uri(rank))) for rank in STAYING]
            listeners = [await handle.subscribe("soak.") for handle in handles]
            asking = [load.ask(handle) for handle in handles for _ in range(ASKERS)]
            asking += [
                client.ask(local_path(instance.uri(rank)), load)
                for client, rank in zip(counting, STAYING, strict=True)
            ]
            async with asyncio.TaskGroup() as tasks:
                for events, numbers in zip(listeners, heard, strict=True):
                    tasks.create_task(listen(events, numbers))
                under_way = [tasks.create_task(asks) for asks in asking]
                begin = monotonic()
                kills = await disturb(instance, top, load.rng, begin + WARM_SHARE * SECONDS)
                warm = residents(instance)
                kills += await disturb(instance, top, load.rng, begin + SECONDS)
                load.over = True
                await asyncio.wait(under_way)
                after = residents(instance)
                await top.publish(END)
            assert [handle.pending for handle in handles] == [0] * len(handles)
            for handle in handles:
                await until_settled(handle)
            asked = sum(load.begun.values()) + sum(len(client.finals) - 1 for client in counting)
            print(f"{asked:,} requests, {len(heard[0]):,} events, {kills} kills: {dict(load.ended)}")
            print(f"resident KiB by rank: {warm}, then {after}")
            assert all(after[rank] <= warm[rank] + GROWTH_KIB for rank in STAYING), (warm, after)

    asyncio.run(story())
    assert sum(load.ended.values()) == sum(load.begun.values())
    assert load.ended["double", "done"]
    assert load.ended["count", "done"]
    for client in counting:
        assert client.finals == bytearray((0, *[1] * (len(client.finals) - 1)))
    assert heard[0] == sorted(set(heard[0]))
    assert heard == [heard[0]] * len(STAYING)
    assert set(load.published) <= set(heard[0])
