"""A worker's engine with a clock, a disk in memory, and a broker and tasks whose every word a test says."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.norfab.commands import (
    Command,
    Delete,
    Event,
    Get,
    Keepalive,
    Mmi,
    Open,
    Post,
    Put,
    Response,
)
from specwire.runtime.norfab.worker import actions
from specwire.runtime.norfab.worker.actions import Action, Start, Stopped
from specwire.runtime.norfab.worker.bodies import Outcome, failure
from specwire.runtime.norfab.worker.engine import WorkerEngine
from specwire.runtime.norfab.worker.events import Happening
from specwire.runtime.norfab.worker.limits import WorkerSettings
from specwire.runtime.norfab.worker.records import (
    BegunRecord,
    ForgottenRecord,
    JobRecord,
    Record,
    ResultRecord,
)

START = 1_000_000.0
CLIENT = b"c1"

H = TypeVar("H", bound=Happening)


def job(task: str = "add", **fields: Any) -> bytes:
    """Return the body of a POST."""
    return json.dumps({"task": task, "kwargs": {}, "args": [], **fields}, separators=(",", ":")).encode()


def value(result: object) -> Outcome:
    """Return the end of a task that went well."""
    return Outcome(result=msgspec.Raw(json.dumps(result).encode()))


class Disk:
    """Records that survive an engine."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    @property
    def begun(self) -> int:
        """The number up to which jobs have begun."""
        return max((r.number for r in self.records if isinstance(r, BegunRecord)), default=0)

    def results(self) -> dict[int, bytes]:
        """Return the bodies that can be read."""
        found = {record.number: record.body for record in self.records if isinstance(record, ResultRecord)}
        for record in self.records:
            if isinstance(record, ForgottenRecord):
                found.pop(record.number, None)
        return found

    def jobs(self) -> list[str]:
        """Return the uuids of all jobs that were ever kept."""
        return [record.uuid for record in self.records if isinstance(record, JobRecord)]


class Lab:
    """An engine in a laboratory. With `commits` the disk is quick; else `commit` makes things durable.

    A job is acknowledged at once, unless `acknowledge_s` says otherwise.
    """

    def __init__(
        self,
        settings: WorkerSettings | None = None,
        *,
        disk: Disk | None = None,
        now: float = START,
        commits: bool = True,
        registered: bool = True,
        acknowledge_s: float = 0.0,
        **engine: Any,
    ) -> None:
        self.now, self.commits = now, commits
        self.disk = disk or Disk()
        settings = msgspec.structs.replace(settings or WorkerSettings(), acknowledge_s=acknowledge_s)
        self.engine = WorkerEngine("w1", "svc", settings, now=now, **engine)
        self.waiting: list[Commit] = []
        self.done: list[Action] = []
        self.sent: list[Command] = []
        self.started: list[Start] = []
        self.happened: list[Happening] = []
        self.stopped: Stopped | None = None
        self.connections: list[int] = []
        self.connected = False
        self.perform(self.engine.restore(list(self.disk.records), self.disk.begun, now))
        self.perform(self.engine.open(now))
        if registered:
            self.say(Open())
            self.take()

    def perform(self, todo: list[Action]) -> None:
        """Do what the engine wants."""
        self.done += todo
        for action in todo:
            match action:
                case actions.Send(command=command):
                    assert self.connected, f"{command} without a connection"
                    self.sent.append(command)
                case Commit():
                    self.waiting.append(action)
                case actions.Start():
                    self.started.append(action)
                case actions.Report(happening=happening):
                    self.happened.append(happening)
                case actions.Connect(broker=broker):
                    self.connections.append(broker)
                    self.connected = True
                case actions.Close():
                    self.connected = False
                case actions.Stopped():
                    self.stopped = action
                case actions.Load(number=number, uuid=uuid, client=client):
                    body = self.disk.results().get(number)
                    self.perform(self.engine.loaded(uuid, client, body, self.now))
        if self.commits:
            self.commit()

    def commit(self, tickets: int | None = None) -> None:
        """Make the next stores durable: all of them, or so many."""
        done, self.waiting = self.waiting[:tickets], self.waiting[len(self.waiting[:tickets]) :]
        if done:
            self.disk.records += [record for store in done for record in store.records]
            self.perform(self.engine.stored(done[-1].ticket, self.now))

    def refuse(self, reason: str = "disk full") -> None:
        """Keep nothing of the next store."""
        self.perform(self.engine.not_stored(self.waiting.pop(0).ticket, reason, self.now))

    # --- what the broker says

    def say(self, command: Command) -> None:
        """Let the broker send something."""
        self.perform(self.engine.receive(command, self.now))

    def post(
        self, uuid: str = "j1", body: bytes | None = None, client: bytes = CLIENT, **fields: Any
    ) -> None:
        """Let the broker hand over a job."""
        self.say(Post(uuid, job(**fields) if body is None else body, client=client))

    def get(self, uuid: str = "j1", client: bytes = CLIENT) -> None:
        """Let the broker ask."""
        self.say(Get(uuid, client=client))

    def delete(self, uuid: str = "j1", client: bytes = CLIENT) -> None:
        """Let the broker delete."""
        self.say(Delete(uuid, client=client))

    def put(self, uuid: str, body: bytes) -> None:
        """Let the broker pass input on."""
        self.say(Put(uuid, body, client=CLIENT))

    def manage(self, task: str, **kwargs: Any) -> tuple[int, Any]:
        """Let the broker pass a management request on; return the answer."""
        self.take()
        self.say(Mmi("m1", json.dumps({"task": task, "kwargs": kwargs}).encode(), client=b"boss"))
        reply = self.sent[0]
        assert isinstance(reply, Response) and (reply.uuid, reply.client) == ("m1", b"boss")
        return reply.status, json.loads(reply.body)

    # --- what tasks do

    def end(self, uuid: str = "j1", outcome: Outcome | None = None) -> None:
        """Let a task end."""
        self.perform(self.engine.ended(uuid, outcome or value(5), self.now))

    def fail(self, uuid: str = "j1", why: str = "boom") -> None:
        """Let a task fail."""
        self.end(uuid, failure(why))

    # --- time and fate

    def wait(self, seconds: float, step: float = 0.1, *, alive: bool = True) -> None:
        """Let time pass; with `alive` the broker gives its signs of life."""
        end = self.now + seconds
        while self.now < end - 1e-9:
            self.now = min(end, self.now + step)
            if alive and self.connected:
                self.say(Keepalive("svc"))
            self.perform(self.engine.tick(self.now))

    def killed(self, **settings: Any) -> Lab:
        """Kill the worker; return the next one, with what is on disk."""
        return Lab(self.engine.settings, disk=self.disk, now=self.now + 1, **settings)

    # --- what came of it

    def take(self) -> list[Command]:
        """Return what was sent, and forget it; signs of life are left out."""
        sent, self.sent = self.sent, []
        return [command for command in sent if not isinstance(command, Keepalive)]

    def told(self, uuid: str = "j1") -> list[tuple[int, Any]]:
        """Return status and body of the responses for a job."""
        return [
            (command.status, json.loads(command.body))
            for command in self.sent
            if isinstance(command, Response) and command.uuid == uuid
        ]

    def statuses(self, uuid: str = "j1") -> list[int]:
        """Return the statuses that were sent for a job."""
        return [status for status, _ in self.told(uuid)]

    def ends(self, uuid: str = "j1") -> list[Any]:
        """Return this worker's entries of the ends that were sent for a job."""
        return [body["w1"] for _, body in self.told(uuid) if "w1" in body]

    def events(self, uuid: str = "j1") -> list[Any]:
        """Return the bodies of the EVENTs that were sent for a job."""
        return [
            json.loads(command.body)
            for command in self.sent
            if isinstance(command, Event) and command.uuid == uuid
        ]

    def runs(self) -> list[str]:
        """Return the uuids of the jobs that were begun, in order."""
        return [start.uuid for start in self.started]

    def of(self, kind: type[Action]) -> list[Any]:
        """Return the actions of this kind."""
        return [action for action in self.done if isinstance(action, kind)]

    def reported(self, kind: type[H]) -> list[H]:
        """Return the happenings of this kind."""
        return [happening for happening in self.happened if isinstance(happening, kind)]


def records_of(*kinds: type[Record], disk: Disk) -> Iterable[Record]:
    """Return the records of these kinds that are on disk."""
    return [record for record in disk.records if isinstance(record, kinds)]
