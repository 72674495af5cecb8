"""Events: a publisher and its subscribers, who keep so many under way that none is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from specwire.runtime.flux.handle import Events, connect
from tests.benchmarks.flux.asking import Asker, Figures, Load, price
from tests.benchmarks.flux.framing import EVENT, PAYLOAD, TOPIC

DEADLINE_S = 60.0
PREFIX = TOPIC.partition(".")[0]


async def publish_bare(path: str, load: Load, pids: Sequence[int]) -> Figures:
    """Send from one connection to another by bare sockets."""
    loop = asyncio.get_running_loop()
    publisher, _ = await loop.create_unix_connection(asyncio.Protocol, path)
    subscriber, asker = await loop.create_unix_connection(
        lambda: Asker(EVENT, load.pipelined, load.window), path
    )
    asker.out = publisher

    async def many() -> None:
        asker.begin()
        await asker.done

    figures = await price(many(), load.pipelined, pids)
    publisher.close()
    subscriber.close()
    return figures


async def publish_ours(paths: Sequence[str], each: int, load: Load, pids: Sequence[int]) -> Figures:
    """Publish at the first broker, and deliver to `each` subscribers of each.

    Figures are for one event, whoever gets it. Each subscriber gets them all, in order, or this raises.
    """
    async with AsyncExitStack() as stack:
        handles = [await stack.enter_async_context(connect(f"local://{path}")) for path in (*paths,) * each]
        listeners = [await handle.subscribe(PREFIX) for handle in handles]
        publisher = await stack.enter_async_context(connect(f"local://{paths[0]}"))
        behind = [load.pipelined] * len(listeners)
        further = asyncio.Event()

        async def listen(at: int, events: Events) -> None:
            before = 0
            async for event in events:
                if event.sequence <= before:
                    raise SystemExit(f"subscriber {at}: event {event.sequence} follows {before}")
                before = event.sequence
                behind[at] -= 1
                further.set()
                if not behind[at]:
                    return

        async def publish() -> None:
            for left in range(load.pipelined, 0, -1):
                while max(behind) - left >= load.window:  # the slowest has so many before it
                    further.clear()
                    await further.wait()
                await publisher.announce(TOPIC, PAYLOAD)

        async def many() -> None:
            async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as tasks:
                tasks.create_task(publish())
                for at, events in enumerate(listeners):
                    tasks.create_task(listen(at, events))

        return await price(many(), load.pipelined, pids)
