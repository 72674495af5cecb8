"""The disk work of one client, in order, in one thread.

Work is handed over in batches: what has gathered while the last batch was done is the next one, so small files
cost few trips to the thread and large ones keep it busy. `backlog` says how much waits; content is bounded by the
credit window, and the client stops receiving where deletions and empty files pile up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from specwire.runtime.filemq.actions import DiskAction, Outcome, WriteChunk

BATCH = 256
BATCH_OCTETS = 2 << 20
"""A batch ends with the piece that brings its content here: the server gets credit again while the rest is written."""


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
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="filemq-disk")
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
            # Not at once: what else comes in this turn of the loop joins the batch.
            asyncio.get_running_loop().call_soon(self._begin)

    async def close(self) -> None:
        """Finish what was ordered, and end the thread."""
        await self._idle.wait()
        await asyncio.to_thread(self._thread.shutdown)

    def _begin(self) -> None:
        if not self._waiting and not self._pending():
            self._idle.set()
            return
        batch = self._take_batch()
        done = asyncio.get_running_loop().run_in_executor(self._thread, self._perform, batch)
        done.add_done_callback(self._end)

    def _take_batch(self) -> list[DiskAction]:
        count = octets = 0
        for action in self._waiting[:BATCH]:
            count += 1
            octets += len(action.chunk) if isinstance(action, WriteChunk) else 0
            if octets >= BATCH_OCTETS:
                break
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    def _end(self, done: asyncio.Future[list[Outcome]]) -> None:
        error = done.exception()
        if error is not None:
            self._waiting.clear()
            self._idle.set()
            self._on_fault(error)
            return
        self._on_outcomes(done.result())
        self._begin()
