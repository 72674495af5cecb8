"""Runs tasks where they cannot hurt the worker: methods in threads, coroutines on a loop in a thread of its own.

Where a task ends the next job begins that is lined up (`ahead`), in the same thread or on the same loop if it can: a few
coroutines follow each other in one task of asyncio.

What a task says and how it ends goes to the worker's loop through one queue, in order; the loop is woken once for many.
The queue is bounded: progress is left out when it is full, a stream waits. A thread is made when there is a task for it
and none is idle, and stays for the next. One that was abandoned because its task goes on counts as gone; should the
task end after all it may serve again. All are daemons: a task that never ends does not keep the process alive.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from specwire.runtime.norfab.bodies import PostBody, read_post
from specwire.runtime.norfab.worker import outcomes
from specwire.runtime.norfab.worker.ahead import Ahead, Lined
from specwire.runtime.norfab.worker.apart import Apart
from specwire.runtime.norfab.worker.bodies import Outcome, Progress, failure
from specwire.runtime.norfab.worker.handle import Job, Worker
from specwire.runtime.norfab.worker.tasks import Task, TaskTable

MAX_WAITING = 10_000
MAX_WAITING_OCTETS = 32 << 20
TURN = 500
"""Words of tasks that are handled before the loop sees to other things."""

IN_A_ROW = 64
"""Coroutines that follow each other without a turn of their loop, where they wait for nothing."""

POUR_S = 0.01


class Began(NamedTuple):
    """A job that was lined up has begun."""

    at: float


Word = Began | Progress | bytes | Outcome


class Listener(Protocol):
    """Who hears of tasks, on the worker's loop."""

    def on_began(self, uuid: str, at: float) -> None:
        """A job that was lined up has begun, at this time."""

    def on_progress(self, uuid: str, progress: Progress) -> None:
        """A task tells how it goes."""

    def on_stream(self, uuid: str, data: bytes) -> None:
        """A task sends a piece of something."""

    def on_ended(self, uuid: str, outcome: Outcome, began: float | None = None) -> None:
        """A task has ended; `began`: when it began, where it was lined up and `on_began` did not tell."""


class Runner:
    """Runs the tasks of one plugin; to be made on the worker's loop.

    Args:
        concurrency: how many threads are kept for the next task, and how many tasks run at a time of those lined up.
        mark: called, in whichever thread, with the number of a job that was lined up, before it begins.
        clock: the time of a beginning, in whichever thread.
    """

    def __init__(
        self,
        table: TaskTable,
        worker: Worker,
        listener: Listener,
        *,
        concurrency: int,
        mark: Callable[[int], None] = lambda number: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._table, self._worker, self._listener = table, worker, listener
        self._loop = asyncio.get_running_loop()
        self._jobs: dict[str, Job] = {}
        self._coroutines: dict[str, asyncio.Task[None]] = {}
        self._words: deque[tuple[str, Word]] = deque()
        self._clock = clock
        self._ahead = Ahead(concurrency, mark)
        self._octets = 0
        self._woken = self._closed = False
        self._threads = _Threads(concurrency)
        self._side: _SideLoop | None = None
        self._making = threading.Lock()

    # --- what the worker says

    def start(self, uuid: str, name: str, body: bytes, client: str) -> None:
        """Run a task; `Listener.on_ended` is called once, unless the worker is closed before."""
        self._ahead.occupy(uuid)
        self._begin(self._new_job(uuid, name, client), body)

    def line_up(self, job: Lined) -> None:
        """Run a task when those before it have ended; `Listener.on_began` is called when it begins."""
        self._go_on(self._ahead.line_up(job))

    def withdraw(self, uuid: str) -> bool:
        """Take back a job that was lined up; where it has begun it is cancelled, and False is returned."""
        if self._ahead.withdraw(uuid):
            return True
        self.cancel(uuid, "nobody wants the job any more")
        return False

    def cancel(self, uuid: str, reason: str) -> None:
        """Tell a task that nobody wants it any more."""
        job = self._jobs.get(uuid)
        if job is None:
            return
        job.cancel(reason)
        running = self._coroutines.get(uuid)  # where there is none yet, it looks before it begins
        if running is not None:
            with suppress(RuntimeError):  # its loop has ended
                running.get_loop().call_soon_threadsafe(self._cancel_coroutine, uuid, running)

    def _cancel_coroutine(self, uuid: str, running: asyncio.Task[None]) -> None:
        """On the loop of coroutines: what runs there may be the next job by now."""
        if self._coroutines.get(uuid) is running:
            running.cancel()

    def abandon(self, uuid: str) -> None:
        """Wait for a task no longer; where it blocks the loop of coroutines the others get a new one."""
        job = self._jobs.get(uuid)
        found = None if job is None else self._table.find(job.task)
        if found is not None and found.is_async and self._side is not None:
            self._side.close()
            self._side = None
        self._go_on(self._ahead.leave(uuid))

    def give(self, uuid: str, body: bytes) -> None:
        """Give a task what its client sent."""
        job = self._jobs.get(uuid)
        if job is not None:
            job.give(body)

    def close(self) -> None:
        """Hear nothing more; tasks that still run are told, and left alone."""
        self._closed = True
        self._ahead.clear()
        for job in list(self._jobs.values()):
            job.cancel("the worker stops")
        self._threads.close()
        if self._side is not None:
            self._side.close()

    # --- in the threads of tasks, and on the worker's loop

    def _new_job(self, uuid: str, name: str, client: str) -> Job:
        job = self._jobs[uuid] = Job(uuid, name, client, (), self._worker, self)
        return job

    def _admit(self, lined: Lined) -> Job:
        """Tell that a job begins; who hears of it may cancel it, so it is there before."""
        job = self._new_job(lined.uuid, lined.task, lined.client)
        self._put(lined.uuid, Began(self._clock()))
        return job

    def _begin(self, job: Job, body: bytes) -> None:
        found = self._table.find(job.task)
        if found is None:
            known = ", ".join(self._table.names)[:2000]
            self._end(job.uuid, failure(f"there is no task {job.task[:80]!r}; there are {known}"))
        elif found.is_async:
            with self._making:  # several threads may be here
                side = self._side = self._side or _SideLoop()
            side.call(lambda: self._start_coroutine(found, job, body))
        else:
            self._threads.call(lambda: self._run(found, job, body))

    def _end(self, uuid: str, outcome: Outcome) -> None:
        """Tell how a task has ended, and begin the next one."""
        self._put(uuid, outcome)
        self._go_on(self._ahead.leave(uuid))

    def _go_on(self, following: Lined | None) -> None:
        if following is not None:
            self._begin(self._admit(following), following.body)

    # --- in the threads of tasks

    def _run(self, found: Task, job: Job, body: bytes) -> None:
        while True:
            self._put(job.uuid, self._perform(found, job, body))
            following = self._ahead.leave(job.uuid)
            if following is None:
                return
            job, body = self._admit(following), following.body
            next_found = self._table.find(job.task)
            if next_found is None or next_found.is_async:
                self._begin(job, body)
                return
            found = next_found

    def _perform(self, found: Task, job: Job, body: bytes) -> Outcome:
        try:
            job.check()
            args, kwargs = self._read(found, job, body)
            value = found.call(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - whatever a plugin raises, SystemExit too
            return outcomes.of_error(error)
        return outcomes.of_value(value, job.resources)

    @staticmethod
    def _read(found: Task, job: Job, body: bytes) -> tuple[list[Any], dict[str, Any]]:
        said: PostBody = read_post(body)
        job.resources = list(said.resources)
        return found.signature.read(said.args or [], said.kwargs or {}, job)

    def _start_coroutine(self, found: Task, job: Job, body: bytes) -> None:
        running = asyncio.get_running_loop().create_task(self._run_coroutine(found, job, body))
        self._coroutines[job.uuid] = running

    async def _run_coroutine(self, found: Task, job: Job, body: bytes) -> None:
        """Run a coroutine, and after it those that are lined up, a few before others have their turn."""
        running = asyncio.current_task()
        assert running is not None
        for _ in range(IN_A_ROW):
            self._put(job.uuid, await self._perform_coroutine(found, job, body))
            following = self._ahead.leave(job.uuid)
            if following is None:
                return
            job, body = self._admit(following), following.body
            next_found = self._table.find(job.task)
            if next_found is None or not next_found.is_async or running.cancelling():
                break
            found = next_found
            self._coroutines[job.uuid] = running
        self._begin(job, body)

    async def _perform_coroutine(self, found: Task, job: Job, body: bytes) -> Outcome:
        try:
            job.check()
            args, kwargs = self._read(found, job, body)
            return outcomes.of_value(await Apart(found.call(*args, **kwargs)), job.resources)
        except asyncio.CancelledError:
            return failure("cancelled")
        except BaseException as error:  # noqa: BLE001 - as above
            return outcomes.of_error(error)
        finally:
            self._coroutines.pop(job.uuid, None)

    def say(self, uuid: str, progress: Progress) -> None:
        """See `Outlet.say`."""
        if len(self._words) < MAX_WAITING:
            self._put(uuid, progress)

    def pour(self, uuid: str, data: bytes) -> None:
        """See `Outlet.pour`."""
        while self._octets + len(data) > MAX_WAITING_OCTETS and self._octets and not self._closed:
            time.sleep(POUR_S)
        self._octets += len(data)
        self._put(uuid, data)

    def _put(self, uuid: str, word: Word) -> None:
        self._words.append((uuid, word))
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._hear)
            except RuntimeError:  # the loop is closed: nobody waits any more
                self._closed = True

    # --- on the worker's loop

    def _hear(self) -> None:
        self._woken = False
        for _ in range(TURN):
            if not self._words or self._closed:
                return
            uuid, word = self._words.popleft()
            began = None
            if type(word) is Began and self._words and self._words[0][0] == uuid:
                following = self._words[0][1]
                if type(following) is Outcome:  # it is over already: both are told together
                    began, word = word.at, following
                    self._words.popleft()
            if isinstance(word, Outcome):
                self._jobs.pop(uuid, None)
                self._listener.on_ended(uuid, word, began)
            elif isinstance(word, Began):
                self._listener.on_began(uuid, word.at)
            elif isinstance(word, Progress):
                self._listener.on_progress(uuid, word)
            else:
                self._octets -= len(word)
                self._listener.on_stream(uuid, word)
        if not self._woken:
            self._woken = True
            self._loop.call_soon(self._hear)


class _Threads:
    """Threads for calls that may take long; as many as there are calls at a time."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = self._all = 0

    def call(self, work: Callable[[], None]) -> None:
        """Have `work` done at once, in a thread that is idle or new."""
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._all += 1
                threading.Thread(target=self._serve, name="norfab task", daemon=True).start()
        self._calls.put(work)

    def close(self) -> None:
        """Let the idle threads end, and the others when they are done."""
        with self._lock:
            for _ in range(self._all):
                self._calls.put(None)

    def _serve(self) -> None:
        while True:
            work = self._calls.get()
            if work is None:
                return
            work()
            del work
            with self._lock:
                if self._idle >= self._kept:
                    self._all -= 1
                    return
                self._idle += 1


class _SideLoop:
    """An event loop in a thread, for coroutines that are not trusted to let others have their turn."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._calls: deque[Callable[[], None]] = deque()
        self._woken = self._closing = False
        self._thread = threading.Thread(target=self._serve, name="norfab coroutines", daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], None]) -> None:
        """Have `work` done on the loop, which is woken once for many."""
        if threading.get_ident() == self._thread.ident:
            work()
            return
        self._calls.append(work)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._work)

    def close(self) -> None:
        """End when all coroutines have, if ever."""
        self._loop.call_soon_threadsafe(self._finish)

    def _work(self) -> None:
        # In this order: what is added after the last look wakes the loop again.
        self._woken = False
        while self._calls:
            self._calls.popleft()()

    def _finish(self) -> None:
        self._ending = self._loop.create_task(self._end())

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        if others:
            await asyncio.wait(others)
        self._closing = True
        self._loop.stop()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._closing:
            # sys.exit in a coroutine that a plugin has started by itself ends `run_forever`.
            with suppress(BaseException):
                self._loop.run_forever()
        self._loop.close()
