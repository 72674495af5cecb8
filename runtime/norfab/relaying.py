"""What a worker says of a job, on its way to the clients.

A worker speaks of a job only while it owes it, and only for itself: anything else is dropped and reported, so no
worker reaches a client that is not waiting for it. The client's address in its message is not looked at. One result
counts for each worker and job; a second one is a double, one that comes after the job went elsewhere is late.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from specwire.runtime.norfab import bodies
from specwire.runtime.norfab.commands import Event, Response, Stream
from specwire.runtime.norfab.events import Dropped
from specwire.runtime.norfab.job import OVER, OWED, Job, State, Task
from specwire.runtime.norfab.records import EventRecord
from specwire.runtime.norfab.workers import Worker

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine

ACCEPTED = (201, 202)
IN_PROGRESS = (102, 300)
NOT_HELD = (400, 404)


class Relay:
    """Takes messages of registered workers about jobs."""

    __slots__ = ("_engine",)

    def __init__(self, engine: BrokerEngine) -> None:
        self._engine = engine

    def _owed(self, worker: Worker, command: Response | Event | Stream) -> Task | None:
        """Return the part that the worker speaks of; None, and a report, where it has no say."""
        task = worker.tasks.get(command.uuid)
        if task is not None and task.state in OWED:
            if len(command.body) <= self._engine.settings.body_octets:
                return task
            self._engine.jobs.fail(task, 500, f"worker {worker.name} sent more than a body may have")
            return None
        job = self._engine.jobs.by_uuid.get(command.uuid)
        before = None if job is None else job.tasks.get(worker.name)
        if job is None or (before is None and worker.name not in job.tasks):
            self._engine.report(Dropped(worker.peer, "forged", f"no job {command.uuid[:80]} for this worker"))
        elif before is not None and before.worker == worker.name and before.state in OVER:
            self._engine.report(Dropped(worker.peer, "double", f"{command.uuid} has ended for this worker"))
        else:
            self._engine.report(Dropped(worker.peer, "late", f"{command.uuid} is not with this worker"))
        return None

    def response(self, worker: Worker, command: Response) -> None:
        """Take a state or a result."""
        if self._engine.errands.answer(worker, command):
            return
        if command.uuid not in worker.tasks and self._engine.inquiries.answer(worker, command):
            return
        task = self._owed(worker, command)
        if task is None:
            return
        if command.status == 200:
            self._result(worker, task, command)
        elif command.status in ACCEPTED:
            self._accepted(task)
        elif command.status in IN_PROGRESS:
            self._in_progress(task, command)
        elif command.status == 500 and self._engine.dispatcher.give_on(task, worker):
            pass  # the worker had a fault of its own, or too much to do
        elif self._is_result(worker, command):
            self._result(worker, task, command)
        elif command.status in NOT_HELD:
            self._engine.dispatcher.not_held(task, worker)
        elif command.status >= 400:
            self._engine.jobs.fail(task, 500, f"worker {worker.name} answered {command.status}")
        else:
            self._engine.report(Dropped(worker.peer, "unknown", f"status {command.status} means nothing"))

    @staticmethod
    def _is_result(worker: Worker, command: Response) -> bool:
        """Whether it has an entry of the worker: deployed tasks choose their own status."""
        return command.status >= 400 and bodies.has_entry(command.body, worker.name)

    def _result(self, worker: Worker, task: Task, command: Response) -> None:
        body = bodies.own_result(command.body, worker.name, task.slot, task.attempt)
        if body is None:
            self._engine.jobs.fail(task, 500, f"worker {worker.name} answered with what is not JSON")
        else:
            status = command.status if len(task.job.tasks) == 1 else 200
            worker.ended += 1
            self._engine.jobs.end(task, status, body)

    def _accepted(self, task: Task) -> None:
        if task.state is State.ACCEPTED:
            return
        task.state = State.ACCEPTED
        job = task.job
        body = bodies.state(job.uuid, job.service, "ACCEPTED", task.slot)
        for client in job.listeners:
            self._engine.to_client(client, Response(job.uuid, 201, body, job.service))

    def _in_progress(self, task: Task, command: Response) -> None:
        """Pass on that it runs; what the worker waits for (102) in its own words."""
        task.state = State.ACCEPTED
        job = task.job
        body = bodies.state(job.uuid, job.service, "STARTED", task.slot)
        if command.status == 102 and bodies.is_object(command.body):
            body = command.body
        for client in job.listeners:
            self._engine.to_client(client, Response(job.uuid, command.status, body, job.service))

    def event(self, worker: Worker, command: Event) -> None:
        """Pass on what happens; a worker that says it has a result is asked for it."""
        kind = bodies.read_event_type(command.body)
        if kind == "result_ready" and command.uuid not in worker.tasks:
            return  # its result was here first
        task = self._owed(worker, command)
        if task is None:
            return
        if kind is None:
            self._engine.report(Dropped(worker.peer, "malformed", "the body of an EVENT is no JSON object"))
            return
        job = task.job
        if job.events < self._engine.settings.events_per_job:
            job.events += 1
            passed_on = partial(self._pass_on, job, command)
            self._engine.commits.commit(
                EventRecord(job.uuid, self._engine.now, command.body),
                then=passed_on,
                otherwise=self._engine.store_failed,
            )
        else:
            self._pass_on(job, command)
        if kind == "result_ready":
            self._engine.dispatcher.ask(task)

    def _pass_on(self, job: Job, command: Event) -> None:
        for client in job.listeners:
            self._engine.to_client(client, Event(job.uuid, command.status, command.body, job.service))

    def stream(self, worker: Worker, command: Stream) -> None:
        """Pass on a piece of a file."""
        task = self._owed(worker, command)
        if task is not None:
            job = task.job
            for client in job.listeners:
                self._engine.to_client(client, Stream(job.uuid, command.status, command.body, job.service))
