"""What is late: jobs without a worker, jobs without a result, workers that are waited for, answers that are owed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specwire.runtime.norfab.job import OVER, OWED, WAITING, Job, Task
from specwire.runtime.norfab.workers import Worker

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine

ABSENT = "does not come back"
POLL_TURN_S = 1.0
"""How often it is looked up which workers are to be asked."""


class Timekeeper:
    """Does what is due."""

    __slots__ = ("_engine", "_polled_at")

    def __init__(self, engine: BrokerEngine) -> None:
        self._engine = engine
        self._polled_at = engine.now

    def tick(self) -> None:
        """Ask workers for what they owe, and end what waited too long."""
        for due, job, task in self._engine.jobs.due():
            if due == "deadline":
                self._overdue(job)
            elif due == "queue":
                self._expired(job)
            elif task is not None and task.state is not WAITING and self._engine.registry.awaits(task):
                self._engine.dispatcher.lost(task, ABSENT)
        if self._engine.now - self._polled_at >= POLL_TURN_S:
            self._polled_at = self._engine.now
            for worker in self._engine.registry.workers.values():
                self._poll(worker)

    def _poll(self, worker: Worker) -> None:
        before = self._engine.now - self._engine.settings.poll_s
        overdue = [task for task in worker.tasks.values() if task.state in OWED and task.asked_at <= before]
        for task in overdue[: self._engine.settings.polls_a_tick]:
            self._engine.dispatcher.ask(task)

    def _overdue(self, job: Job) -> None:
        self._engine.dispatcher.unqueue(job)
        waited = f"within {job.deadline - job.accepted_at:g} s"
        if not job.tasks:
            self._engine.jobs.fail_unassigned(job, 408, _nobody(job, waited))
            return
        for task in list(job.tasks.values()):
            if task.state not in OVER:
                came = task.state is not WAITING
                self._engine.cancel(task)
                cause = f"no result {waited}" if came else _stayed_away(task, waited)
                self._engine.jobs.fail(task, 408, cause)

    def _expired(self, job: Job) -> None:
        if job.queued_until > self._engine.now:
            return  # it was given back to the queue meanwhile
        waited = f"within {self._engine.settings.queue_s:g} s"
        if not job.tasks:
            self._engine.dispatcher.unqueue(job)
            self._engine.jobs.fail_unassigned(job, 408, _nobody(job, waited))
        for task in list(job.tasks.values()):
            if task.state is WAITING:
                self._engine.dispatcher.unqueue(job)
                self._engine.jobs.fail(task, 408, _stayed_away(task, waited))


def _nobody(job: Job, waited: str) -> str:
    return f"no worker of {job.service} for {job.target!r} {waited}"


def _stayed_away(task: Task, waited: str) -> str:
    who = task.slot if task.job.wanted.kind == "names" else "another worker"
    return f"{who} did not come {waited}"
