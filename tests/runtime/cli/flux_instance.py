"""A broker alone in its instance, in a thread beside a command that runs in the test's own."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from tests.runtime.flux.solo import solo

STOP_S = 60.0


@contextmanager
def lone_broker(**services: object) -> Iterator[str]:
    """Run a broker with these services; yields the URI."""
    ready: SimpleQueue[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]] = SimpleQueue()

    async def serve(path: Path) -> None:
        async with solo(str(path)) as broker:
            for name, service in services.items():
                broker.serve(name, service)
            stop = asyncio.Event()
            ready.put((broker.uri, asyncio.get_running_loop(), stop))
            await stop.wait()

    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(max_workers=1) as pool:
        serving = pool.submit(lambda: asyncio.run(serve(Path(folder) / "local-0")))
        uri, loop, stop = ready.get(timeout=STOP_S)
        try:
            yield uri
        finally:
            loop.call_soon_threadsafe(stop.set)
            serving.result(STOP_S)
