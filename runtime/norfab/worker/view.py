"""The worker as its plugin sees it, from any thread; see `specwire.runtime.norfab.worker.handle.Worker`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Broker(Protocol):
    """Services of the broker for workers."""

    async def fetch(self, url: str) -> Path:
        """See `Worker.fetch`."""

    async def ask(self, service: str, task: str, kwargs: dict[str, Any]) -> Any:
        """See `Worker.ask`."""


class WorkerView:
    """Implementation of `Worker`; constructed on the worker's event loop.

    Args:
        change: called on the event loop with new resources.
    """

    def __init__(
        self,
        name: str,
        service: str,
        resources: Sequence[str],
        change: Callable[[Sequence[str]], None],
        broker: Broker,
    ) -> None:
        self.name, self.service = name, service
        self.resources = tuple(dict.fromkeys(resources))
        self._change, self._broker = change, broker
        self._loop = asyncio.get_running_loop()

    def set_resources(self, resources: Sequence[str]) -> None:
        """See `Worker.set_resources`."""
        self.resources = tuple(dict.fromkeys(map(str, resources)))
        self._loop.call_soon_threadsafe(self._change, self.resources)

    def fetch(self, url: str) -> Path:
        """See `Worker.fetch`."""
        return self._wait(self._broker.fetch(url))

    def ask(self, service: str, task: str, **kwargs: Any) -> Any:
        """See `Worker.ask`."""
        return self._wait(self._broker.ask(service, task, kwargs))

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop, and wait for it in this thread."""
        try:
            on_loop = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            on_loop = False
        if on_loop:
            work.close()
            raise OSError("the worker's own loop cannot wait for the broker: do it in a task")
        waiting: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return waiting.result()
