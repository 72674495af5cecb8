"""The table of jobs: those that are open, those that have ended and are kept, and what ends a job.

A job ends part by part: each worker's part with one result or one failure that names its cause, which is stored and
then sent to every client that waits. The status of a failure is its code (500 for a lost worker, 408 for a wait that
was too long, 400 for a deletion) where the part is the whole job; else it is 200 and says ``failed``, as deployed clients
take any other status for the end of all parts.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Literal

from specwire.runtime.norfab import bodies
from specwire.runtime.norfab.actions import Report
from specwire.runtime.norfab.commands import Response
from specwire.runtime.norfab.events import JobEnded
from specwire.runtime.norfab.job import ACCEPTED, DONE, ENDING, OVER, Job, Outcome, Task
from specwire.runtime.norfab.records import DeletedRecord, ForgottenRecord, ResultRecord

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine

Due = Literal["queue", "deadline", "absent"]

TIDY_AT = 1000
"""Reminders beyond twice those that were needed when they were looked through last."""


class Jobs:
    """All jobs by uuid.

    Attributes:
        kept: the ended ones, the one that ended first in front.
        octets: of the bodies of open jobs; `kept_octets`: of the results of ended ones.
        parts: of open jobs that workers were found for; `kept_parts`: of ended ones.
    """

    __slots__ = (
        "_agenda",
        "_engine",
        "_order",
        "_tidy_at",
        "by_uuid",
        "completed",
        "failed",
        "kept",
        "kept_octets",
        "kept_parts",
        "octets",
        "parts",
    )

    def __init__(self, engine: BrokerEngine) -> None:
        self._engine = engine
        self.by_uuid: dict[str, Job] = {}
        self.kept: OrderedDict[str, Job] = (
            OrderedDict()
        )  # a dict finds its first key only behind all deleted ones
        self.octets = self.kept_octets = self.parts = self.kept_parts = 0
        self.completed = self.failed = 0
        self._agenda: list[tuple[float, int, Due, Job, Task | None]] = []
        self._order = count()
        self._tidy_at = TIDY_AT

    @property
    def open(self) -> int:
        """How many jobs have not ended."""
        return len(self.by_uuid) - len(self.kept)

    def add(self, job: Job) -> None:
        """Take a job in."""
        self.by_uuid[job.uuid] = job
        self.octets += job.octets
        self._engine.clients.opened(job.client, job.user, self._engine.now)
        self.remind(job.deadline, "deadline", job)

    def count(self, job: Job) -> None:
        """Count the parts of a job that has just got them."""
        job.parts = len(job.tasks)
        self.parts += job.parts

    def _close(self, job: Job) -> None:
        """The job counts as open no longer."""
        self.octets -= job.octets
        self.parts -= job.parts
        job.body, job.octets, job.parts = b"", 0, 0
        self._engine.clients.ended(job.client, job.user)

    def remind(self, at: float, due: Due, job: Job, task: Task | None = None) -> None:
        """Have `due` at the time `at`."""
        if len(self._agenda) >= self._tidy_at:
            self._tidy()
        heapq.heappush(self._agenda, (at, next(self._order), due, job, task))

    def _tidy(self) -> None:
        """Forget the reminders of jobs that have ended: their time may come in days."""
        self._agenda = [entry for entry in self._agenda if not (entry[3].ended or entry[3].deleted)]
        heapq.heapify(self._agenda)
        self._tidy_at = 2 * len(self._agenda) + TIDY_AT

    def due(self) -> Iterator[tuple[Due, Job, Task | None]]:
        """Return what is due, and forget the reminders; what has ended meanwhile is left out."""
        while self._agenda and self._agenda[0][0] <= self._engine.now:
            _, _, due, job, task = heapq.heappop(self._agenda)
            if not job.ended and not job.deleted:
                yield due, job, task

    # --- the end of a part

    def end(self, task: Task, status: int, body: bytes, cause: str = "") -> None:
        """End a part: its worker is free of it, and when this is durable the clients are told."""
        if task.state in OVER:
            return
        engine = self._engine
        engine.dispatcher.release(task)
        task.state = ENDING
        record = ResultRecord(task.job.uuid, task.slot, status, body, engine.now)
        task.result = Outcome(status, body, len(body), engine.now)
        task.job.recorded = True
        engine.commits.commit(
            record, then=partial(self._ended, task, cause), otherwise=partial(self._not_stored, task, cause)
        )

    def fail(self, task: Task, code: int, cause: str) -> None:
        """End a part without a result."""
        job = task.job
        whole = len(job.tasks) == 1
        body = bodies.failure(
            job.uuid, job.service, task.slot, job.task, cause, max(1, task.attempt), whole=whole
        )
        self.end(task, code if whole else 200, body, cause)

    def fail_unassigned(self, job: Job, code: int, cause: str) -> None:
        """End a job that no worker was found for."""
        task = job.add("", "")
        self.end(task, code, bodies.refused(job.uuid, job.target, job.service, cause), cause)

    def _not_stored(self, task: Task, cause: str, reason: str) -> None:
        """Store and send a failure instead of a result that cannot be stored; send no result that is not durable."""
        engine, job = self._engine, task.job
        engine.store_failed(reason)
        if task.state is not ENDING:
            return
        why = f"the broker cannot store the result: {reason}"
        if not cause.startswith(why):
            task.state, task.result = ACCEPTED, None
            self.fail(task, 500, why)
            return
        # Not even the failure can be stored: whoever waits hears of it, and may ask again after a restart.
        whole = len(job.tasks) == 1
        body = bodies.failure(
            job.uuid, job.service, task.slot, job.task, why, max(1, task.attempt), whole=whole
        )
        status = 500 if whole else 200
        task.result = Outcome(status, body, len(body), engine.now)
        self._ended(task, why)

    def _ended(self, task: Task, cause: str) -> None:
        engine, job, result = self._engine, task.job, task.result
        if task.state is not ENDING or result is None:
            return
        task.state = DONE
        job.open -= 1
        job.result_octets += result.octets
        engine.out.append(Report(JobEnded(job.uuid, task.slot, result.status, cause)))
        for client in job.listeners:
            engine.results.send(client, task)
        engine.results.keep(task, result)
        if cause:
            self.failed += 1
        else:
            self.completed += 1
        if not job.open:
            self.settle(job)

    def settle(self, job: Job) -> None:
        """Every part has ended: keep the results, nothing else."""
        self._close(job)
        job.listeners.clear()
        job.ended_at = self._engine.now
        self.kept[job.uuid] = job
        self.kept_octets += job.result_octets
        self.kept_parts += len(job.tasks)
        self._forget_surplus()

    # --- retention

    def _forget_surplus(self) -> None:
        settings, kept = self._engine.settings, self.kept
        while kept and (
            len(kept) > settings.kept_jobs
            or self.kept_octets > settings.kept_octets
            or self.kept_parts > settings.kept_parts
        ):
            self._forget(next(iter(kept.values())), "number")

    def forget_aged(self) -> None:
        """Forget what ended too long ago."""
        while self.kept:
            job = next(iter(self.kept.values()))
            if self._engine.now - job.ended_at < self._engine.settings.kept_s:
                return
            self._forget(job, "age")

    def _forget(self, job: Job, reason: Literal["age", "number"]) -> None:
        del self.kept[job.uuid], self.by_uuid[job.uuid]
        self.kept_octets -= job.result_octets
        self.kept_parts -= len(job.tasks)
        for task in job.tasks.values():
            self._engine.results.drop(task)
        job.release()
        self._engine.commits.commit(ForgottenRecord(job.uuid, reason), otherwise=self._engine.store_failed)

    def withdraw(self, job: Job) -> None:
        """Take out a job that was refused, with what was written of it meanwhile."""
        if job.recorded:
            engine = self._engine
            engine.commits.commit(ForgottenRecord(job.uuid, "refused"), otherwise=engine.store_failed)
        for task in job.tasks.values():
            self._engine.dispatcher.release(task)
            task.state = DONE
        self._engine.dispatcher.unqueue(job)
        self._close(job)
        job.release()
        del self.by_uuid[job.uuid]

    def release(self) -> None:
        """Let go of all jobs: the broker has ended."""
        for job in self.by_uuid.values():
            job.release()

    def delete(self, job: Job, cause: str) -> None:
        """Drop a job for good, at a client's wish; its uuid stays known. Those that wait are told."""
        was_open = not job.ended
        unfinished = [task for task in job.tasks.values() if task.state is not DONE]
        for task in unfinished:
            self._engine.dispatcher.release(task)
        self._engine.dispatcher.unqueue(job)
        whole = len(job.tasks) == 1
        for client in job.listeners:
            for task in unfinished:
                body = bodies.failure(
                    job.uuid, job.service, task.slot, job.task, cause, max(1, task.attempt), whole=whole
                )
                self._engine.to_client(client, Response(job.uuid, 400 if whole else 200, body, job.service))
            if not job.tasks:
                body = bodies.refused(job.uuid, job.target, job.service, cause)
                self._engine.to_client(client, Response(job.uuid, 400, body, job.service))
        self._bury(job)
        if was_open:
            self.settle(job)

    def _bury(self, job: Job) -> None:
        job.deleted = True
        if job.uuid in self.kept:
            self.kept_octets -= job.result_octets
        job.result_octets = job.open = 0
        for task in job.tasks.values():
            self._engine.results.drop(task)
            task.state, task.result = DONE, None

    def restore_deleted(self, record: DeletedRecord, job: Job) -> None:
        """Remember a uuid that was deleted before the broker began."""
        self.by_uuid[record.uuid] = self.kept[record.uuid] = job
        job.deleted, job.durable, job.ended_at = True, True, record.at
