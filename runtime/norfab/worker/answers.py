"""POST, GET, DELETE and PUT, as a worker answers them.

A job that is known is never begun again: its POST is acknowledged once more, with the result where there is one. While a
job waits for the disk there is no answer: the acknowledgement follows when it is durable.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from specwire.runtime.norfab.bodies import BodyError, PostBody, read_post
from specwire.runtime.norfab.commands import Delete, Get, Post, Put, Response
from specwire.runtime.norfab.names import InvalidNameError, check_uuid
from specwire.runtime.norfab.worker import bodies
from specwire.runtime.norfab.worker.actions import Input, Load, Send
from specwire.runtime.norfab.worker.assignment import OPEN, Assignment, State
from specwire.runtime.norfab.worker.events import Dropped, JobRefused, JobTaken
from specwire.runtime.norfab.worker.records import DeletedRecord, ForgottenRecord, JobRecord

if TYPE_CHECKING:
    from specwire.runtime.norfab.worker.engine import WorkerEngine

DELETED = "the job was deleted"


class Answers:
    """Answers the broker's messages about jobs."""

    __slots__ = ("_engine",)

    def __init__(self, engine: WorkerEngine) -> None:
        self._engine = engine

    # --- POST

    def post(self, command: Post) -> None:
        """Take a job, or say why not."""
        engine = self._engine
        if not self._is_uuid(command.uuid):
            return
        known = engine.jobs.by_uuid.get(command.uuid)
        if known is not None:
            self._again(known, command)
            return
        if engine.stopping:
            return  # the broker is about to hear DISCONNECT, and gives the job to another
        try:
            said = read_post(command.body)
        except BodyError as error:
            self._refuse(command, 400, str(error))
            return
        if full := self._too_much(command):
            self._refuse(command, 500, full)
            return
        job = self._make(command, said)
        records = [job.record, *engine.execution.reserve(job)]
        engine.jobs.add(job)
        engine.commits.commit(
            *records,
            then=partial(self._stored, job),
            otherwise=partial(self._not_stored, job),
            refusable=True,
        )

    def _make(self, command: Post, said: PostBody) -> Assignment:
        engine = self._engine
        record = JobRecord(
            engine.jobs.number(), command.uuid, command.client, said.task, bytes(command.body), engine.now
        )
        return Assignment(record, engine.now + engine.patience_s(said))

    def _too_much(self, command: Post) -> str:
        """Return why a new job is not taken now; empty where it is."""
        engine, settings = self._engine, self._engine.settings
        if engine.jobs.open >= settings.queue:
            return f"the worker has {engine.jobs.open} unfinished jobs, and takes no more"
        if engine.jobs.octets and engine.jobs.octets + len(command.body) > settings.queue_octets:
            return f"the worker's unfinished jobs have {engine.jobs.octets} octets, and it takes no more"
        if engine.refusing:
            return f"the worker cannot store the job: {engine.refusing}"
        if len(engine.commits) >= settings.uncommitted:
            return "the worker's disk is behind"
        return ""

    def _stored(self, job: Assignment) -> None:
        engine = self._engine
        reserved = engine.execution.redeem(job)
        if job.deleted:
            return
        if engine.stopping:
            engine.give_back([job])
            return
        if engine.observed:
            engine.report(JobTaken(job.uuid, job.task))
        engine.taken.note(job)
        if job.deleting:
            job.state = State.QUEUED  # until it is deleted, or cannot be
        elif reserved:
            engine.execution.start(job)
        else:
            engine.execution.enqueue(job)
            engine.execution.pump()

    def _not_stored(self, job: Assignment, reason: str) -> None:
        engine = self._engine
        engine.execution.redeem(job)
        engine.store_failed(reason)
        if not job.deleted:
            engine.jobs.remove(job)
            post = Post(job.uuid, b"", client=job.client)
            self._refuse(post, 500, f"the worker cannot store the job: {reason}")

    def acknowledge(self, job: Assignment) -> None:
        """Say that the worker has a job, durably."""
        self.reply(job.uuid, job.client, 201, self._state(job.uuid, "ACCEPTED"))

    def _again(self, job: Assignment, command: Post) -> None:
        """Acknowledge a job that is known; nothing runs again."""
        if job.deleted:
            self._refuse(command, 400, DELETED)
        elif job.state is not State.STORING:
            job.client = command.client
            self.acknowledge(job)
            if job.state is State.HELD:
                self.release(job)
            elif job.state is State.DONE:
                self._load(job, command.client)

    def _refuse(self, command: Post | Get, status: int, why: str) -> None:
        """Say why there is no result, as the end of this worker's part of the job."""
        engine = self._engine
        engine.report(JobRefused(command.uuid, why))
        body = bodies.result(
            engine.name, engine.service, command.uuid, "", bodies.failure(why), (), None, engine.now
        )
        self.reply(command.uuid, command.client, status, body)

    # --- GET

    def get(self, command: Get) -> None:
        """Say how a job is."""
        engine = self._engine
        if not self._is_uuid(command.uuid):
            return
        job = engine.jobs.by_uuid.get(command.uuid)
        if job is None:
            body = bodies.unknown(engine.name, engine.service, command.uuid)
            self.reply(command.uuid, command.client, 404, body)
        elif job.deleted:
            self._refuse(command, 400, DELETED)
        elif job.state is State.DONE:
            self._load(job, command.client)
        elif job.state is not State.STORING:
            waits = job.state in (State.HELD, State.QUEUED, State.MARKING)
            self.reply(
                command.uuid, command.client, 300, self._state(job.uuid, "PENDING" if waits else "STARTED")
            )
            if job.state is State.HELD:
                self.release(job)

    def release(self, job: Assignment) -> None:
        """The broker still wants a job that was kept through a restart.

        It gets a new number: jobs begin in the order of their numbers, and may be asked for in any order.
        """
        engine, before = self._engine, job.number
        job.number, job.state = engine.jobs.number(), State.STORING
        engine.commits.commit(
            ForgottenRecord(before),
            job.record,
            then=partial(self._released, job),
            otherwise=partial(self._unreleased, job, before),
        )

    def _released(self, job: Assignment) -> None:
        if job.state is not State.STORING or job.deleted:
            return
        if self._engine.stopping:
            self._engine.give_back([job])
            return
        self._engine.execution.enqueue(job)
        self._engine.execution.pump()

    def _unreleased(self, job: Assignment, before: int, reason: str) -> None:
        """Leave it where it was, until the broker asks for it once more."""
        self._engine.store_failed(reason)
        if job.state is State.STORING:
            job.number, job.state = before, State.HELD

    def _load(self, job: Assignment, client: bytes) -> None:
        self._engine.execution.owed.pop(job.uuid, None)
        self._engine.out.append(Load(job.number, job.uuid, client))

    def loaded(self, uuid: str, client: bytes, body: bytes | None) -> None:
        """Send a result that was read."""
        engine = self._engine
        job = engine.jobs.by_uuid.get(uuid)
        if job is None or job.deleted:
            return  # it was deleted or forgotten in the meantime
        if body is None:
            why = "the worker cannot read the result that it has stored"
            engine.store_failed(f"{why}: {uuid}")
            outcome = bodies.failure(why)
            body = bodies.result(engine.name, engine.service, uuid, job.task, outcome, (), None, engine.now)
        if engine.connection.registered:
            self.reply(uuid, client, engine.execution.status(job), body)
        else:
            engine.execution.owed[uuid] = None

    # --- DELETE

    def delete(self, command: Delete) -> None:
        """Drop a job that waits, cancel one that runs, purge one that has ended."""
        engine = self._engine
        if not self._is_uuid(command.uuid):
            return
        job = engine.jobs.by_uuid.get(command.uuid)
        if job is None:
            body = bodies.unknown(engine.name, engine.service, command.uuid)
            self.reply(command.uuid, command.client, 400, body)
            return
        if job.deleted:
            self._confirm_deletion(command)
            return
        if job.state is State.RUNNING:
            engine.execution.cancel(job, "the job was deleted")
        job.deleting = True
        engine.commits.commit(
            DeletedRecord(job.number, engine.now),
            then=partial(self._deleted, job, command),
            otherwise=partial(self._not_deleted, job, command),
            refusable=True,
        )

    def _deleted(self, job: Assignment, command: Delete) -> None:
        engine = self._engine
        job.deleting = False
        if not job.deleted:
            if job.state is State.RUNNING:
                engine.execution.cancel(job, "the job was deleted")
            job.deleted, job.outcome = True, None
            engine.execution.owed.pop(job.uuid, None)
            engine.jobs.bury(job)
        self._confirm_deletion(command)
        engine.drain()

    def _not_deleted(self, job: Assignment, command: Delete, reason: str) -> None:
        """Leave the job as it is; one that ended meanwhile gets its end now."""
        self._engine.store_failed(reason)
        job.deleting = False
        self.reply(command.uuid, command.client, 500, self._state(command.uuid, "FAILED"))
        outcome, job.outcome = job.outcome, None
        execution = self._engine.execution
        if outcome is not None and not job.deleted:
            execution.end(job, outcome)
        elif job.state is State.QUEUED and job not in execution.queue:
            execution.enqueue(job)
            execution.pump()

    def _confirm_deletion(self, command: Delete) -> None:
        self.reply(command.uuid, command.client, 200, self._state(command.uuid, "DELETED"))

    # --- PUT

    def put(self, command: Put) -> None:
        """Give a job that runs what its client has sent."""
        job = self._engine.execution.running.get(command.uuid)
        if job is None or job.deleted or job.state not in OPEN:
            reason = f"PUT for {command.uuid[:80]!r}, which does not run"
            self._engine.report(Dropped("unexpected", reason))
        else:
            self._engine.out.append(Input(command.uuid, bytes(command.body)))

    # --- words

    def _is_uuid(self, uuid: str) -> bool:
        try:
            check_uuid(uuid)
        except InvalidNameError as error:
            self._engine.report(Dropped("malformed", str(error)))
            return False
        return True

    def _state(self, uuid: str, status: str) -> bytes:
        return bodies.state(self._engine.name, self._engine.service, uuid, status)

    def reply(self, uuid: str, client: bytes, status: int, body: bytes) -> None:
        """Answer, where there is a broker to answer to."""
        self._engine.taken.supersede(uuid)
        if self._engine.connection.up:
            self._engine.out.append(Send(Response(uuid, status, body, client=client)))
