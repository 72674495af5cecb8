"""Execution of tasks: methods in threads, coroutines on an event loop in another thread.

Progress and results reach the worker's event loop through one queue, in order; the loop is woken once for
many. The queue is bounded: progress is omitted when it is full, and a stream waits.

A thread is started when there is a task and no idle thread, and serves further tasks. An abandoned task
keeps its thread, which serves again if the task ends after all. All threads are daemons, so a task that
never ends does not keep the process alive.

A task that calls `os.fork` may return in the child, too. The child process then exits: it has no
event loop to report to.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from specwire.runtime.norfab.bodies import PostBody, read_post
from specwire.runtime.norfab.worker import outcomes
from specwire.runtime.norfab.worker.bodies import Outcome, Progress, failure
from specwire.runtime.norfab.worker.handle import Job, Worker
from specwire.runtime.norfab.worker.tasks import Task, TaskTable

MAX_WAITING = 10_000
MAX_WAITING_OCTETS = 32 << 20
AT_A_TIME = 500
"""Reports of tasks that are handled in one iteration of the event loop."""

STREAM_S = 0.01

Report = Progress | bytes | Outcome


class Listener(Protocol):
    """Handler of what tasks report, on the worker's event loop."""

    def on_progress(self, uuid: str, progress: Progress) -> None:
        """Handle progress."""

    def on_stream(self, uuid: str, data: bytes) -> None:
        """Handle a piece of a stream."""

    def on_ended(self, uuid: str, outcome: Outcome) -> None:
        """Handle the end of a task."""


class Runner:
    """Runs the tasks of one plugin; constructed on the worker's event loop.

    Args:
        concurrency: how many idle threads are kept for the next task.
    """

    def __init__(self, table: TaskTable, worker: Worker, listener: Listener, *, concurrency: int) -> None:
        self._table, self._worker, self._listener = table, worker, listener
        self._loop = asyncio.get_running_loop()
        self._jobs: dict[str, Job] = {}
        self._coroutines: dict[str, asyncio.Task[None]] = {}
        self._reports: deque[tuple[str, Report]] = deque()
        self._octets = 0
        self._woken = self._closed = False
        self._threads = _Threads(concurrency)
        self._side: _SideLoop | None = None
        self._process = os.getpid()

    # --- on the worker's event loop

    def start(self, uuid: str, name: str, body: bytes, client: str) -> None:
        """Run a task; calls `Listener.on_ended` once, unless the worker is closed before."""
        job = self._jobs[uuid] = Job(uuid, name, client, (), self._worker, self)
        found = self._table.find(name)
        if found is None:
            known = ", ".join(self._table.names)[:2000]
            self._put(uuid, failure(f"there is no task {name[:80]!r}; there are {known}"))
        elif found.is_async:
            side = self._side = self._side or _SideLoop()
            side.call(lambda: self._start_coroutine(found, job, body))
        else:
            self._threads.call(lambda: self._put(uuid, self._perform(found, job, body)))

    def cancel(self, uuid: str, reason: str) -> None:
        """Tell a task that nobody waits for its result."""
        job = self._jobs.get(uuid)
        if job is None:
            return
        job.cancel(reason)
        running = self._coroutines.get(uuid)  # if there is none yet, it looks before it begins
        if running is not None:
            with suppress(RuntimeError):  # its loop has ended
                running.get_loop().call_soon_threadsafe(running.cancel)

    def abandon(self, uuid: str) -> None:
        """Wait for a task no longer. If it blocks the loop of coroutines, the others get a new one."""
        job = self._jobs.get(uuid)
        found = None if job is None else self._table.find(job.task)
        if found is not None and found.is_async and self._side is not None:
            self._side.close()
            self._side = None

    def give(self, uuid: str, body: bytes) -> None:
        """Pass input of its client to a task."""
        job = self._jobs.get(uuid)
        if job is not None:
            job.give(body)

    def close(self) -> None:
        """Report nothing more. Tasks that still run are cancelled, and not waited for."""
        self._closed = True
        for job in list(self._jobs.values()):
            job.cancel("the worker stops")
        self._threads.close()
        if self._side is not None:
            self._side.close()

    # --- in the threads of tasks

    def _perform(self, found: Task, job: Job, body: bytes) -> Outcome:
        try:
            job.check()
            args, kwargs = self._read(found, job, body)
            value = found.call(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - whatever a plugin raises, SystemExit too
            self._end_child(error)
            return outcomes.of_error(error)
        self._end_child(None)
        return outcomes.of_value(value, job.resources)

    @staticmethod
    def _read(found: Task, job: Job, body: bytes) -> tuple[list[Any], dict[str, Any]]:
        posted: PostBody = read_post(body)
        job.resources = list(posted.resources)
        return found.signature.read(posted.args or [], posted.kwargs or {}, job)

    def _start_coroutine(self, found: Task, job: Job, body: bytes) -> None:
        running = asyncio.get_running_loop().create_task(self._run_coroutine(found, job, body))
        self._coroutines[job.uuid] = running

    async def _run_coroutine(self, found: Task, job: Job, body: bytes) -> None:
        try:
            job.check()
            args, kwargs = self._read(found, job, body)
            value = await found.call(*args, **kwargs)
            self._end_child(None)
            outcome = outcomes.of_value(value, job.resources)
        except asyncio.CancelledError:
            outcome = failure("cancelled")
        except BaseException as error:  # noqa: BLE001 - as above
            self._end_child(error)
            outcome = outcomes.of_error(error)
        self._coroutines.pop(job.uuid, None)
        self._put(job.uuid, outcome)

    def _end_child(self, error: BaseException | None) -> None:
        """Exit if this process is a child that the task forked, with the status as in Python."""
        if os.getpid() == self._process:
            return
        status = getattr(error, "code", 1) if isinstance(error, SystemExit) else int(error is not None)
        os._exit(status if isinstance(status, int) else int(status is not None))

    def send_progress(self, uuid: str, progress: Progress) -> None:
        """See `Outlet.send_progress`."""
        if len(self._reports) < MAX_WAITING:
            self._put(uuid, progress)

    def send_stream(self, uuid: str, data: bytes) -> None:
        """See `Outlet.send_stream`."""
        while self._octets + len(data) > MAX_WAITING_OCTETS and self._octets and not self._closed:
            time.sleep(STREAM_S)
        self._octets += len(data)
        self._put(uuid, data)

    def _put(self, uuid: str, report: Report) -> None:
        self._reports.append((uuid, report))
        if not self._woken:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._handle)
            except RuntimeError:  # the loop is closed: nobody waits any more
                self._closed = True

    # --- on the worker's event loop

    def _handle(self) -> None:
        self._woken = False
        for _ in range(AT_A_TIME):
            if not self._reports or self._closed:
                return
            uuid, report = self._reports.popleft()
            if isinstance(report, Outcome):
                self._jobs.pop(uuid, None)
                self._listener.on_ended(uuid, report)
            elif isinstance(report, Progress):
                self._listener.on_progress(uuid, report)
            else:
                self._octets -= len(report)
                self._listener.on_stream(uuid, report)
        if not self._woken:
            self._woken = True
            self._loop.call_soon(self._handle)


class _Threads:
    """Threads for calls that may take long, as many as there are calls at a time."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = self._all = 0

    def call(self, work: Callable[[], None]) -> None:
        """Run `work` now, in an idle thread or a new one."""
        with self._lock:
            if self._idle:
                self._idle -= 1
            else:
                self._all += 1
                threading.Thread(target=self._serve, name="norfab task", daemon=True).start()
        self._calls.put(work)

    def close(self) -> None:
        """End the idle threads now, and the others when their tasks end."""
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
    """Event loop in a thread, for coroutines that may block it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._calls: deque[Callable[[], None]] = deque()
        self._woken = self._closing = False
        self._thread = threading.Thread(target=self._serve, name="norfab coroutines", daemon=True)
        self._thread.start()

    def call(self, work: Callable[[], None]) -> None:
        """Run `work` on the loop, which is woken once for many."""
        self._calls.append(work)
        if not self._woken:
            self._woken = True
            self._loop.call_soon_threadsafe(self._work)

    def close(self) -> None:
        """End the thread when all coroutines have ended."""
        self._loop.call_soon_threadsafe(self._finish)

    def _work(self) -> None:
        # In this order, so that a call that is added after the last iteration wakes the loop again.
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
        pid = os.getpid()
        while not self._closing:
            # sys.exit in a coroutine that a plugin has started ends `run_forever`.
            with suppress(BaseException):
                self._loop.run_forever()
            if os.getpid() != pid:
                os._exit(1)  # a child that a coroutine forked must not serve the loop
        self._loop.close()
