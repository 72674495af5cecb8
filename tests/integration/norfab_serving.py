"""A NORFAB broker with workers in a thread of its own, for tests that block: plain clients, and commands."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any, Self

from specwire.runtime.norfab import commands
from tests.integration.norfab_scene import Crowd, RawPeer, crowd_at, result, serving_broker


class Serving(threading.Thread):
    """A broker and workers of the service ``svc`` in this process; ``with`` begins and ends them.

    A worker answers 5 to whatever it is to do; it fails a task ``fail``, and never ends a task ``wait``.

    Args:
        folder: the broker's.
        names: of the workers.
        given: as to `serving_broker`.
    """

    def __init__(self, folder: Path, names: tuple[str, ...] = ("w1",), **given: Any) -> None:
        super().__init__(daemon=True)
        self._folder, self._names, self._given = folder, names, given
        self._begun = threading.Event()
        self._fault: BaseException | None = None
        self.endpoint = ""

    def run(self) -> None:
        """Serve until the end."""
        try:
            asyncio.run(self._serve())
        except BaseException as error:
            self._fault = error
            raise
        finally:
            self._begun.set()

    async def _serve(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        serving = serving_broker(self._folder, **self._given)
        async with serving as (broker, _), crowd_at(broker.endpoints[0]) as crowd:
            busy = [asyncio.create_task(work_for_ever(crowd, name)) for name in self._names]
            await asyncio.sleep(0)
            self.endpoint = broker.endpoints[0]
            self._begun.set()
            await self._over.wait()
            for task in busy:
                task.cancel()

    def __enter__(self) -> Self:
        self.start()
        assert self._begun.wait(30)
        assert self._fault is None, self._fault
        return self

    def __exit__(self, *exception: object) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self.join(30)
        assert self._fault is None, self._fault


async def work_for_ever(crowd: Crowd, name: str) -> None:
    """Be a worker."""
    worker = crowd.worker(name)
    worker.say(commands.Ready("svc"))
    beating = asyncio.create_task(_beat(worker))
    try:
        while True:
            job = await worker.take_job()
            task = json.loads(job.body)["task"]
            if task == "fail":
                entry = {"result": None, "failed": True, "errors": ["no route to 10.0.0.1"]}
                body = json.dumps({name: entry}).encode()
                worker.say(commands.Response(job.uuid, 200, body, client=job.client))
            elif task != "wait":
                worker.say(commands.Response(job.uuid, 200, result(name), client=job.client))
    finally:
        beating.cancel()


async def _beat(worker: RawPeer) -> None:
    while True:
        await asyncio.sleep(0.5)
        worker.say(commands.Keepalive("svc"))
