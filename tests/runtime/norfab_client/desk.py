"""Client engine under test: the test moves the clock, confirms commits and sends the broker's commands."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.client.actions import Action, Close, Connect, Report, Send
from specwire.runtime.norfab.client.engine import ClientEngine
from specwire.runtime.norfab.client.events import Happening, JobEnded
from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.norfab.client.records import (
    JobRecord,
    Record,
    ResultRecord,
    StateRecord,
    StoredJob,
)
from specwire.runtime.norfab.client.results import JobResult
from specwire.runtime.norfab.commands import Command, Event, Mmi, Response

START = 1_000_000.0
H = TypeVar("H", bound=Happening)
BODY = b'{"task":"add","kwargs":{},"args":[1,2],"timeout":60.0}'


class Desk:
    """Records the effects of an engine.

    Attributes:
        connected: endpoints, one for each connection.
        stored: the records that are durable.
        told: all events.
        disk: whether commits are confirmed at once.
    """

    def __init__(self, *endpoints: str, now: float = START, disk: bool = True, **settings: Any) -> None:
        self.now, self.disk = now, disk
        self.engine = ClientEngine(endpoints or ("tcp://a",), ClientSettings(**settings), now=now)
        self._sent: list[Command] = []
        self.connected: list[str] = []
        self.stored: list[Record] = []
        self.told: list[Happening] = []
        self.open = False
        self._unconfirmed: list[Commit] = []

    def do(self, actions: Sequence[Action]) -> None:
        """Perform effects."""
        for action in actions:
            match action:
                case Send(command=command):
                    assert self.open, "nothing is sent without a connection"
                    self._sent.append(command)
                case Connect(endpoint=endpoint):
                    self.connected.append(endpoint)
                    self.open = True
                case Close():
                    self.open = False
                case Report(happening=happening):
                    self.told.append(happening)
                case Commit():
                    self._unconfirmed.append(action)
        if self.disk:
            self.confirm()

    def confirm(self) -> None:
        """Let all commits succeed."""
        commits, self._unconfirmed = self._unconfirmed, []
        for commit in commits:
            self.stored.extend(commit.records)
        if commits:
            self.do(self.engine.stored(commits[-1].ticket, self.now))

    def refuse(self, reason: str) -> None:
        """Let all refusable commits fail, as a store does while the disk fails."""
        commits, self._unconfirmed = self._unconfirmed, []
        self._unconfirmed = [commit for commit in commits if not commit.refusable]
        for commit in commits:
            if commit.refusable:
                self.do(self.engine.not_stored(commit.ticket, reason, self.now))

    def fail_commits(self, reason: str) -> None:
        """Let all commits fail, as a store does with faulty records."""
        commits, self._unconfirmed = self._unconfirmed, []
        for commit in commits:
            self.do(self.engine.not_stored(commit.ticket, reason, self.now))

    # --- calls of the client

    def begin(self) -> Desk:
        """Connect."""
        self.do(self.engine.open(self.now))
        return self

    def submit(
        self, uuid: str = "u1", *, target: str = "all", timeout: float = 60.0, body: bytes = BODY
    ) -> None:
        """Submit a job of the service ``svc``."""
        record = JobRecord(uuid, "svc", "add", target, body, self.now, self.now + timeout)
        self.do(self.engine.submit(record, self.now))

    def manage(
        self, task: str, uuid: str = "m1", service: str = "mmi.service.broker", wait: float = 30.0
    ) -> None:
        """Send a management request."""
        self.do(self.engine.ask(Mmi(uuid, b"{}", service, "all"), task, self.now + wait, self.now))

    def delete(self, uuid: str = "u1", wait: float = 30.0) -> None:
        """Delete a job."""
        self.do(self.engine.delete(uuid, "svc", self.now + wait, self.now))

    def collect(self, uuid: str = "u1", wait: float = 60.0, stored: StoredJob | None = None) -> None:
        """Wait for a job."""
        self.do(self.engine.collect(uuid, self.now + wait, self.now, stored))

    # --- commands of the broker

    def hear(self, command: Command) -> None:
        """Receive a command."""
        self.do(self.engine.receive(command, self.now))

    def say(self, status: int, uuid: str = "u1", /, **body: Any) -> None:
        """Receive a RESPONSE."""
        self.hear(Response(uuid, status, json.dumps(body).encode(), "svc"))

    def accept(self, *workers: str, uuid: str = "u1", **more: Any) -> None:
        """Receive 202 with the workers that have the job."""
        self.say(202, uuid, workers=list(workers), uuid=uuid, status="DISPATCHED", **more)

    def answer(self, worker: str, value: Any = 3, /, uuid: str = "u1", **entry: Any) -> None:
        """Receive the result of a worker."""
        self.say(200, uuid, **{worker: {"result": value, "failed": False, "errors": [], **entry}})

    def event(self, worker: str, message: str, uuid: str = "u1", kind: str = "progress") -> None:
        """Receive progress."""
        body = {"worker": worker, "uuid": uuid, "event_type": kind, "message": message, "severity": "INFO"}
        self.hear(Event(uuid, 200, json.dumps(body).encode(), "svc"))

    def refused(self, status: int, error: str, uuid: str = "u1") -> None:
        """Receive a refusal of the whole job."""
        self.say(status, uuid, workers=None, uuid=uuid, status="FAILED", error=error, errors=[error])

    def lose(self, reason: str = "the connection was lost") -> None:
        """Lose the connection."""
        self.do(self.engine.lost(reason, self.now))

    def reconnect(self) -> None:
        """Lose the connection, and wait for the next."""
        before = len(self.connected)
        self.lose()
        self.turn(0.25)
        assert len(self.connected) == before + 1

    # --- time and results

    def turn(self, seconds: float, step: float = 0.125) -> None:
        """Let time pass, in ticks."""
        end = self.now + seconds
        while self.now < end - 1e-9:
            self.now = min(end, self.now + step)
            self.do(self.engine.tick(self.now))

    def sent(self) -> list[Command]:
        """Return the commands that were sent since the last call."""
        sent, self._sent = self._sent, []
        return sent

    def tell(self, kind: type[H]) -> list[H]:
        """Return the events of one kind."""
        return [happening for happening in self.told if isinstance(happening, kind)]

    @property
    def result(self) -> JobResult:
        """Result of the job that ended last."""
        return self.tell(JobEnded)[-1].result

    def restart(self, *endpoints: str, **settings: Any) -> Desk:
        """Return a client that is started with the durable records of this one, which was killed."""
        after = Desk(*(endpoints or ("tcp://a",)), now=self.now, **settings)
        after.stored = self.stored
        jobs = [record for record in self.stored if isinstance(record, JobRecord)]
        after.do(after.engine.restore([self.find(job) for job in jobs], self.now))
        return after.begin()

    def find(self, job: JobRecord) -> StoredJob:
        """Return the durable records of a job."""
        states = [one for one in self.stored if isinstance(one, StateRecord) and one.uuid == job.uuid]
        results = [one for one in self.stored if isinstance(one, ResultRecord) and one.uuid == job.uuid]
        state = states[-1] if states else StateRecord(job.uuid, "NEW", (), job.deadline)
        return StoredJob(job, state, tuple(results))


def kinds(commands: Sequence[Command]) -> list[str]:
    """Return each command as its kind, uuid and target."""
    return [
        f"{type(command).__name__.upper()} {getattr(command, 'uuid', '')} {getattr(command, 'target', '')}".strip()
        for command in commands
    ]


def count(commands: Sequence[Command], wanted: Callable[[Command], bool]) -> int:
    """Return the number of commands that fulfil a condition."""
    return sum(1 for command in commands if wanted(command))
