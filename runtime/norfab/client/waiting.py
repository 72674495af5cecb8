"""Who waits for what in one process: ends of jobs, progress, answers, room for one more job."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable

from specwire.runtime.norfab.client.events import Progress
from specwire.runtime.norfab.client.results import Answer, JobResult

MAX_UNREAD = 10_000
Listener = Callable[[Progress], object]


class ProgressStream:
    """The progress of a job from now on; an async iterator that ends with the job.

    One that is not read keeps the newest `MAX_UNREAD` and counts in `lost` what it dropped.
    """

    def __init__(self) -> None:
        self._unread: deque[Progress] = deque(maxlen=MAX_UNREAD)
        self._changed = asyncio.Event()
        self._ended = False
        self.lost = 0

    def add(self, progress: Progress) -> None:
        """Take one."""
        self.lost += len(self._unread) == MAX_UNREAD
        self._unread.append(progress)
        self._changed.set()

    def end(self) -> None:
        """Let the iteration end after what is unread."""
        self._ended = True
        self._changed.set()

    def __aiter__(self) -> AsyncIterator[Progress]:
        return self

    async def __anext__(self) -> Progress:
        while not self._unread:
            if self._ended:
                raise StopAsyncIteration
            self._changed.clear()
            await self._changed.wait()
        return self._unread.popleft()


class Waiting:
    """The futures and listeners of a client, by uuid."""

    def __init__(self) -> None:
        self._ends: dict[str, list[asyncio.Future[JobResult]]] = {}
        self._listeners: dict[str, list[Listener]] = {}
        self._streams: dict[str, list[ProgressStream]] = {}
        self._answers: dict[str, asyncio.Future[Answer]] = {}
        self._room = asyncio.Event()
        self._room.set()

    def for_end(self, uuid: str) -> asyncio.Future[JobResult]:
        """Return what is done when the job ends."""
        end: asyncio.Future[JobResult] = asyncio.get_running_loop().create_future()
        self._ends.setdefault(uuid, []).append(end)
        return end

    def forget_end(self, uuid: str, end: asyncio.Future[JobResult]) -> None:
        """Nobody waits for this any more."""
        ends = self._ends.get(uuid, [])
        if end in ends:
            ends.remove(end)
            if not ends:
                del self._ends[uuid]

    def for_answer(self, uuid: str) -> asyncio.Future[Answer]:
        """Return what is done when the request is answered."""
        answer = self._answers[uuid] = asyncio.get_running_loop().create_future()
        return answer

    def forget_answer(self, uuid: str) -> None:
        """Nobody waits for the answer any more."""
        self._answers.pop(uuid, None)

    def listen(self, uuid: str, listener: Listener) -> Callable[[], None]:
        """Call with progress of the job, until what is returned is called, or the job ends."""
        self._listeners.setdefault(uuid, []).append(listener)

        def stop() -> None:
            listeners = self._listeners.get(uuid, [])
            if listener in listeners:
                listeners.remove(listener)
                if not listeners:
                    del self._listeners[uuid]

        return stop

    def stream(self, uuid: str) -> ProgressStream:
        """Return the progress of a job as it comes."""
        stream = ProgressStream()
        self._streams.setdefault(uuid, []).append(stream)
        return stream

    # --- what happens

    def ended(self, result: JobResult) -> None:
        """A job has ended."""
        self._listeners.pop(result.uuid, None)
        for stream in self._streams.pop(result.uuid, ()):
            stream.end()
        for end in self._ends.pop(result.uuid, ()):
            if not end.done():
                end.set_result(result)

    def progress(self, progress: Progress) -> None:
        """A job makes progress."""
        for stream in self._streams.get(progress.uuid, ()):
            stream.add(progress)
        for listener in list(self._listeners.get(progress.uuid, ())):
            listener(progress)

    def answered(self, uuid: str, answer: Answer) -> None:
        """A request is answered."""
        waiting = self._answers.pop(uuid, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def has_room(self, room: bool) -> None:
        """Whether one more job may be submitted now."""
        if room is self._room.is_set():
            return
        if room:
            self._room.set()
        else:
            self._room.clear()

    async def until_room(self) -> None:
        """Return when a job may be submitted."""
        await self._room.wait()

    def close(self, error: Exception) -> None:
        """Nothing comes any more: whoever waits is told."""
        for streams in self._streams.values():
            for stream in streams:
                stream.end()
        futures: list[asyncio.Future[JobResult] | asyncio.Future[Answer]] = [
            *(end for ends in self._ends.values() for end in ends),
            *self._answers.values(),
        ]
        self._room.set()
        self._ends.clear()
        self._answers.clear()
        for future in futures:
            if not future.done():
                future.set_exception(error)
                future.exception()  # whoever does not wait any more is no fault
