"""The disk work of one client, in order, in one thread.

Work is handed over in batches: what has gathered while the last batch was done is the next one, so small files
cost few trips to the thread and large ones keep it busy. `backlog` says how much waits; content is bounded by the
credit window, and the client stops receiving where deletions and empty files pile up.

The thread answers to the event loop directly: an executor's two futures cost the loop three turns a batch, which are
dear among many clients on few cores, where each turn finds the caches cold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

from specwire.runtime.filemq.actions import DiskAction, Outcome, WriteChunk

BATCH = 256
BATCH_OCTETS = 2 << 20
"""A batch ends with the piece that brings its content here: the server gets credit again while the rest is written."""

LARGE_OCTETS = 256 << 10
"""A piece with so much content is worth a trip to the thread of its own: it does not wait for others."""


class DiskWork:
    """Performs disk actions.

    Args:
        perform: does pieces of work in order and returns outcomes, of some with a later batch; called in the
            thread.
        pending: tells whether outcomes are missing, which an empty batch is to bring.
        on_outcomes: called on the event loop with the outcomes of a batch.
        on_fault: called on the event loop when `perform` raised; nothing is done after that.
    """

    def __init__(
        self,
        perform: Callable[[Sequence[DiskAction]], list[Outcome]],
        *,
        pending: Callable[[], bool],
        on_outcomes: Callable[[list[Outcome]], None],
        on_fault: Callable[[BaseException], None],
    ) -> None:
        self._perform, self._pending = perform, pending
        self._on_outcomes, self._on_fault = on_outcomes, on_fault
        self._thread: Thread | None = None
        self._batches: SimpleQueue[list[DiskAction] | None] = SimpleQueue()
        self._waiting: list[DiskAction] = []
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def backlog(self) -> int:
        """Pieces of work that wait."""
        return len(self._waiting)

    def order(self, action: DiskAction) -> None:
        """Take in one piece of work."""
        self._waiting.append(action)
        if self._idle.is_set():
            self._idle.clear()
            if isinstance(action, WriteChunk) and len(action.chunk) >= LARGE_OCTETS:
                self._begin()
                return
            # Not at once: what else comes in this turn of the loop joins the batch.
            asyncio.get_running_loop().call_soon(self._begin)

    async def close(self) -> None:
        """Finish what was ordered, and end the thread."""
        await self._idle.wait()
        if self._thread is not None:
            self._batches.put(None)
            await asyncio.to_thread(self._thread.join)

    def _begin(self) -> None:
        if not self._waiting and not self._pending():
            self._idle.set()
            return
        if self._thread is None:
            loop = asyncio.get_running_loop()
            # A process that ends without `close` cuts the work short, as a kill would.
            self._thread = Thread(target=self._work, args=(loop,), name="filemq-disk", daemon=True)
            self._thread.start()
        self._batches.put(self._take_batch())

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Perform batches in the thread until there is an end of them."""
        while (batch := self._batches.get()) is not None:
            outcomes: list[Outcome] = []
            error: BaseException | None = None
            try:
                outcomes = self._perform(batch)
            except BaseException as raised:  # noqa: BLE001  # told on the event loop
                error = raised
            del batch  # its content is not to stay in memory until there is another
            with suppress(RuntimeError):  # the loop was closed, nobody waits for the outcomes
                loop.call_soon_threadsafe(self._end, outcomes, error)

    def _take_batch(self) -> list[DiskAction]:
        count = octets = 0
        for action in self._waiting[:BATCH]:
            count += 1
            octets += len(action.chunk) if isinstance(action, WriteChunk) else 0
            if octets >= BATCH_OCTETS:
                break
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    def _end(self, outcomes: list[Outcome], error: BaseException | None) -> None:
        if error is not None:
            self._waiting.clear()
            self._idle.set()
            self._on_fault(error)
            return
        self._on_outcomes(outcomes)
        self._begin()
