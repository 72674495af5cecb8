"""Background work: a fault reaches whoever runs the loop, once; closing ends what still runs, without one."""

from __future__ import annotations

import asyncio

from specwire.runtime.kernel.service import Tasks


def test_faults_are_told_and_the_rest_is_ended() -> None:
    told: list[tuple[object, object]] = []

    async def fail() -> None:
        raise ZeroDivisionError

    async def go_on(ended: asyncio.Event) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def story() -> None:
        loop, failed, ended = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()

        def tell(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
            told.append((context["message"], type(context["exception"])))
            failed.set()

        loop.set_exception_handler(tell)
        tasks = Tasks("the service")
        tasks.start(go_on(ended))
        tasks.start(fail())
        async with asyncio.timeout(60.0):
            await failed.wait()
            assert not ended.is_set()
            await tasks.close()
            assert ended.is_set()
            await tasks.close()

    asyncio.run(story())
    assert told == [("a part of the service has failed", ZeroDivisionError)]
