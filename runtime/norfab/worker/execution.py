"""Execution of jobs: the queue, places, begin records, results, and time limits.

At most `WorkerSettings.concurrency` jobs have a place. Jobs begin in the order of their numbers, and that
a job begins is durable before its task starts. So no job starts twice, whenever the process is killed.

A job whose time is over ends at once for its client. Its task is cancelled, and keeps its place for a
grace period. A task that still runs then loses its place, unless too many have. (A thread cannot be
ended, so its memory is in use until the task returns.)

Nothing is sent before it is durable. A result that the store does not take is replaced by a failure.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from specwire.runtime.norfab.commands import Event, Response, Stream
from specwire.runtime.norfab.worker import bodies
from specwire.runtime.norfab.worker.actions import Abandon, Cancel, Load, Send, Start
from specwire.runtime.norfab.worker.assignment import (
    BEGINNING,
    DONE,
    ENDING,
    OPEN,
    QUEUED,
    RUNNING,
    STORING,
    UNSTORED,
    Assignment,
)
from specwire.runtime.norfab.worker.bodies import Outcome, Progress
from specwire.runtime.norfab.worker.events import JobEnded, JobStarted
from specwire.runtime.norfab.worker.records import BegunRecord, Record, ResultRecord

if TYPE_CHECKING:
    from specwire.runtime.norfab.worker.engine import WorkerEngine

SPARE_REMINDERS = 1024
"""Reminders of ended jobs are removed when there are so many."""


class Execution:
    """Runs jobs.

    Attributes:
        running: by uuid, the jobs whose tasks have a place.
        queue: jobs that wait for a place; some of them may have ended.
        owed: uuids of results that no broker has received.
        abandoned: uuids of tasks that run without a place.
    """

    __slots__ = (
        "_beginning",
        "_engine",
        "_overdue",
        "_reminders",
        "_unplaced",
        "abandoned",
        "owed",
        "queue",
        "running",
    )

    def __init__(self, engine: WorkerEngine) -> None:
        self._engine = engine
        self.running: dict[str, Assignment] = {}
        self.queue: deque[Assignment] = deque()
        self.owed: dict[str, None] = {}
        self.abandoned: set[str] = set()
        self._beginning = 0  # places of jobs whose begin record is not durable
        self._unplaced = 0  # jobs that are being stored without a place
        self._overdue: dict[str, float] = {}
        self._reminders: list[tuple[float, int, Assignment]] = []

    # --- beginning

    def reserve(self, job: Assignment) -> list[Record]:
        """Reserve a place for a job that is about to be stored, if no job before it waits for one.

        Returns:
            What to commit together with the job.
        """
        job.placed = not self.queue and not self._unplaced and self._has_place()
        if not job.placed:
            self._unplaced += 1
            return []
        self._beginning += 1
        return [BegunRecord(job.number)]

    def unreserve(self, job: Assignment) -> None:
        """Undo `reserve`: it is known whether the job is durable."""
        if job.placed:
            self._beginning -= 1
        else:
            self._unplaced -= 1

    def admit(self, job: Assignment) -> None:
        """Start or queue a job that is durable now."""
        self.unreserve(job)
        if self._engine.stopping:
            self._engine.give_back([job])
            return
        self.remind(job)
        if job.placed:
            self._start(job)
        else:
            job.state = QUEUED
            self.queue.append(job)
        self.pump()

    def pump(self) -> None:
        """Begin jobs as long as there is a place."""
        while self.queue and self._has_place() and not self._engine.stopping:
            job = self.queue.popleft()
            if job.state is QUEUED:
                job.state = BEGINNING
                self._beginning += 1
                self._engine.commits.commit(
                    BegunRecord(job.number),
                    then=partial(self._begun, job),
                    otherwise=partial(self._not_begun, job),
                )

    def _has_place(self) -> bool:
        return len(self.running) + self._beginning < self._engine.settings.concurrency

    def _begun(self, job: Assignment) -> None:
        self._beginning -= 1
        if job.state is BEGINNING:
            if self._engine.stopping:
                self._engine.give_back([job])
            else:
                self._start(job)
        self.pump()

    def _not_begun(self, job: Assignment, reason: str) -> None:
        self._beginning -= 1
        self._engine.store_failed(reason)
        self.end(job, bodies.fault(f"the worker cannot store that the job begins: {reason}"))
        self.pump()

    def _start(self, job: Assignment) -> None:
        engine = self._engine
        job.state, job.began = RUNNING, engine.now
        limit = engine.time_limits.get(job.task)
        if limit is not None and job.began + limit < job.deadline:
            job.deadline = job.began + limit
            self.remind(job)
        self.running[job.uuid] = job
        if engine.observed:
            engine.report(JobStarted(job.uuid, job.task))
        engine.out.append(Start(job.uuid, job.task, job.body, job.client))

    # --- messages of a task

    def progress(self, uuid: str, progress: Progress) -> None:
        """Send progress, if the job has not ended."""
        engine, job = self._engine, self.running.get(uuid)
        if job is None or job.state is not RUNNING:
            return
        if progress.event_type == "progress" and len(job.messages) < engine.settings.messages:
            job.messages = [*job.messages, progress.message]
        if engine.connection.registered:
            engine.acks.send(uuid)
            body = bodies.event(engine.name, engine.service, uuid, job.task, progress, engine.now)
            engine.out.append(Send(Event(uuid, 200, body, client=job.client)))

    def stream(self, uuid: str, body: bytes) -> None:
        """Send a piece of a stream, if the job has not ended."""
        engine, job = self._engine, self.running.get(uuid)
        if job is not None and job.state is RUNNING and engine.connection.registered:
            engine.acks.send(uuid)
            engine.out.append(Send(Stream(uuid, 200, body, client=job.client)))

    def ended(self, uuid: str, outcome: Outcome) -> None:
        """Handle the end of a task: commit its result, and let the next job begin."""
        self.abandoned.discard(uuid)
        self._overdue.pop(uuid, None)
        job = self.running.pop(uuid, None)
        if job is not None:
            self.end(job, outcome)
        self.pump()
        self._engine.drain()

    # --- results

    def end(self, job: Assignment, outcome: Outcome) -> None:
        """Commit the result of a job, unless it has one; it is sent when it is durable."""
        if job.state in OPEN:
            self._commit_result(job, outcome, otherwise=self._replace_result)

    def _commit_result(
        self, job: Assignment, outcome: Outcome, *, otherwise: Callable[[Assignment, str], None]
    ) -> None:
        engine = self._engine
        body = self._compose(job, outcome)
        job.state, job.ended_at, job.result_octets = ENDING, engine.now, len(body)
        engine.commits.commit(
            ResultRecord(job.number, body, engine.now, len(body), bool(job.failure), job.fault),
            then=partial(self._ended, job, body),
            otherwise=partial(otherwise, job),
        )

    def _compose(self, job: Assignment, outcome: Outcome) -> bytes:
        engine = self._engine
        about = (engine.name, engine.service, job.uuid, job.task)
        body = bodies.result(*about, outcome, job.messages, job.began, engine.now)
        limit = engine.settings.body_octets
        if len(body) > limit:
            outcome = bodies.failure(f"the result is {len(body)} octets long; up to {limit} can be sent")
            body = bodies.result(*about, outcome, (), job.began, engine.now)
        job.fault = outcome.fault
        job.failure = "; ".join(outcome.errors)[-500:] or "failed" if outcome.failed else ""
        return body

    def _replace_result(self, job: Assignment, reason: str) -> None:
        """Commit a failure instead of a result that the store does not take."""
        self._engine.store_failed(reason)
        if job.state is ENDING:
            self._commit_result(job, _not_stored(reason), otherwise=self._refuse_result)

    def _refuse_result(self, job: Assignment, reason: str) -> None:
        """Send the failure, which the store does not take either, as an answer that is not a result."""
        self._engine.store_failed(reason)
        if job.state is ENDING:
            job.state = UNSTORED
            self.send_unstored(job, job.client)

    def send_unstored(self, job: Assignment, client: bytes) -> None:
        """Answer that a job has ended without a result. A restarted worker will report it as interrupted."""
        self._engine.answers.reply(job.uuid, client, 500, self._compose(job, bodies.fault(job.failure)))

    def _ended(self, job: Assignment, body: bytes) -> None:
        engine = self._engine
        if job.state is not ENDING:
            return  # deleted meanwhile
        if job.failure:
            engine.jobs.failed += 1
        else:
            engine.jobs.completed += 1
        seconds = 0.0 if job.began is None else round(job.ended_at - job.began, 6)
        engine.report(JobEnded(job.uuid, job.task, seconds, job.failure))
        job.state = DONE
        engine.jobs.settle(job)
        if engine.connection.registered:
            self._send_result(job, body)
        else:
            self.owed[job.uuid] = None

    def _send_result(self, job: Assignment, body: bytes) -> None:
        engine = self._engine
        engine.acks.drop(job.uuid)
        engine.out.append(Send(Response(job.uuid, self.status(job), body, client=job.client)))
        if not engine.connection.introduced:
            # A deployed broker passes on the response, but its clients ask only after this event.
            done = Progress(message="completed", status="completed", event_type="result_ready")
            event = bodies.event(engine.name, engine.service, job.uuid, job.task, done, engine.now)
            engine.out.append(Send(Event(job.uuid, 200, event, client=job.client)))

    def status(self, job: Assignment) -> int:
        """Return the status of a result. Clients of deployed brokers take any but 200 for the end of all parts."""
        return 500 if job.fault and self._engine.connection.introduced else 200

    def send_owed(self) -> None:
        """Send the results that a broker has not asked for in time."""
        for uuid in list(self.owed):
            job = self._engine.jobs.by_uuid.get(uuid)
            if job is not None and not job.deleted:
                self._engine.out.append(Load(job.number, uuid, job.client))
        self.owed.clear()

    # --- time limits

    def remind(self, job: Assignment) -> None:
        """End the job at its deadline."""
        if len(self._reminders) > SPARE_REMINDERS + 2 * self._engine.jobs.open:
            self._reminders = [reminder for reminder in self._reminders if reminder[2].state in OPEN]
            heapq.heapify(self._reminders)
        heapq.heappush(self._reminders, (job.deadline, job.number, job))

    def tick(self) -> None:
        """End jobs whose time is over, and abandon tasks that do not end."""
        engine = self._engine
        while self._reminders and self._reminders[0][0] <= engine.now:
            self._expire(heapq.heappop(self._reminders)[2])
        for uuid, until in list(self._overdue.items()):
            if until <= engine.now and len(self.abandoned) < engine.settings.abandoned:
                del self._overdue[uuid]
                if self.running.pop(uuid, None) is None:
                    continue
                self.abandoned.add(uuid)
                engine.out.append(Abandon(uuid))
        self.pump()

    def _expire(self, job: Assignment) -> None:
        now = self._engine.now
        if job.state not in OPEN or job.deadline > now:
            return
        if job.state is STORING:
            return  # there is another reminder when the outcome of its commit is known
        if job.began is None:
            cause = f"did not begin within {job.deadline - job.accepted_at:g} s"
        else:
            cause = f"did not end within {job.deadline - max(job.accepted_at, self._limited(job)):g} s"
            self.cancel(job, cause)
        self.end(job, bodies.failure(cause, "timeout"))

    def _limited(self, job: Assignment) -> float:
        """Return the time from which the deadline of a running job counts."""
        limit = self._engine.time_limits.get(job.task)
        began = job.began or 0.0
        return began if limit is not None and abs(job.deadline - began - limit) < 1e-6 else 0.0

    def cancel(self, job: Assignment, reason: str) -> None:
        """Cancel the task of a job, which has a grace period to end."""
        if job.uuid in self.running and job.uuid not in self._overdue:
            self._overdue[job.uuid] = self._engine.now + self._engine.settings.grace_s
            self._engine.out.append(Cancel(job.uuid, reason))


def _not_stored(reason: str) -> Outcome:
    return bodies.fault(f"the worker cannot store the result: {reason}")
