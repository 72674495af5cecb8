"""What was stored becomes jobs again when a broker begins, after a crash or somewhere else.

What had ended is kept to be asked for; the bodies of its results stay in the store. What had not is waited for: the worker that had it is asked when it registers
(nobody else knows whether it arrived there); if it does not register in time it is lost like any other. What no
worker had waits anew.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from specwire.runtime.norfab import bodies
from specwire.runtime.norfab.bodies import BodyError, PostBody
from specwire.runtime.norfab.job import Job, Outcome, State
from specwire.runtime.norfab.names import InvalidNameError, Target, read_target
from specwire.runtime.norfab.records import (
    AssignedRecord,
    DeletedRecord,
    ForgottenRecord,
    HeldResult,
    JobRecord,
    Record,
    ResultRecord,
    TaskRecord,
    WorkerRecord,
)

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine


class _Stored:
    """The records of a store, the latest of each kind and key."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobRecord] = {}
        self.parts: dict[str, dict[str, TaskRecord]] = {}
        self.results: dict[str, dict[str, HeldResult]] = {}
        self.workers: dict[str, WorkerRecord] = {}
        self.deleted: dict[str, DeletedRecord] = {}

    def take(self, record: Record | HeldResult) -> None:
        """Take the next record, in the order of writing."""
        match record:
            case JobRecord():
                self._drop(record.uuid)  # of a job with this uuid that was refused
                self.jobs[record.uuid] = record
                self.parts[record.uuid] = {part.slot: part for part in record.tasks}
            case AssignedRecord():
                self.parts.setdefault(record.uuid, {}).update({part.slot: part for part in record.tasks})
            case ResultRecord():
                octets = len(record.body)
                held = HeldResult(record.uuid, record.slot, record.status, octets, record.ended_at)
                self.results.setdefault(record.uuid, {})[record.slot] = held
            case HeldResult():
                self.results.setdefault(record.uuid, {})[record.slot] = record
            case WorkerRecord():
                self.workers[record.uuid] = record
            case DeletedRecord():
                self.deleted[record.uuid] = record
                self._drop(record.uuid)
            case ForgottenRecord():
                self.deleted.pop(record.uuid, None)
                self.workers.pop(record.uuid, None)
                self._drop(record.uuid)

    def _drop(self, uuid: str) -> None:
        for place in (self.jobs, self.parts, self.results):
            place.pop(uuid, None)


def restore(engine: BrokerEngine, records: Iterable[Record | HeldResult]) -> None:
    """Make jobs of what was stored; before anything else is done with the engine."""
    stored = _Stored()
    for record in records:
        stored.take(record)
    for uuid in {*stored.parts, *stored.results} - {*stored.jobs, *stored.deleted}:
        engine.commits.commit(ForgottenRecord(uuid, "refused"), otherwise=engine.store_failed)
    for worker in stored.workers.values():
        engine.expected.expect(worker.name, worker.service, engine.now + engine.settings.expiry_s)
    for uuid, deleted in stored.deleted.items():
        tombstone = JobRecord(uuid, b"", "", deleted.service, "all", b"", deleted.at, deleted.at)
        engine.jobs.restore_deleted(deleted, Job.from_record(tombstone, Target("all")))
    ended = []
    for uuid, record in stored.jobs.items():
        job = _read(record)
        _take_parts(engine, job, stored.parts.get(uuid, {}), stored.results.get(uuid, {}))
        if job.ended:
            ended.append(job)
        else:
            _wait(engine, job)
    for job in sorted(ended, key=lambda job: job.ended_at):
        at = job.ended_at
        engine.jobs.settle(job)
        job.ended_at = at


def _read(record: JobRecord) -> Job:
    try:
        wanted, said = read_target(record.target), bodies.read_post(record.body)
    except (InvalidNameError, BodyError):  # an older broker took what this one would not
        wanted, said = Target("all"), PostBody()
    return Job.from_record(record, wanted, said.task, said.resources)


def _take_parts(
    engine: BrokerEngine, job: Job, parts: dict[str, TaskRecord], results: dict[str, HeldResult]
) -> None:
    job.durable = True
    job.told = bool(parts)
    engine.jobs.add(job)
    for slot in {**parts, **results}:
        part = parts.get(slot, TaskRecord(slot, "", 0))
        task = job.add(slot, part.worker, part.attempt)
        task.kept = task.restored = part.attempt
        task.state = State.SENT if part.attempt else State.WAITING
        if slot in results:
            held = results[slot]
            task.result, task.state = Outcome(held.status, None, held.octets, held.ended_at), State.DONE
            job.open -= 1
            job.result_octets += held.octets
            job.ended_at = max(job.ended_at, held.ended_at)
    engine.jobs.count(job)


def _wait(engine: BrokerEngine, job: Job) -> None:
    """Let what has not ended wait for its workers."""
    if not job.tasks:
        engine.dispatcher.assign(job)
        return
    for task in job.tasks.values():
        if task.state is State.SENT:
            engine.dispatcher.await_return(task)
        elif task.state is State.WAITING:
            engine.dispatcher.await_worker(task)
