"""Events: a publisher and its subscribers, who keep so many under way that none is dropped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

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

    async def passed(messages: int) -> None:
        asker = Asker(EVENT, messages, load.window, progress)
        asker.out = publisher
        subscriber.set_protocol(asker)
        asker.begin()
        await asker.done

    async def many(messages: int) -> None:
        await watch.see_through("bare sockets, events", passed(messages), progress)

    figures = await price(many, load, pids)
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
        before, behind = [0] * len(listeners), [0] * len(listeners)
        further = asyncio.Event()

        async def listen(at: int, events: Events) -> None:
            async for event in events:
                if event.sequence <= before[at]:
                    raise SystemExit(f"subscriber {at}: event {event.sequence} follows {before[at]}")
                before[at] = event.sequence
                behind[at] -= 1
                progress.done += 1
                further.set()
                if not behind[at]:
                    return

        async def publish(messages: int) -> None:
            for left in range(messages, 0, -1):
                while max(behind) - left >= load.window:  # the slowest has so many before it
                    further.clear()
                    await further.wait()
                await publisher.announce(TOPIC, PAYLOAD)

        async def delivered(messages: int) -> None:
            behind[:] = [messages] * len(listeners)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(publish(messages))
                for at, events in enumerate(listeners):
                    tasks.create_task(listen(at, events))

        async def many(messages: int) -> None:
            await watch.see_through(f"events, {len(listeners)} subscribers", delivered(messages), progress)

        return await price(many, load, pids)
