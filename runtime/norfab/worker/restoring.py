"""Restoring of jobs when a worker starts again, after a stop or a kill.

A job that had ended keeps its result. One that had begun ends with a failure, as nobody knows how far it
came. One that had not begun is held until the broker asks for it. If the broker does not ask, it has
given the job up, or given it to another worker, so running it could mean running it twice.
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
    """Records of a store by number, the latest of each kind."""

    def __init__(self, records: Iterable[Record], begun: int) -> None:
        self.begun = begun
        self.jobs: dict[int, JobRecord] = {}
        self.results: dict[int, ResultRecord] = {}
        self.deleted: dict[int, DeletedRecord] = {}
        for record in records:
            self._add(record)

    def _add(self, record: Record) -> None:
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
                for table in (self.jobs, self.results, self.deleted):
                    table.pop(record.number, None)


def restore(engine: WorkerEngine, records: Iterable[Record], begun: int) -> None:
    """Restore the jobs of the records. Call this before anything else."""
    stored = _Stored(records, begun)
    jobs = sorted(stored.jobs.values(), key=lambda job: job.number)
    engine.jobs.numbered = max([stored.begun, *stored.jobs, *stored.results, *stored.deleted])
    newest = {job.uuid: job.number for job in jobs}
    stale: list[ForgottenRecord] = []
    ended: list[Assignment] = []
    held: list[JobRecord] = []
    for record in jobs:
        if record.number != newest[record.uuid]:
            stale.append(ForgottenRecord(record.number))  # whose first one could not be stored
            continue
        job = _read(engine, record)
        engine.jobs.add(job)
        if _restore_end(job, stored):
            ended.append(job)
        elif record.held or record.number > stored.begun:
            job.state = State.HELD
            engine.execution.remind(job)
            if not record.held:
                held.append(job.record)
        else:
            engine.execution.end(job, bodies.fault(INTERRUPTED))
    if stale or held:
        engine.commits.commit(*stale, *held, otherwise=engine.store_failed)
    for job in sorted(ended, key=lambda job: job.ended_at):
        engine.jobs.settle(job)


def _read(engine: WorkerEngine, record: JobRecord) -> Assignment:
    try:
        posted = read_post(record.body)
    except BodyError:  # the body of an ended job is deleted
        posted = PostBody()
    return Assignment(record, record.accepted_at + engine.time_limit_s(posted))


def _restore_end(job: Assignment, stored: _Stored) -> bool:
    """Restore the end of a job; return whether it has one."""
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


def end_held(engine: WorkerEngine) -> None:
    """End the held jobs that the broker has not asked for in time."""
    for job in list(engine.jobs.by_uuid.values()):
        if job.state is State.HELD:
            engine.execution.end(job, bodies.fault(NOT_WANTED))
