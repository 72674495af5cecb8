"""Engine of the worker: commands in, actions out; no socket, file, thread, clock or randomness.

Parts: `Connection` (registration, keepalives, the list of brokers), `Answers` (POST, GET, DELETE, PUT),
`DelayedAcks`, `Execution` (what runs when, and results), `Jobs` (the table), `Management`, and
`PendingCommits` (what follows when a record is durable).

`now` is seconds since the epoch, and never decreases while the engine exists. No message makes a method
raise. Call `restore` once with the stored records, then `open`, then anything in any order. After `stop`,
the last action is `Stopped`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from specwire.runtime.norfab import commands
from specwire.runtime.norfab.bodies import PostBody
from specwire.runtime.norfab.commands import Command
from specwire.runtime.norfab.names import check_service, worker_name
from specwire.runtime.norfab.pendingcommits import PendingCommits, StoreRecovered
from specwire.runtime.norfab.worker import bodies
from specwire.runtime.norfab.worker.actions import Action, Report, Stopped
from specwire.runtime.norfab.worker.answers import Answers
from specwire.runtime.norfab.worker.assignment import OPEN, Assignment, State
from specwire.runtime.norfab.worker.bodies import Outcome, Progress
from specwire.runtime.norfab.worker.connection import Connection
from specwire.runtime.norfab.worker.delayedacks import DelayedAcks
from specwire.runtime.norfab.worker.events import (
    Dropped,
    Happening,
    JobsGivenBack,
    StoreFailed,
)
from specwire.runtime.norfab.worker.execution import Execution
from specwire.runtime.norfab.worker.jobs import Jobs
from specwire.runtime.norfab.worker.limits import WorkerSettings
from specwire.runtime.norfab.worker.management import Management
from specwire.runtime.norfab.worker.records import ForgottenRecord, Record
from specwire.runtime.norfab.worker.restoring import end_held, restore

Order = Literal["", "disconnect", "restart", "shutdown"]
STOPPED = "the worker was stopped before the job ended"


class WorkerEngine:
    """Engine of one worker.

    Args:
        name: its name and routing id.
        service: the service that it offers.
        settings: bounds and times.
        brokers: endpoints for messages to people; `Connect` has an index of this list.
        resources: the resources that it manages.
        time_limits: seconds by task, for tasks that have their own limit.
        about: further entries for `show_worker`.
        tasks: returns the answer to `list_tasks`.
        observed: also report that a job was accepted and that it begins, not only its end.

    Attributes:
        now: the time of the current call.
        out: the actions of the current call.
        stopping: no job is accepted or begun any more.
        refusing: why the store accepts no new job at present; empty if it does.

    Raises:
        InvalidNameError: the name or the service is invalid.
    """

    def __init__(
        self,
        name: str,
        service: str,
        settings: WorkerSettings | None = None,
        *,
        now: float,
        brokers: Sequence[str] = ("",),
        resources: Sequence[str] = (),
        time_limits: Mapping[str, float] | None = None,
        about: Mapping[str, Any] | None = None,
        tasks: Callable[[], list[dict[str, Any]]] = list,
        observed: bool = True,
    ) -> None:
        self.name, self.service = worker_name(name.encode("utf-8", "surrogatepass")), check_service(service)
        self.settings = settings or WorkerSettings()
        self.time_limits = time_limits or {}
        self.observed = observed
        self.now = self.started = now
        self.out: list[Action] = []
        self.resources = tuple(dict.fromkeys(resources))
        self.dropped = 0
        self.stopping = self._stopped = False
        self.order: Order = ""
        self._stop_reason, self._restarts, self._drain_until = "", False, 0.0
        self._ticked_at: float | None = None
        self._settled = True
        self.commits = PendingCommits(self.out)
        self.refusing = ""
        self.jobs = Jobs(self)
        self.brokers = tuple(brokers)
        self.connection = Connection(self)
        self.execution = Execution(self)
        self.answers = Answers(self)
        self.acks = DelayedAcks(self)
        self.management = Management(self, about or {}, tasks)

    # --- called by the host

    def restore(self, records: Iterable[Record], begun: int, now: float) -> list[Action]:
        """Restore the jobs of an earlier process, of which all up to number `begun` have begun."""
        self.now = now
        restore(self, records, begun)
        return self._done()

    def open(self, now: float) -> list[Action]:
        """Connect to the first broker."""
        self.now = now
        self.connection.open()
        return self._done()

    def receive(self, command: Command, now: float) -> list[Action]:
        """Handle a command of the broker."""
        self.now = now
        if self.connection.asking:
            self.connection.answer(command)
        elif self.connection.up:
            self._receive(command)
        return self._done()

    def malformed(self, reason: str, now: float) -> list[Action]:
        """Report a message that cannot be decoded."""
        self.now = now
        self._drop("malformed", reason)
        return self._done()

    def lost(self, reason: str, now: float) -> list[Action]:
        """Handle that the connection is lost, or could not be opened."""
        self.now = now
        self.connection.end(reason)
        return self._done()

    def stored(self, ticket: int, now: float) -> list[Action]:
        """Handle that each commit up to `ticket` is durable or has failed."""
        self.now = now
        self.commits.committed(ticket)
        self.drain()
        return self._done()

    def not_stored(self, ticket: int, reason: str, now: float) -> list[Action]:
        """Handle that the commit `ticket` has failed."""
        self.now = now
        self.commits.failed(ticket, reason)
        self.drain()
        return self._done()

    def store_refuses(self, reason: str, now: float) -> list[Action]:
        """Refuse new jobs with this reason until the disk works again, which an empty reason says."""
        self.now, self.refusing = now, reason
        if reason:
            self.store_failed(f"new jobs are refused, as the disk fails: {reason}")
        else:
            self.report(StoreRecovered())
        return self._done()

    def loaded(self, uuid: str, client: bytes, body: bytes | None, now: float) -> list[Action]:
        """Handle a result that was read for `client`; None if it could not be read."""
        self.now = now
        self.answers.loaded(uuid, client, body)
        return self._done()

    def progress(self, uuid: str, progress: Progress, now: float) -> list[Action]:
        """Handle progress of a task."""
        self.now = now
        self.execution.progress(uuid, progress)
        return self._done()

    def stream(self, uuid: str, body: bytes, now: float) -> list[Action]:
        """Handle a piece of a stream of a task."""
        self.now = now
        self.execution.stream(uuid, body)
        return self._done()

    def ended(self, uuid: str, outcome: Outcome, now: float) -> list[Action]:
        """Handle the end of a task."""
        self.now = now
        self.execution.ended(uuid, outcome)
        return self._done()

    def set_resources(self, resources: Sequence[str], now: float) -> list[Action]:
        """Change the resources that the worker manages."""
        self.now = now
        self.change_resources(resources)
        return self._done()

    def tick(self, now: float) -> list[Action]:
        """Do what is due. Call it several times a second."""
        before, self._ticked_at, self.now = self._ticked_at, now, now
        if before is not None and now - before > self.settings.keepalive_s:
            self.connection.excuse(now - before)
        if self._stopped:
            return self._done()
        self.connection.tick()
        self._settle_registration()
        self.acks.tick()
        self.execution.tick()
        self.jobs.forget_aged()
        if self.stopping and now >= self._drain_until:
            self._cut_off()
        self.drain()
        return self._done()

    def stop(self, now: float, reason: str = "the worker stops", *, restart: bool = False) -> list[Action]:
        """Give back jobs that have not begun, wait for those that run, leave the broker, and emit `Stopped`."""
        self.now = now
        self._stop(reason, restart=restart)
        return self._done()

    # --- messages

    def _receive(self, command: Command) -> None:
        if type(command) is commands.Disconnect:
            self.connection.end("the broker said DISCONNECT")
            return
        if not self.connection.registered:
            self._settled = False
        self.connection.hear(answers_open=type(command) is commands.Open)
        if type(command) is commands.Post:  # the most frequent command
            self.answers.post(command)
            return
        match command:
            case commands.Keepalive():
                self.connection.keepalives_in += 1
            case commands.Open():
                pass
            case commands.Get():
                self.answers.get(command)
            case commands.Delete():
                self.answers.delete(command)
            case commands.Put():
                self.answers.put(command)
            case commands.Mmi():
                self.management.call(command)
            case _:
                self._drop("unexpected", f"no broker sends {type(command).__name__.upper()} to a worker")

    def _settle_registration(self) -> None:
        """End what the broker has not asked for within `hold_s` after a registration."""
        connection = self.connection
        if (
            self._settled
            or not connection.registered
            or self.now - connection.registered_at < self.settings.hold_s
        ):
            return
        self._settled = True
        end_held(self)
        self.execution.send_owed()

    # --- called by the parts

    def time_limit_s(self, posted: PostBody) -> float:
        """Return the time limit of a job, in seconds."""
        return min(posted.timeout_s or self.settings.job_s, self.settings.longest_job_s)

    def change_resources(self, resources: Sequence[str]) -> None:
        """Change the resources, and send them to the broker."""
        changed = tuple(dict.fromkeys(resources))
        if changed != self.resources:
            self.resources = changed
            self.connection.introduce()

    def act_on_orders(self) -> None:
        """Carry out an order of management, whose answer was sent."""
        order, self.order = self.order, ""
        if order == "disconnect":
            self.connection.leave()
            self.connection.end("management said disconnect")
        elif order:
            self._stop(f"management said {order}", restart=order == "restart")

    def report(self, happening: Happening) -> None:
        """Report an event to the host."""
        self.out.append(Report(happening))

    def store_failed(self, reason: str) -> None:
        """Report that a record could not be stored or read."""
        self.report(StoreFailed(reason))

    def _drop(self, kind: Literal["malformed", "unexpected"], reason: str) -> None:
        self.dropped += 1
        self.report(Dropped(kind, reason))

    # --- stopping

    def _stop(self, reason: str, *, restart: bool) -> None:
        if self.stopping:
            return
        self.stopping, self._stop_reason, self._restarts = True, reason, restart
        self._drain_until = self.now + self.settings.drain_s
        self.give_back([job for job in self.execution.queue if job.state is State.QUEUED])
        self.execution.queue.clear()
        self.drain()

    def give_back(self, jobs: Sequence[Assignment]) -> None:
        """Forget jobs that have not begun; before a restart, hold them.

        After DISCONNECT, the broker gives forgotten ones to other workers.
        """
        if not jobs:
            return
        if self._restarts:
            for job in jobs:
                job.state = State.HELD
            self.commits.commit(*(job.record for job in jobs), otherwise=self.store_failed)
            return
        for job in jobs:
            self.jobs.remove(job)
        records = [ForgottenRecord(job.number) for job in jobs]
        self.commits.commit(*records, otherwise=self.store_failed)
        self.report(JobsGivenBack(tuple(job.uuid for job in jobs)))

    def _cut_off(self) -> None:
        """End the jobs that still run. Their tasks are cancelled, and not waited for."""
        for job in list(self.execution.running.values()):
            if job.state in OPEN:
                self.execution.cancel(job, STOPPED)
                self.execution.end(job, bodies.fault(STOPPED))
        self.execution.running.clear()

    def drain(self) -> None:
        """If the worker stops: leave the broker when nothing runs and everything is durable."""
        execution = self.execution
        if not self.stopping or self._stopped or execution.running:
            return
        if len(self.commits) and self.now < self._drain_until + self.settings.disk_s:
            return
        self._stopped = True
        if not self._restarts:
            self.connection.leave()
        self.connection.close()
        self.out.append(Stopped(self._restarts, self._stop_reason))

    def _done(self) -> list[Action]:
        done = self.out[:]
        self.out.clear()
        return done
