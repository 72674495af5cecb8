"""Which worker gets a job, when, and what follows when that worker is lost.

A part of a job is on its way like this: it is *held* until it is durable which worker has it, then *sent*, then the
worker *accepts* it and at last ends it. Each worker has a window of these; what is beyond waits here, and clients take
turns. A window that was full is filled again when half of it is free, or at the next tick: jobs that arrive together cost a
worker far less than one after the other, in commits above all. For a worker that is quick it is wider (`Registry.resize`).

Only a job for ``any`` worker goes to another when its worker is lost, and says so: its `attempt` counts up, in the
record, in an EVENT and in the result. Of every other the loss is told at once.

A worker that registers is asked for what it should have: after a crash of the broker nobody else knows whether a job
reached it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from specwire.runtime.norfab import bodies
from specwire.runtime.norfab.commands import Event, Get, Post, Response
from specwire.runtime.norfab.events import JobRedispatched
from specwire.runtime.norfab.job import ACCEPTED, HELD, OVER, OWED, QUEUED, SENT, WAITING, Job, Task
from specwire.runtime.norfab.records import AssignedRecord, TaskRecord
from specwire.runtime.norfab.workers import Service, Worker

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine


class Dispatcher:
    """Gives jobs to workers."""

    __slots__ = ("_engine",)

    def __init__(self, engine: BrokerEngine) -> None:
        self._engine = engine

    # --- a job finds its workers

    def assign(self, job: Job) -> bool:
        """Find workers for a job that has none; where there are none it waits, and False is returned.

        Nothing is sent: the caller has the parts stored first, and then calls `launch`.
        """
        engine, wanted = self._engine, job.wanted
        registry = engine.registry
        service = registry.service(job.service)
        if wanted.kind == "any":
            worker = registry.pick(service, job.resources)
            if worker is None:
                self._queue(service, job)
                return False
            self._place(job.add(worker.name, worker.name, 1), worker)
            return True
        if wanted.kind == "all":
            found = [] if engine.expected.awaits(job.service) else [*service.workers.values()]
            if job.resources:
                found = [worker for worker in found if worker.manages(job.resources)]
        else:
            found = [service.workers[name] for name in wanted.names if name in service.workers]
        if not found:
            self._queue(service, job)
            return False
        if service.unserved:
            service.unserved.pop(job.uuid, None)
        for worker in found[: engine.settings.tasks_per_job]:
            self._place(job.add(worker.name, worker.name, 1), worker)
        if wanted.names:
            self._await_missing(job)
        engine.jobs.count(job)
        return True

    def _await_missing(self, job: Job) -> None:
        """Let the parts of workers that were named and are not here wait for them."""
        for name in job.wanted.names:
            if name not in job.tasks:
                self._engine.registry.leave_absent(job.add(name, name))
                if not job.queued_until:
                    self._expire(job)

    def _queue(self, service: Service, job: Job) -> None:
        if job.wanted.kind == "any" and not job.resources:
            service.any_queue.push(job.owner, job)
        else:
            service.unserved[job.uuid] = job
        if not job.queued_until:
            self._expire(job)

    def _expire(self, job: Job) -> None:
        job.queued_until = self._engine.now + self._engine.settings.queue_s
        self._engine.jobs.remind(job.queued_until, "queue", job)

    def unqueue(self, job: Job) -> None:
        """Let the job wait no longer."""
        service = self._engine.registry.services.get(job.service)
        if service is not None:
            service.unserved.pop(job.uuid, None)
            service.any_queue.remove(job.owner, job)
            self._engine.registry.tidy(job.service)

    # --- a part goes to its worker

    def _place(self, task: Task, worker: Worker) -> None:
        """Give the worker a part that is not sent yet."""
        if not self._engine.registry.has_room(worker):
            task.state = QUEUED
            worker.queue.push(task.job.owner, task)
            return
        task.state = HELD
        self._engine.registry.hand(worker, task)

    def launch(self, job: Job, parts: tuple[TaskRecord, ...]) -> None:
        """The job and these parts are durable: tell the clients and send what has a place."""
        job.durable, tasks = True, job.tasks
        for part in parts:
            tasks[part.slot].kept = part.attempt
        if not parts:
            body = bodies.state(job.uuid, job.service, "PENDING")
            for client in job.listeners:
                self._engine.to_client(client, Response(job.uuid, 300, body, job.service))
            return
        self.tell(job)
        for task in [*tasks.values()]:
            self.send(task)

    def tell(self, job: Job) -> None:
        """Send the list of workers, which is durable, to the clients that wait, once."""
        if not job.told:
            job.told = True
            body = bodies.dispatched(job.uuid, job.target, job.service, [*job.tasks], job.missing())
            response = Response(job.uuid, 202, body, job.service)
            for client in job.listeners:
                self._engine.to_client(client, response)

    def send(self, task: Task) -> None:
        """Send a part that is held, if its worker is still here."""
        if task.state is not HELD or task.kept != task.attempt:
            return
        worker = self._holder(task)
        if worker is not None:
            engine, job = self._engine, task.job
            task.state, task.registration = SENT, worker.registration
            task.sent_at = task.asked_at = engine.now
            engine.to_worker(worker, Post(job.uuid, job.body, "", "", job.client))

    def _holder(self, task: Task) -> Worker | None:
        job = task.job
        worker = self._engine.registry.find(task.worker, job.service)
        return worker if worker is not None and worker.tasks.get(job.uuid) is task else None

    def ask(self, task: Task) -> None:
        """Ask the worker for a part that it owes."""
        worker = self._holder(task)
        if worker is not None and task.state in OWED:
            task.asked_at = self._engine.now
            self._engine.to_worker(worker, Get(task.job.uuid, client=task.job.client))

    def release(self, task: Task) -> None:
        """The part is off its worker's hands: take it out of wherever it is, and let the next one in."""
        engine, job = self._engine, task.job
        registry = engine.registry
        if registry.absent:
            registry.drop_absent(task)
        worker = registry.find(task.worker, job.service)
        if worker is None:
            return
        if task.state is QUEUED:
            worker.queue.remove(job.owner, task)
        if worker.tasks.get(job.uuid) is task:
            registry.take_back(worker, job.uuid)
            if len(worker.tasks) <= worker.window // 2:
                registry.resize(worker, engine.settings, engine.now)
                self.pump(worker)

    def tick(self) -> None:
        """Fill windows that are short of a few jobs, for which `release` does not, and narrow those of slow workers."""
        registry, settings, now = self._engine.registry, self._engine.settings, self._engine.now
        for worker in registry.workers.values():
            if now - worker.measured_at >= settings.ahead_s:
                registry.resize(worker, settings, now)
            if registry.has_room(worker):
                self.pump(worker)

    def pump(self, worker: Worker) -> None:
        """Fill the worker's window: first with what is meant for it, then with what any worker may do."""
        registry = self._engine.registry
        service = registry.services[worker.service]
        while (worker.queue.size or service.any_queue.size) and registry.has_room(worker):
            if worker.queue.size:
                task = worker.queue.pop()
                task.state = HELD
                registry.hand(worker, task)
                self.send(task)
                continue
            job = service.any_queue.pop()
            self._give(next(iter(job.tasks.values()), None) or job.add(worker.name, worker.name), worker)

    def _give(self, task: Task, worker: Worker) -> None:
        """Give a part to a worker, the first or another one; it is sent when that is durable."""
        before, task.worker = (task.worker if task.attempt else ""), worker.name
        task.attempt += 1
        self._place(task, worker)
        task.job.recorded = True
        self._engine.commits.commit(
            AssignedRecord(task.job.uuid, (task.record,)),
            then=partial(self._given, task, task.attempt, before),
            otherwise=partial(self._not_given, (task,)),
        )

    def _given(self, task: Task, attempt: int, before: str) -> None:
        job = task.job
        if task.attempt != attempt or task.state not in (HELD, QUEUED):
            return
        task.kept = attempt
        self.tell(job)
        if before:
            self._say_again(task, before)
        self.send(task)

    def _not_given(self, tasks: Iterable[Task], reason: str) -> None:
        """It cannot be stored who has these parts: they are not sent, and end with a failure."""
        self._engine.store_failed(reason)
        for task in tasks:
            cause = f"the broker cannot store that {task.worker} gets the job: {reason}"
            self._engine.jobs.fail(task, 500, cause)

    def _say_again(self, task: Task, before: str) -> None:
        job = task.job
        self._engine.report(JobRedispatched(job.uuid, before, task.worker, task.attempt))
        message = f"given to {task.worker} (attempt {task.attempt}): {before} does not have it any more"
        body = bodies.progress(job.uuid, job.service, task.worker, job.task, message)
        for client in job.listeners:
            self._engine.to_client(client, Event(job.uuid, 200, body, job.service))

    # --- workers come and go

    def welcome(self, worker: Worker) -> None:
        """A worker has registered: it gets what waits for it, and is asked for what it should have."""
        for task in list(self._engine.registry.take_absent(worker.name, worker.service)):
            if task.state is WAITING:
                self._give(task, worker)
            elif task.state is QUEUED:
                self._place(task, worker)
                self.send(task)
            else:
                worker.tasks[task.job.uuid] = task
        self._engine.registry.account(worker)
        for task in list(worker.tasks.values()):
            if task.state in OWED:
                self.ask(task)
            else:
                self.send(task)
        self.serve_waiting(worker)
        self.pump(worker)

    def serve_waiting(self, worker: Worker) -> None:
        """Give a worker that is new, or manages more than before, the jobs that waited for one like it."""
        service = self._engine.registry.service(worker.service)
        for job in list(service.unserved.values()):
            if not worker.manages(job.resources) or (
                job.wanted.names and worker.name not in job.wanted.names
            ):
                continue
            task = next(iter(job.tasks.values()), None)
            if task is not None:  # for any worker that manages something, and was lost before
                del service.unserved[job.uuid]
                self._give(task, worker)
            else:
                self._try(job, service)

    def complete(self, name: str) -> None:
        """No worker of a service is waited for any more: jobs for all of them go to those that there are."""
        service = self._engine.registry.services.get(name)
        if service is not None:
            for job in list(service.unserved.values()):
                if not job.tasks:
                    self._try(job, service)

    def _try(self, job: Job, service: Service) -> None:
        """Give a job that waits to its workers, if they are here now."""
        if self.assign(job):
            service.unserved.pop(job.uuid, None)
            records = tuple(task.record for task in job.tasks.values())
            job.recorded = True
            self._engine.commits.commit(
                AssignedRecord(job.uuid, records),
                then=partial(self._relaunch, job, records),
                otherwise=partial(self._not_given, tuple(job.tasks.values())),
            )

    def _relaunch(self, job: Job, parts: tuple[TaskRecord, ...]) -> None:
        """A job that waited has workers, durably."""
        if not job.deleted:
            self.launch(job, parts)

    def set_aside(self, worker: Worker) -> None:
        """The worker was told to register again: what it has waits for it."""
        for task in [*worker.tasks.values(), *worker.queue]:
            self.await_return(task)

    def await_return(self, task: Task) -> None:
        """Let a part wait until its worker is back, no longer than a silent worker is borne with."""
        self._engine.registry.leave_absent(task)
        until = self._engine.now + self._engine.settings.expiry_s
        self._engine.jobs.remind(until, "absent", task.job, task)

    def await_worker(self, task: Task) -> None:
        """Let a part that no worker was sent wait for the one that was named."""
        self._engine.registry.leave_absent(task)
        self._expire(task.job)

    def lose(self, worker: Worker, cause: str) -> None:
        """The worker is gone, with all it had. (It is not registered any more.)"""
        for task in [*worker.tasks.values(), *worker.queue]:
            self.lost(task, cause)

    def lost(self, task: Task, cause: str) -> None:
        """A part is lost with its worker: another worker gets it where any will do."""
        if task.state in OVER:
            return
        self._engine.registry.drop_absent(task)
        cause = f"worker {task.worker} {cause}"
        if task.job.wanted.kind != "any":
            self._engine.jobs.fail(task, 500, cause)
        elif task.tries >= self._engine.settings.attempts:
            self._engine.jobs.fail(task, 500, f"{cause}; given up after {task.attempt} attempts")
        else:
            self._again(task)

    def _again(self, task: Task) -> None:
        """Give a part for any worker to the next one, or let it wait for one."""
        job, registry = task.job, self._engine.registry
        service = registry.service(job.service)
        worker = registry.pick(service, job.resources)
        if worker is not None:
            self._give(task, worker)
            return
        task.state = WAITING
        self._expire(job)
        self._queue(service, job)

    def give_on(self, task: Task, worker: Worker) -> bool:
        """Give a part that its worker could not do to another one; False where only this one may or can have it."""
        job, registry = task.job, self._engine.registry
        if job.wanted.kind != "any" or task.tries >= self._engine.settings.attempts:
            return False
        other = registry.pick(registry.service(job.service), job.resources, but=worker.name)
        if other is None:
            return False
        registry.take_back(worker, job.uuid)
        self._give(task, other)
        self.pump(worker)
        return True

    def not_held(self, task: Task, worker: Worker) -> None:
        """The worker says that it does not have a part that it was sent."""
        unread = task.state is SENT and task.registration == worker.registration
        if unread and self._engine.now - task.sent_at < self._engine.settings.poll_s:
            return  # deployed workers answer a question before they have looked at the job sent before it
        accepted = task.state is ACCEPTED
        self._engine.registry.take_back(worker, task.job.uuid)
        if task.job.wanted.kind == "any" or accepted or task.tries >= self._engine.settings.attempts:
            self.lost(task, "does not have the job any more" if accepted else "did not get the job")
        else:
            self._give(task, worker)
        self.pump(worker)
