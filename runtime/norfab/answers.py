"""GET, DELETE and PUT of clients, for jobs that the broker knows.

The broker keeps results, so a GET is answered from what is durable here: first 202 with the workers, then of each its
result, or 300 while there is none; what comes later is sent when it comes. Of a job that the broker does not know the
workers are asked, see `specwire.runtime.norfab.inquiries`.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from specwire.runtime.norfab import bodies
from specwire.runtime.norfab.commands import Delete, Get, Put, Response
from specwire.runtime.norfab.events import JobDeleted, Refused
from specwire.runtime.norfab.job import OWED, Job, State, Task
from specwire.runtime.norfab.names import InvalidNameError, Target, check_service, check_uuid, read_target
from specwire.runtime.norfab.records import DeletedRecord

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine

ASK_AGAIN_S = 1.0
"""A worker is not asked more often than this for one job, however often a client asks."""


class Answers:
    """Answers questions about jobs."""

    __slots__ = ("_engine",)

    def __init__(self, engine: BrokerEngine) -> None:
        self._engine = engine

    def get(self, peer: bytes, user: str, command: Get) -> None:
        """Answer a client that asks for results."""
        wanted = self._check(peer, command)
        if wanted is None:
            return
        job = self._engine.jobs.by_uuid.get(command.uuid)
        if job is None:
            self._engine.inquiries.open(peer, user, command, wanted)
            return
        if self._denied(peer, user, command, job):
            return
        tasks = _meant(job, wanted)
        if job.tasks and not tasks:
            self.refuse(peer, command, 400, f"the job is not with {bodies.names(wanted.names)}")
        elif not self.listen(job, peer, user):
            self.refuse(peer, command, 500, "too many clients wait for the job")
        elif job.durable:
            self.acknowledge(job, peer, tasks, pending=True)

    def listen(self, job: Job, peer: bytes, user: str) -> bool:
        """Let a client hear of the job from now on; False where too many do."""
        if job.ended or peer in job.listeners:
            return True
        if len(job.listeners) >= self._engine.settings.listeners_per_job:
            for listener in [
                listener for listener in job.listeners if self._engine.clients.is_gone(listener)
            ]:
                del job.listeners[listener]
            if len(job.listeners) >= self._engine.settings.listeners_per_job:
                return False
        job.listeners[peer] = user
        return True

    def acknowledge(self, job: Job, peer: bytes, tasks: list[Task], *, pending: bool) -> None:
        """Send 202 and the results there are; with `pending` also 300 for those that there are not."""
        if not job.told:
            self._say_state(job, peer)
            return
        missing = [task.slot for task in tasks if task.state is State.WAITING]
        body = bodies.dispatched(job.uuid, job.target, job.service, [task.slot for task in tasks], missing)
        self._engine.to_client(peer, Response(job.uuid, 202, body, job.service))
        for task in tasks:
            if task.state is State.DONE:
                self._engine.results.send(peer, task)
            elif pending:
                self._say_pending(job, peer, task)

    def _say_state(self, job: Job, peer: bytes) -> None:
        """Answer for a job without workers: it waits, or it ended so."""
        for task in job.tasks.values():
            if task.state is State.DONE:
                self._engine.results.send(peer, task)
                return
        body = bodies.state(job.uuid, job.service, "PENDING")
        self._engine.to_client(peer, Response(job.uuid, 300, body, job.service))

    def _say_pending(self, job: Job, peer: bytes, task: Task) -> None:
        started = "STARTED" if task.state in (State.ACCEPTED, State.ENDING) else "PENDING"
        body = bodies.state(job.uuid, job.service, started, task.slot)
        self._engine.to_client(peer, Response(job.uuid, 300, body, job.service))
        if task.state in OWED and self._engine.now - task.asked_at >= ASK_AGAIN_S:
            self._engine.dispatcher.ask(task)

    def put(self, peer: bytes, user: str, command: Put) -> None:
        """Pass input for a job on to the workers that have it."""
        wanted = self._check(peer, command)
        if wanted is None:
            return
        job = self._engine.jobs.by_uuid.get(command.uuid)
        if job is None:
            self.refuse(peer, command, 400, "the uuid is unknown")
            return
        if self._denied(peer, user, command, job):
            return
        for task in _meant(job, wanted):
            worker = self._engine.registry.find(task.worker, job.service)
            if worker is not None and task.state in OWED and worker.tasks.get(job.uuid) is task:
                self._engine.to_worker(worker, Put(job.uuid, command.body, client=peer))

    def delete(self, peer: bytes, user: str, command: Delete) -> None:
        """Drop a job: the pending part, the running part (its workers are told to cancel), and the results."""
        if self._check(peer, command) is None:
            return
        job = self._engine.jobs.by_uuid.get(command.uuid)
        if job is None or job.service != command.service:
            self.refuse(peer, command, 400, "the uuid is unknown")
            return
        if not self._engine.access.may_see(user, job.user):
            self.refuse(peer, command, 400, "the job is another's")
            return
        record = DeletedRecord(job.uuid, job.service, self._engine.now)
        self._engine.commits.commit(
            record,
            then=partial(self._deleted, job, peer, user),
            otherwise=partial(self._not_deleted, job, peer),
            refusable=True,
        )

    def _deleted(self, job: Job, peer: bytes, user: str) -> None:
        engine = self._engine
        engine.report(JobDeleted(job.uuid, peer, user))
        if not job.deleted:
            for task in job.tasks.values():
                engine.cancel(task)
            engine.jobs.delete(job, f"deleted by client {peer.decode(errors='replace')[:80]}")
        body = bodies.state(job.uuid, job.service, "DELETED")
        engine.to_client(peer, Response(job.uuid, 200, body, job.service))

    def _not_deleted(self, job: Job, peer: bytes, reason: str) -> None:
        engine = self._engine
        engine.store_failed(reason)
        why = f"the broker cannot store that the job is deleted: {reason}"
        body = bodies.refused(job.uuid, job.target, job.service, why)
        engine.to_client(peer, Response(job.uuid, 500, body, job.service))

    def _check(self, peer: bytes, command: Get | Put | Delete) -> Target | None:
        try:
            check_uuid(command.uuid)
            check_service(command.service)
            if len(command.body) > self._engine.settings.body_octets:
                raise InvalidNameError("the body is too large")
            return read_target(command.target)
        except InvalidNameError as error:
            self.refuse(peer, command, 400, str(error))
            return None

    def _denied(self, peer: bytes, user: str, command: Get | Put, job: Job) -> bool:
        """Refuse where the job is gone or not for this client's eyes; return whether it was so."""
        if job.service != command.service:
            why = "the uuid is unknown"
        elif not self._engine.access.may_see(user, job.user):
            why = "the job is another's"
        elif job.deleted:
            why = "the job was deleted"
        else:
            return False
        self.refuse(peer, command, 400, why)
        return True

    def refuse(self, peer: bytes, command: Get | Put | Delete, status: int, why: str) -> None:
        """Tell a client that there is no answer to this.

        Nobody answers a PUT, a refused one neither: the client would take it for an answer to the job of that uuid.
        """
        self._engine.report(Refused(peer, why))
        if isinstance(command, Put):
            return
        body = bodies.refused(command.uuid, command.target, command.service, why)
        self._engine.to_client(peer, Response(command.uuid, status, body, command.service))


def _meant(job: Job, wanted: Target) -> list[Task]:
    """Return the parts that a question means: with ``all`` and ``any`` those there are."""
    if wanted.kind != "names":
        return list(job.tasks.values())
    return [job.tasks[name] for name in wanted.names if name in job.tasks]
