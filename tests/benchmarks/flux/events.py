"""Events: a publisher and its subscribers, who keep so many under way that none is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import cast

from specwire.runtime.flux.handle import Events, connect
from tests.benchmarks.flux.asking import Asker, Figures, Load, price
from tests.benchmarks.flux.framing import EVENT, PAYLOAD, REQUESTS, TOPIC, join
from tests.benchmarks.flux.watching import STALL_S, Progress, Watch

PREFIX = TOPIC.partition(".")[0]


async def publish_bare(path: str, load: Load, pids: Sequence[int], watch: Watch) -> Figures:
    """Send from one connection to another by bare sockets."""
    loop, progress = asyncio.get_running_loop(), Progress()
    publisher, _ = await loop.create_unix_connection(asyncio.Protocol, path)
    subscriber, known = await loop.create_unix_connection(
        lambda: Asker(join(REQUESTS[0]), 1, 1, progress), path
    )

    async def until_known() -> None:
        """A connection is passed nothing before the other side has accepted it; an answer shows that it has."""
        known.begin()
        await known.done

    await watch.see_through("bare sockets, a subscriber", until_known(), progress)
    asker = Asker(EVENT, load.pipelined, load.window, progress)
    asker.out = cast("asyncio.Transport", publisher)
    subscriber.set_protocol(asker)

    async def many() -> None:
        asker.begin()
        await asker.done

    figures = await price(watch.see_through("bare sockets, events", many(), progress), load.pipelined, pids)
    publisher.close()
    subscriber.close()
    return figures


async def publish_ours(
    paths: Sequence[str], each: int, load: Load, pids: Sequence[int], watch: Watch
) -> Figures:
    """Publish at the first broker, and deliver to `each` subscribers of each.

    Figures are for one event, whoever gets it. Each subscriber gets them all, in order, or this raises.
    """
    progress = Progress()
    async with AsyncExitStack() as stack:
        handles = [
            await stack.enter_async_context(connect(f"local://{path}", timeout_s=STALL_S))
            for path in (*paths,) * each
        ]
        async with asyncio.timeout(STALL_S):
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
                progress.done += 1
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
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(publish())
                for at, events in enumerate(listeners):
                    tasks.create_task(listen(at, events))

        seen = watch.see_through(f"events, {len(listeners)} subscribers", many(), progress)
        return await price(seen, load.pipelined, pids)
