"""Acknowledgements (201) that wait a moment for the result of their job, which acknowledges it, too.

For a short job, that halves the worker's messages, and the broker passes each of them on to a client.
Nothing depends on how soon a 201 arrives: a broker that misses it asks. Brokers that do not answer OPEN
get it at once, as their clients may wait for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from specwire.runtime.norfab.worker.assignment import Assignment
    from specwire.runtime.norfab.worker.engine import WorkerEngine


class DelayedAcks:
    """Durable jobs that are not acknowledged yet."""

    __slots__ = ("_due", "_engine")

    def __init__(self, engine: WorkerEngine) -> None:
        self._engine = engine
        self._due: dict[str, float] = {}  # uuid: time

    def add(self, job: Assignment) -> None:
        """Acknowledge a job that is durable, now or after `WorkerSettings.acknowledge_s`."""
        engine = self._engine
        if engine.settings.acknowledge_s and engine.connection.introduced:
            self._due[job.uuid] = engine.now + engine.settings.acknowledge_s
        else:
            engine.answers.acknowledge(job)

    def drop(self, uuid: str) -> None:
        """Do not acknowledge a job: another response about it is sent."""
        self._due.pop(uuid, None)

    def send(self, uuid: str) -> None:
        """Acknowledge a job now, if that has not happened: the next message is not a response."""
        job = self._engine.jobs.by_uuid.get(uuid)
        if self._due.pop(uuid, None) is not None and job is not None:
            self._engine.answers.acknowledge(job)

    def clear(self) -> None:
        """Drop all: the connection is lost, and the next broker will ask."""
        self._due.clear()

    def tick(self) -> None:
        """Acknowledge the jobs whose time has come."""
        for uuid in [uuid for uuid, at in self._due.items() if at <= self._engine.now]:
            self.send(uuid)
