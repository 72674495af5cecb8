"""From a job that was taken to its end: the queue, places, beginnings, ends, and what takes too long.

Jobs begin in the order of their numbers, at most `WorkerSettings.concurrency` at a time. That a job begins is kept before it
begins: a job that was begun is never begun again, whatever is killed. A job whose time is over ends at once for
everybody who waits. Its task is told, and has its place for a grace period more; one that still goes on then loses
its place, as long as there are not too many such. That only a task which ends frees its memory is in the nature of threads.
"""

from __future__ import annotations

import heapq
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from specwire.runtime.norfab.commands import Event, Response, Stream
from specwire.runtime.norfab.worker import bodies
from specwire.runtime.norfab.worker.actions import Abandon, Cancel, Load, Send, Start
from specwire.runtime.norfab.worker.assignment import (
    DONE,
    ENDING,
    MARKING,
    OPEN,
    QUEUED,
    RUNNING,
    Assignment,
)
from specwire.runtime.norfab.worker.bodies import Outcome, Progress
from specwire.runtime.norfab.worker.events import JobEnded, JobStarted
from specwire.runtime.norfab.worker.records import BegunRecord, Record, ResultRecord

if TYPE_CHECKING:
    from specwire.runtime.norfab.worker.engine import WorkerEngine

SPARE_REMINDERS = 1024
"""Reminders of jobs that have ended are thrown away when there are so many."""


class Execution:
    """Runs jobs.

    Attributes:
        running: by uuid, the jobs that have a place.
        queue: those that wait for one; some may have ended meanwhile.
        owed: results that no broker was told of.
        abandoned: tasks that go on without a place.
    """

    __slots__ = (
        "_agenda",
        "_engine",
        "_marking",
        "_overdue",
        "_reserved",
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
        self._marking = 0
        self._reserved: set[int] = set()
        self._overdue: dict[str, float] = {}
        self._agenda: list[tuple[float, int, Assignment]] = []

    # --- beginnings

    def enqueue(self, job: Assignment) -> None:
        """The job is durable: let it wait for its turn."""
        job.state = QUEUED
        self.queue.append(job)
        self.remind(job)

    def remind(self, job: Assignment) -> None:
        """End the job at its deadline."""
        if len(self._agenda) > SPARE_REMINDERS + 2 * self._engine.jobs.open:
            self._agenda = [reminder for reminder in self._agenda if reminder[2].state in OPEN]
            heapq.heapify(self._agenda)
        heapq.heappush(self._agenda, (job.deadline, job.number, job))

    def pump(self) -> None:
        """Begin what there is a place for."""
        engine = self._engine
        while (
            self.queue
            and len(self.running) + self._marking < engine.settings.concurrency
            and not engine.stopping
        ):
            job = self.queue.popleft()
            if job.state is QUEUED and not job.deleted and not job.deleting:
                self._begin(job)

    def reserve(self, job: Assignment) -> list[Record]:
        """Reserve a place for a job that is not durable yet, where that saves a commit; return what to keep with it."""
        engine = self._engine
        if (
            self.queue
            or len(engine.commits)  # a job with a lower number may be on its way to the disk
            or len(self.running) + self._marking >= engine.settings.concurrency
        ):
            return []
        self._marking += 1
        self._reserved.add(job.number)
        return [BegunRecord(job.number)]

    def redeem(self, job: Assignment) -> bool:
        """The job's way to the disk is over: give its place back; return whether it had one."""
        if job.number not in self._reserved:
            return False
        self._reserved.discard(job.number)
        self._marking -= 1
        return True

    def _begin(self, job: Assignment) -> None:
        job.state = MARKING
        self._marking += 1
        self._engine.commits.commit(
            BegunRecord(job.number),
            then=partial(self._marked, job),
            otherwise=partial(self._not_marked, job),
        )

    def _marked(self, job: Assignment) -> None:
        self._marking -= 1
        if job.state is MARKING and not job.deleted:
            self.start(job, remind=False)
        self.pump()

    def _not_marked(self, job: Assignment, reason: str) -> None:
        self._marking -= 1
        self._engine.store_failed(reason)
        if job.state is MARKING:
            self.end(job, bodies.fault(f"the worker cannot store that the job begins: {reason}"))
        self.pump()

    def start(self, job: Assignment, *, remind: bool = True) -> None:
        """Begin a job; that it does is kept."""
        if remind:
            self.remind(job)
        self._run(job, self._engine.now)
        self._engine.out.append(Start(job.uuid, job.task, job.body, job.client))

    def _run(self, job: Assignment, began: float) -> None:
        engine = self._engine
        job.state, job.began = RUNNING, began
        limit = engine.time_limits.get(job.task)
        if limit is not None and began + limit < job.deadline:
            job.deadline = began + limit
            self.remind(job)
        self.running[job.uuid] = job
        if engine.observed:
            engine.report(JobStarted(job.uuid, job.task))

    # --- what a task says

    def progress(self, uuid: str, progress: Progress) -> None:
        """Pass on what a task tells, if anybody waits for it still."""
        engine, job = self._engine, self.running.get(uuid)
        if job is None or job.state is not RUNNING or job.deleted:
            return
        if progress.event_type == "progress" and len(job.messages) < engine.settings.messages:
            job.messages = [*job.messages, progress.message]
        if engine.connection.registered:
            engine.taken.say(uuid)
            body = bodies.event(engine.name, engine.service, uuid, job.task, progress, engine.now)
            engine.out.append(Send(Event(uuid, 200, body, client=job.client)))

    def stream(self, uuid: str, body: bytes) -> None:
        """Pass on a piece of what a task sends."""
        engine, job = self._engine, self.running.get(uuid)
        open_to_it = job is not None and job.state is RUNNING and not job.deleted
        if job is not None and open_to_it and engine.connection.registered:
            engine.taken.say(uuid)
            engine.out.append(Send(Stream(uuid, 200, body, client=job.client)))

    def ended(self, uuid: str, outcome: Outcome) -> None:
        """A task has ended."""
        self.abandoned.discard(uuid)
        self._overdue.pop(uuid, None)
        job = self.running.pop(uuid, None)
        if job is not None and job.state is RUNNING and not job.deleted:
            self.end(job, outcome)
        self.pump()
        self._engine.drain()

    # --- ends

    def end(self, job: Assignment, outcome: Outcome) -> None:
        """Give an open job its end; when that is durable the client is told."""
        engine = self._engine
        if job.state not in OPEN or job.deleted:
            return
        if job.deleting:
            job.outcome = job.outcome or outcome  # counts if the deletion fails
            return
        body = self._compose(job, outcome)
        job.state, job.ended_at, job.result_octets = ENDING, engine.now, len(body)
        record = ResultRecord(job.number, body, engine.now, len(body), bool(job.failure), job.fault)
        engine.commits.commit(
            record, then=partial(self._ended, job, body), otherwise=partial(self._not_stored, job)
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

    def _not_stored(self, job: Assignment, reason: str) -> None:
        """Store and send a failure instead of a result that cannot be stored; send no result that is not durable."""
        engine = self._engine
        engine.store_failed(reason)
        if job.state is not ENDING or job.deleted:
            return
        why = f"the worker cannot store the result: {reason}"
        if not job.failure.startswith(why[:40]):
            job.state = RUNNING
            self.end(job, bodies.fault(why))
        else:  # not even the failure can be stored
            self._ended(job, self._compose(job, bodies.fault(why)))

    def _ended(self, job: Assignment, body: bytes) -> None:
        engine = self._engine
        if job.deleted or job.state is not ENDING:
            return
        if job.failure:
            engine.jobs.failed += 1
        else:
            engine.jobs.completed += 1
        seconds = 0.0 if job.began is None else round(job.ended_at - job.began, 6)
        engine.report(JobEnded(job.uuid, job.task, seconds, job.failure))
        job.state = DONE
        engine.jobs.settle(job)
        if not engine.connection.registered:
            self.owed[job.uuid] = None
        else:
            self.tell(job, body)
        engine.drain()

    def tell(self, job: Assignment, body: bytes) -> None:
        """Send a result to whoever posted the job."""
        engine = self._engine
        engine.taken.supersede(job.uuid)
        engine.out.append(Send(Response(job.uuid, self.status(job), body, client=job.client)))
        if not engine.connection.introduced:
            # A deployed broker hands on what it is given, but its clients ask when they hear this.
            done = Progress(message="completed", status="completed", event_type="result_ready")
            event = bodies.event(engine.name, engine.service, job.uuid, job.task, done, engine.now)
            engine.out.append(Send(Event(job.uuid, 200, event, client=job.client)))

    def status(self, job: Assignment) -> int:
        """Return the status of a result: a deployed broker's clients take all but 200 for the end of all parts."""
        return 500 if job.fault and self._engine.connection.introduced else 200

    def tell_owed(self) -> None:
        """Send the results that a broker has not asked for, though it had the time."""
        for uuid in list(self.owed):
            job = self._engine.jobs.by_uuid.get(uuid)
            if job is not None and not job.deleted:
                self._engine.out.append(Load(job.number, uuid, job.client))
        self.owed.clear()

    # --- time

    def tick(self) -> None:
        """End what is late, and take its place where its task does not heed that."""
        engine = self._engine
        while self._agenda and self._agenda[0][0] <= engine.now:
            self._late(heapq.heappop(self._agenda)[2])
        for uuid, until in list(self._overdue.items()):
            if until <= engine.now and len(self.abandoned) < engine.settings.abandoned:
                del self._overdue[uuid]
                if self.running.pop(uuid, None) is None:
                    continue
                self.abandoned.add(uuid)
                engine.out.append(Abandon(uuid))
        self.pump()

    def _late(self, job: Assignment) -> None:
        now = self._engine.now
        if job.state not in OPEN or job.deadline > now:
            return
        if job.began is None:
            cause = f"did not begin within {job.deadline - job.accepted_at:g} s"
        else:
            cause = f"did not end within {job.deadline - max(job.accepted_at, self._limited(job)):g} s"
            self.cancel(job, cause)
        self.end(job, bodies.failure(cause, "timeout"))

    def _limited(self, job: Assignment) -> float:
        """Return from when the deadline of a job that runs counts."""
        limit = self._engine.time_limits.get(job.task)
        began = job.began or 0.0
        return began if limit is not None and abs(job.deadline - began - limit) < 1e-6 else 0.0

    def cancel(self, job: Assignment, reason: str) -> None:
        """Tell the task of a job that runs that nobody waits for it, and give it a last respite."""
        if job.uuid in self.running and job.uuid not in self._overdue:
            self._overdue[job.uuid] = self._engine.now + self._engine.settings.grace_s
            self._engine.out.append(Cancel(job.uuid, reason))
