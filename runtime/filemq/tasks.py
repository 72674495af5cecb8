"""The background work of a service, which nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


class Tasks:
    """Keeps tasks until they end; the loop's exception handler hears of those that fail.

    Without that a service would go on with a part of it dead.

    Args:
        service: how a fault names it.
    """

    def __init__(self, service: str) -> None:
        self._service = service
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[None, None, None]) -> None:
        """Do this beside everything else."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end)

    async def close(self) -> None:
        """Cancel what still runs, and wait for its end."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def finish(self) -> None:
        """Wait for the end of what still runs; what fails is told as ever."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            context = {"message": f"a part of {self._service} has failed", "exception": error, "task": task}
            asyncio.get_running_loop().call_exception_handler(context)
