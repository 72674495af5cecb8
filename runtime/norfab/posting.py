"""POST: a job is checked, made durable, and only then acknowledged and given to workers.

A POST with the uuid of a job that is known is acknowledged again and never run again; what has a result is sent again.
Bad input gets an answer that says what is wrong, with status 400; a broker that has too much to do says 500, after which a
client may try again.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from specwire.runtime.norfab import bodies
from specwire.runtime.norfab.actions import Report
from specwire.runtime.norfab.bodies import BodyError, PostBody
from specwire.runtime.norfab.commands import Post, Response
from specwire.runtime.norfab.events import JobAccepted, Refused
from specwire.runtime.norfab.job import Job
from specwire.runtime.norfab.names import InvalidNameError, Target, check_service, check_uuid, read_target
from specwire.runtime.norfab.records import JobRecord

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine


class Posting:
    """Takes jobs in."""

    __slots__ = ("_engine",)

    def __init__(self, engine: BrokerEngine) -> None:
        self._engine = engine

    def post(self, peer: bytes, user: str, command: Post) -> None:
        """Take a job, or say why not."""
        engine = self._engine
        try:
            check_uuid(command.uuid)
            if command.service not in engine.registry.services:
                check_service(command.service)
            wanted = read_target(command.target)
            said = bodies.read_post(command.body)
        except (InvalidNameError, BodyError) as error:
            self.refuse(peer, command, 400, str(error))
            return
        known = engine.jobs.by_uuid.get(command.uuid)
        if not engine.access.may_call(user, command.service, said.task):
            self.refuse(
                peer, command, 400, f"{user or 'this client'} may not call {said.task!r} of {command.service}"
            )
        elif known is not None:
            self._again(peer, user, command, known)
        elif full := self._too_much(peer, user, command):
            self.refuse(peer, command, 500, full)
        else:
            self._take(self._make_job(peer, user, command, wanted, said))

    def _make_job(self, peer: bytes, user: str, command: Post, wanted: Target, said: PostBody) -> Job:
        settings, now = self._engine.settings, self._engine.now
        patience = min(said.timeout_s or settings.job_s, settings.longest_job_s)
        return Job.of(
            command.uuid,
            peer,
            user,
            command.service,
            command.target or "all",
            command.body,
            now,
            now + patience,
            wanted,
            said.task,
            said.resources,
        )

    def _take(self, job: Job) -> None:
        engine = self._engine
        engine.jobs.add(job)
        engine.dispatcher.assign(job)
        record = job.record
        engine.commits.commit(
            record,
            then=partial(self._accepted, job, record),
            otherwise=partial(self._not_stored, job),
            refusable=True,
        )

    def _accepted(self, job: Job, record: JobRecord) -> None:
        if not job.deleted:
            engine = self._engine
            workers = tuple([part.slot for part in record.tasks])
            accepted = JobAccepted(job.uuid, job.user, job.client, job.service, job.task, workers)
            engine.out.append(Report(accepted))
            engine.dispatcher.launch(job, record.tasks)

    def _not_stored(self, job: Job, reason: str) -> None:
        self._engine.store_failed(reason)
        body = bodies.refused(job.uuid, job.target, job.service, f"the broker cannot store the job: {reason}")
        for client in job.listeners:
            self._engine.to_client(client, Response(job.uuid, 500, body, job.service))
        self._engine.jobs.withdraw(job)

    def _too_much(self, peer: bytes, user: str, command: Post) -> str:
        """Return why a new job is not taken now; empty where it is."""
        engine, settings = self._engine, self._engine.settings
        jobs, service = engine.jobs, engine.registry.services.get(command.service)
        octets = len(command.body)
        if engine.stopping:
            return "the broker stops"
        if engine.refusing:
            return f"the broker cannot store the job: {engine.refusing}"
        if octets > settings.body_octets:
            return f"a body has up to {settings.body_octets} octets"
        if engine.clients.open_jobs(peer, user) >= settings.jobs_per_client:
            return f"a client has up to {settings.jobs_per_client} unfinished jobs"
        if jobs.parts >= settings.parts:
            return "the broker has too many unfinished parts of jobs"
        if jobs.open >= settings.jobs or jobs.octets + octets > settings.job_octets:
            return "the broker has too many unfinished jobs"
        if service is not None and service.waiting >= settings.waiting_per_service:
            return f"too many jobs wait for {command.service}"
        if len(engine.commits) >= settings.uncommitted:
            return "the disk is behind"
        return ""

    def _again(self, peer: bytes, user: str, command: Post, job: Job) -> None:
        """Acknowledge a job that is known; nothing runs again."""
        engine = self._engine
        if job.service != command.service or not engine.access.may_see(user, job.user):
            self.refuse(peer, command, 400, "the uuid is that of another job")
        elif job.deleted:
            self.refuse(peer, command, 400, "the job was deleted")
        elif not engine.answers.listen(job, peer, user):
            self.refuse(peer, command, 500, "too many clients wait for the job")
        elif job.durable:
            engine.answers.acknowledge(job, peer, list(job.tasks.values()), pending=False)

    def refuse(self, peer: bytes, command: Post, status: int, why: str) -> None:
        """Tell a client that its job is not taken."""
        self._engine.report(Refused(peer, why))
        body = bodies.refused(command.uuid, command.target, command.service, why)
        self._engine.to_client(peer, Response(command.uuid, status, body, command.service))
