"""A client of NORFAB for a plain program: ``with BlockingClient("tcp://127.0.0.1:5555") as client``, without asyncio.

It runs a `NorfabClient` on an event loop of its own in a thread of its own. Any number of threads may use one client at
the same time; callbacks are called in the client's thread, and should return soon.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from specwire.runtime.norfab.client.client import NorfabClient
from specwire.runtime.norfab.client.errors import ClientClosedError
from specwire.runtime.norfab.client.events import Progress
from specwire.runtime.norfab.client.records import HistoryEntry
from specwire.runtime.norfab.client.results import Answer, JobResult
from specwire.runtime.norfab.client.waiting import Listener

Value = TypeVar("Value")


class BlockingClient:
    """The client that blocks; arguments are those of `NorfabClient`, and what a method does is told there.

    Raises:
        StoreError: the folder cannot be used, or another process uses it.
    """

    def __init__(self, endpoints: str | Sequence[str], **settings: Any) -> None:
        self._client = NorfabClient(endpoints, **settings)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._work, name=f"NORFAB client {self.name}", daemon=True)
        self._closing = threading.Lock()
        self._closed = False
        self._thread.start()
        try:
            self._do(self._client.start())
        except BaseException:
            self._end()
            raise

    @property
    def name(self) -> str:
        """How the broker lists this client."""
        return self._client.name

    def close(self) -> None:
        """Close; whoever waits in another thread gets `ClientClosedError`. May be called twice, and from any thread."""
        with self._closing:
            if self._closed:
                return
            self._closed = True
            asyncio.run_coroutine_threadsafe(self._client.stop(), self._loop).result()
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- jobs

    def run(
        self,
        service: str,
        task: str,
        *args: Any,
        targets: str | Sequence[str] = "all",
        timeout: float = 600.0,
        kwargs: Mapping[str, Any] | None = None,
        resources: Sequence[str] = (),
        on_progress: Listener | None = None,
    ) -> JobResult:
        """See `NorfabClient.run`."""
        return self._do(
            self._client.run(
                service,
                task,
                *args,
                targets=targets,
                timeout=timeout,
                kwargs=kwargs,
                resources=resources,
                on_progress=on_progress,
            )
        )

    def submit(
        self,
        service: str,
        task: str,
        *args: Any,
        targets: str | Sequence[str] = "all",
        timeout: float = 600.0,
        kwargs: Mapping[str, Any] | None = None,
        resources: Sequence[str] = (),
        uuid: str | None = None,
    ) -> str:
        """See `NorfabClient.submit`."""
        return self._do(
            self._client.submit(
                service,
                task,
                *args,
                targets=targets,
                timeout=timeout,
                kwargs=kwargs,
                resources=resources,
                uuid=uuid,
            )
        )

    def collect(
        self,
        uuid: str,
        timeout: float = 600.0,
        *,
        service: str | None = None,
        targets: str | Sequence[str] = "all",
        on_progress: Listener | None = None,
    ) -> JobResult:
        """See `NorfabClient.collect`."""
        return self._do(
            self._client.collect(uuid, timeout, service=service, targets=targets, on_progress=on_progress)
        )

    def look(self, uuid: str) -> JobResult:
        """See `NorfabClient.look`."""
        return self._do(self._client.look(uuid))

    def follow(self, uuid: str) -> Iterator[Progress]:
        """Return the progress of a job from this call on; an iterator that ends when the job does."""

        async def begin() -> Any:
            return self._client.follow(uuid)

        stream = self._do(begin())

        def iterate() -> Iterator[Progress]:
            while True:
                try:
                    yield self._do(anext(stream))
                except StopAsyncIteration:
                    return

        return iterate()

    def delete(self, uuid: str, *, service: str | None = None, timeout: float = 10.0) -> None:
        """See `NorfabClient.delete`."""
        self._do(self._client.delete(uuid, service=service, timeout=timeout))

    def put(self, uuid: str, body: bytes, *, targets: str | Sequence[str] = "") -> None:
        """See `NorfabClient.put`."""

        async def put() -> None:
            self._client.put(uuid, body, targets=targets)

        self._do(put())

    def history(self, limit: int = 100) -> list[HistoryEntry]:
        """See `NorfabClient.history`."""
        return self._do(self._client.history(limit))

    def progress(self, uuid: str) -> list[tuple[float, bytes]]:
        """See `NorfabClient.progress`."""
        return self._do(self._client.progress(uuid))

    # --- questions

    def ask(
        self,
        service: str,
        task: str,
        *,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        target: str | Sequence[str] = "",
        timeout: float = 15.0,
    ) -> Answer:
        """See `NorfabClient.ask`."""
        return self._do(
            self._client.ask(service, task, args=args, kwargs=kwargs, target=target, timeout=timeout)
        )

    def manage(
        self,
        service: str,
        task: str,
        target: str | Sequence[str] = "",
        /,
        *,
        timeout: float = 15.0,
        **kwargs: Any,
    ) -> Any:
        """See `NorfabClient.manage`."""
        return self._do(self._client.manage(service, task, target, timeout=timeout, **kwargs))

    def fetch(self, url: str, destination: Path | None = None) -> Path:
        """See `NorfabClient.fetch`."""
        return self._do(self._client.fetch(url, destination))

    # --- the thread

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()

    def _end(self) -> None:
        self._closed = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _do(self, work: Coroutine[Any, Any, Value]) -> Value:
        """Have it done in the client's thread, and wait; who is interrupted gives it up."""
        if self._closed or threading.current_thread() is self._thread:
            work.close()
            if self._closed:
                raise ClientClosedError("the client is closed")
            raise RuntimeError("a callback cannot wait for its own client: use another thread")
        future: Future[Value] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise
