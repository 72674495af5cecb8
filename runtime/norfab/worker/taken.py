"""The word that a job was taken (201), which waits a moment for the result: a result says so, too.

Of what a worker says of a short job half would be this word, and the broker passes each on to a client. Nothing hangs on
its speed: a broker that has not heard it asks, and is told. A deployed broker hears it at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specwire.runtime.norfab.worker.assignment import Assignment
    from specwire.runtime.norfab.worker.engine import WorkerEngine


class Taken:
    """Jobs that are durable, of which nothing was said yet."""

    __slots__ = ("_engine", "_unsaid")

    def __init__(self, engine: WorkerEngine) -> None:
        self._engine = engine
        self._unsaid: dict[str, float] = {}  # with the time when it is to be said

    def note(self, job: Assignment) -> None:
        """A job is durable: its client hears of it now, or soon."""
        engine = self._engine
        if engine.settings.acknowledge_s and engine.connection.introduced:
            self._unsaid[job.uuid] = engine.now + engine.settings.acknowledge_s
        else:
            engine.answers.acknowledge(job)

    def supersede(self, uuid: str) -> None:
        """What is said of a job now says that it was taken."""
        self._unsaid.pop(uuid, None)

    def say(self, uuid: str) -> None:
        """Say it now, where it was not said: what follows does not say it."""
        job = self._engine.jobs.by_uuid.get(uuid)
        if self._unsaid.pop(uuid, None) is not None and job is not None:
            self._engine.answers.acknowledge(job)

    def clear(self) -> None:
        """There is nobody to tell it any more; the next broker asks."""
        self._unsaid.clear()

    def tick(self) -> None:
        """Say what has waited long enough."""
        for uuid in [uuid for uuid, at in self._unsaid.items() if at <= self._engine.now]:
            self.say(uuid)
