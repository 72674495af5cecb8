"""What was stored becomes jobs again when a worker begins, after a crash or a stop.

What had ended is kept to be asked for. What had begun has no end, and nobody knows how far it came: it ends now with a
failure that says so. What had not begun is held until the broker asks for it: if it does not, it has given up the
job or given it to another worker, and to run it then would be to run it twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from specwire.runtime.norfab.bodies import BodyError, PostBody, read_post
from specwire.runtime.norfab.worker import bodies
from specwire.runtime.norfab.worker.assignment import Assignment, State
from specwire.runtime.norfab.worker.records import (
    BegunRecord,
    DeletedRecord,
    ForgottenRecord,
    JobRecord,
    Record,
    ResultRecord,
)

if TYPE_CHECKING:
    from specwire.runtime.norfab.worker.engine import WorkerEngine

INTERRUPTED = "the worker ended while it ran this job, and began anew: how far the job came is not known"
NOT_WANTED = "the worker ended before it began this job, and the broker has not asked for it since"


class _Stored:
    """The records of a store, the latest of each kind and uuid."""

    def __init__(self, records: Iterable[Record], begun: int) -> None:
        self.begun = begun
        self.jobs: dict[int, JobRecord] = {}
        self.results: dict[int, ResultRecord] = {}
        self.deleted: dict[int, DeletedRecord] = {}
        for record in records:
            self._take(record)

    def _take(self, record: Record) -> None:
        match record:
            case JobRecord():
                self.jobs[record.number] = record
            case BegunRecord():
                self.begun = max(self.begun, record.number)
            case ResultRecord():
                self.results[record.number] = record
            case DeletedRecord():
                self.deleted[record.number] = record
            case ForgottenRecord():
                for place in (self.jobs, self.results, self.deleted):
                    place.pop(record.number, None)


def restore(engine: WorkerEngine, records: Iterable[Record], begun: int) -> None:
    """Make jobs of what was stored; before anything else is done with the engine."""
    stored = _Stored(records, begun)
    jobs = sorted(stored.jobs.values(), key=lambda job: job.number)
    engine.jobs.numbered = max([stored.begun, *(job.number for job in jobs)])
    ended: list[Assignment] = []
    held: list[JobRecord] = []
    for record in jobs:
        job = _read(engine, record)
        if job.uuid in engine.jobs.by_uuid:
            continue  # an older one was forgotten, which was not kept
        engine.jobs.add(job)
        if _take_end(job, stored):
            ended.append(job)
        elif record.held or record.number > stored.begun:
            job.state = State.HELD
            engine.execution.remind(job)
            if not record.held:
                held.append(job.record)
        else:
            engine.execution.end(job, bodies.fault(INTERRUPTED))
    if held:
        engine.commits.commit(*held, otherwise=engine.store_failed)
    for job in sorted(ended, key=lambda job: job.ended_at):
        engine.jobs.settle(job)


def _read(engine: WorkerEngine, record: JobRecord) -> Assignment:
    try:
        said = read_post(record.body)
    except BodyError:  # the body of an ended job is not kept
        said = PostBody()
    return Assignment(record, record.accepted_at + engine.patience_s(said))


def _take_end(job: Assignment, stored: _Stored) -> bool:
    """Give a job the end that was stored; False where there is none."""
    deleted, result = stored.deleted.get(job.number), stored.results.get(job.number)
    if deleted is not None:
        job.deleted, job.ended_at = True, deleted.at
    elif result is not None:
        job.ended_at, job.result_octets = result.ended_at, result.octets
        job.failure, job.fault = "failed" if result.failed else "", result.fault
    else:
        return False
    job.state = State.DONE
    return True


def let_go(engine: WorkerEngine) -> None:
    """The broker had the time to ask for what it is owed: end what it did not ask for."""
    for job in list(engine.jobs.by_uuid.values()):
        if job.state is State.HELD:
            engine.execution.end(job, bodies.fault(NOT_WANTED))
