"""Answers to POST, GET, DELETE and PUT.

A job that is known never starts again: its POST is acknowledged again, with the result if there is one.
Nothing is answered before it is durable. So there is no answer about a job whose record is not durable
yet; the acknowledgement follows when it is.
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
NOT_STORED = "the worker cannot store the job"


class Answers:
    """Handler of the broker's commands about jobs."""

    __slots__ = ("_engine",)

    def __init__(self, engine: WorkerEngine) -> None:
        self._engine = engine

    # --- POST

    def post(self, command: Post) -> None:
        """Store a job, or refuse it."""
        engine = self._engine
        if not self._is_uuid(command.uuid):
            return
        known = engine.jobs.by_uuid.get(command.uuid)
        if known is not None:
            self._post_again(known, command)
            return
        if engine.stopping:
            return  # after DISCONNECT, the broker gives the job to another worker
        try:
            posted = read_post(command.body)
        except BodyError as error:
            self._refuse(command, 400, str(error))
            return
        if reason := self._why_not(command):
            self._refuse(command, 500, reason)
            return
        job = self._make(command, posted)
        records = [job.record, *engine.execution.reserve(job)]
        engine.jobs.add(job)
        engine.commits.commit(
            *records,
            then=partial(self._stored, job),
            otherwise=partial(self._not_stored, job),
            refusable=True,
        )

    def _make(self, command: Post, posted: PostBody) -> Assignment:
        engine = self._engine
        record = JobRecord(
            engine.jobs.number(), command.uuid, command.client, posted.task, bytes(command.body), engine.now
        )
        return Assignment(record, engine.now + engine.time_limit_s(posted))

    def _why_not(self, command: Post) -> str:
        """Return why the worker does not accept this job now; empty if it does."""
        engine, jobs, settings = self._engine, self._engine.jobs, self._engine.settings
        if jobs.open >= settings.queue:
            return f"the worker has {jobs.open} unfinished jobs, and takes no more"
        if jobs.octets and jobs.octets + len(command.body) > settings.queue_octets:
            return f"the worker's unfinished jobs have {jobs.octets} octets, and it takes no more"
        if engine.refusing:
            return f"{NOT_STORED}: {engine.refusing}"
        if len(engine.commits) >= settings.uncommitted:
            return "the worker's disk is behind"
        return ""

    def _stored(self, job: Assignment) -> None:
        engine = self._engine
        if not engine.stopping:
            if engine.observed:
                engine.report(JobTaken(job.uuid, job.task))
            engine.acks.add(job)
        engine.execution.admit(job)

    def _not_stored(self, job: Assignment, reason: str) -> None:
        engine = self._engine
        engine.store_failed(reason)
        engine.jobs.remove(job)
        self._refuse(Post(job.uuid, b"", client=job.client), 500, f"{NOT_STORED}: {reason}")
        engine.execution.unreserve(job)
        engine.execution.pump()

    def acknowledge(self, job: Assignment) -> None:
        """Send 201: the worker has the job, durably."""
        self.reply(job.uuid, job.client, 201, self._state(job.uuid, "ACCEPTED"))

    def _post_again(self, job: Assignment, command: Post) -> None:
        """Acknowledge a job that is known."""
        if job.deleted:
            self._refuse(command, 400, DELETED)
        elif job.state is not State.STORING:
            job.client = command.client
            self.acknowledge(job)
            if job.state is State.HELD:
                self._release(job)
            elif job.state is State.UNSTORED:
                self._engine.execution.send_unstored(job, command.client)
            elif job.state is State.DONE:
                self._load(job, command.client)

    def _refuse(self, command: Post | Get, status: int, reason: str) -> None:
        """Send a failure as the result of a job that the worker does not have."""
        engine = self._engine
        engine.report(JobRefused(command.uuid, reason))
        body = bodies.result(
            engine.name, engine.service, command.uuid, "", bodies.failure(reason), (), None, engine.now
        )
        self.reply(command.uuid, command.client, status, body)

    # --- GET

    def get(self, command: Get) -> None:
        """Send the state or the result of a job."""
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
        elif job.state is State.UNSTORED:
            engine.execution.send_unstored(job, command.client)
        elif job.state is not State.STORING:
            waits = job.state in (State.HELD, State.QUEUED, State.BEGINNING)
            state = self._state(job.uuid, "PENDING" if waits else "STARTED")
            self.reply(command.uuid, command.client, 300, state)
            if job.state is State.HELD:
                self._release(job)

    def _release(self, job: Assignment) -> None:
        """Queue a held job: the broker still wants it.

        The job gets a new number: jobs begin in the order of their numbers, and the broker asks in any order.
        """
        engine, before = self._engine, job.number
        job.number, job.state = engine.jobs.number(), State.STORING
        engine.commits.commit(
            ForgottenRecord(before),
            job.record,
            *engine.execution.reserve(job),
            then=partial(engine.execution.admit, job),
            otherwise=partial(self._not_released, job, before),
        )

    def _not_released(self, job: Assignment, before: int, reason: str) -> None:
        """Hold the job as before, until the broker asks for it again."""
        engine = self._engine
        engine.store_failed(reason)
        job.number, job.state = before, State.HELD
        engine.execution.remind(job)
        engine.execution.unreserve(job)
        engine.execution.pump()

    def _load(self, job: Assignment, client: bytes) -> None:
        self._engine.execution.owed.pop(job.uuid, None)
        self._engine.out.append(Load(job.number, job.uuid, client))

    def loaded(self, uuid: str, client: bytes, body: bytes | None) -> None:
        """Send a result that was read from the store."""
        engine = self._engine
        job = engine.jobs.by_uuid.get(uuid)
        if job is None or job.deleted:
            return  # deleted or forgotten meanwhile
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
        """Delete a job, once that is durable: drop one that waits, cancel one that runs."""
        engine = self._engine
        if not self._is_uuid(command.uuid):
            return
        job = engine.jobs.by_uuid.get(command.uuid)
        not_deleted = partial(self._not_deleted, command)
        if job is None:
            body = bodies.unknown(engine.name, engine.service, command.uuid)
            self.reply(command.uuid, command.client, 400, body)
        elif job.deleted:
            self._confirm_deletion(command)
        elif job.state is State.STORING:  # first see what becomes of its record
            engine.commits.commit(then=partial(self.delete, command), otherwise=not_deleted, refusable=True)
        else:
            engine.commits.commit(
                DeletedRecord(job.number, engine.now),
                then=partial(self._deleted, command, job, job.number),
                otherwise=not_deleted,
                refusable=True,
            )

    def _deleted(self, command: Delete, job: Assignment, number: int) -> None:
        engine = self._engine
        if job.number != number:  # released meanwhile; the record belongs to its former number
            self.delete(command)
            return
        if engine.jobs.by_uuid.get(job.uuid) is job and not job.deleted:  # else it was given back meanwhile
            if job.state is State.RUNNING:
                engine.execution.cancel(job, DELETED)
            job.deleted = True
            engine.execution.owed.pop(job.uuid, None)
            engine.jobs.bury(job)
        self._confirm_deletion(command)

    def _confirm_deletion(self, command: Delete) -> None:
        self.reply(command.uuid, command.client, 200, self._state(command.uuid, "DELETED"))

    def _not_deleted(self, command: Delete, reason: str) -> None:
        self._engine.store_failed(reason)
        why = f"the worker cannot store that the job is deleted: {reason}"
        self.reply(command.uuid, command.client, 500, self._state(command.uuid, "FAILED", why))

    # --- PUT

    def put(self, command: Put) -> None:
        """Pass input to a running task."""
        job = self._engine.execution.running.get(command.uuid)
        if job is None or job.deleted or job.state not in OPEN:
            reason = f"PUT for {command.uuid[:80]!r}, which does not run"
            self._engine.report(Dropped("unexpected", reason))
        else:
            self._engine.out.append(Input(command.uuid, bytes(command.body)))

    # --- replies

    def _is_uuid(self, uuid: str) -> bool:
        try:
            check_uuid(uuid)
        except InvalidNameError as error:
            self._engine.report(Dropped("malformed", str(error)))
            return False
        return True

    def _state(self, uuid: str, status: str, error: str = "") -> bytes:
        return bodies.state(self._engine.name, self._engine.service, uuid, status, error)

    def reply(self, uuid: str, client: bytes, status: int, body: bytes) -> None:
        """Send a RESPONSE, if there is a connection."""
        self._engine.acks.drop(uuid)
        if self._engine.connection.up:
            self._engine.out.append(Send(Response(uuid, status, body, client=client)))
