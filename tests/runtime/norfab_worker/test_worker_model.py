"""A worker's engine with its real SQL, against a plain model: jobs, deletions, disk faults, kills and stops.

The disk is an SQLite database in memory. A history decides what becomes of each queued commit: it is
durable, it is faulty, the disk fails and refuses it, or it is durable and the worker was killed before it
could know. What must hold:

- a job is durable when it is accepted, and so is its begin record when its task starts;
- no task starts twice, or after its job's deletion was acknowledged;
- a result that was sent is durable, and the same octets are sent whenever it is asked for again;
- a deletion that was acknowledged is still there in the next process;
- every job that was accepted gets a result, once the disk and the broker work.

``SPECWIRE_SOAK_HISTORIES`` is the number of histories.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from specwire.runtime.kernel.commits import Commit
from specwire.runtime.kernel.store.database import write
from specwire.runtime.norfab.commands import Command, Delete, Get, Keepalive, Open, Post, Response
from specwire.runtime.norfab.worker import actions
from specwire.runtime.norfab.worker.actions import Action
from specwire.runtime.norfab.worker.bodies import Outcome
from specwire.runtime.norfab.worker.engine import WorkerEngine
from specwire.runtime.norfab.worker.events import JobsGivenBack
from specwire.runtime.norfab.worker.limits import WorkerSettings
from specwire.runtime.norfab.worker.store import SCHEMA, WorkerStore

UUIDS = ["j0", "j1", "j2"]
BODY = b'{"task":"add","kwargs":{},"args":[]}'
NOT_STORED = "the worker cannot store the result"
HISTORIES = int(os.environ.get("SPECWIRE_SOAK_HISTORIES", "300"))


def finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


class Table:
    """The part of `Store` that `WorkerStore` uses, in memory."""

    def __init__(self) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        for statement in SCHEMA.statements:
            self.connection.execute(statement)

    def put(self, ticket: int, statements: list[Any], *, refusable: bool = False) -> None:
        """Execute the statements in one transaction."""
        self.connection.execute("BEGIN")
        write(self.connection, statements)
        self.connection.execute("COMMIT")

    async def read(self, sql: str, parameters: Any = ()) -> list[Any]:
        """Return the rows of a query."""
        return self.connection.execute(sql, parameters).fetchall()

    def job(self, uuid: str) -> tuple[int, int] | None:
        """Return the number of a job, and whether it is held."""
        found: tuple[int, int] | None = self.connection.execute(
            "SELECT number, held FROM job WHERE uuid = ? ORDER BY number DESC", (uuid,)
        ).fetchone()
        return found

    def result(self, uuid: str) -> tuple[bytes, int] | None:
        """Return the body of a result, and whether the job is deleted."""
        found: tuple[bytes, int] | None = self.connection.execute(
            "SELECT body, deleted FROM result WHERE number = (SELECT max(number) FROM job WHERE uuid = ?)",
            (uuid,),
        ).fetchone()
        return found

    def begun(self) -> int:
        """Return the number up to which jobs have begun."""
        row = self.connection.execute("SELECT number FROM begun").fetchone()
        return row[0] if row else 0


class Worker(RuleBasedStateMachine):
    """One worker through several lives."""

    @initialize(
        concurrency=st.sampled_from([1, 1, 3]),
        kept=st.sampled_from([1000, 1000, 2]),
        introduced=st.booleans(),
    )
    def begin(self, concurrency: int, kept: int, introduced: bool) -> None:
        """Start the first process. One with a small table forgets jobs, so that they may run again."""
        self.settings = WorkerSettings(
            concurrency=concurrency, kept_jobs=kept, acknowledge_s=0.0, grace_s=1.0, drain_s=2.0, job_s=20.0
        )
        self.introduced, self.forgets = introduced, kept == 2
        self.table = Table()
        self.store = object.__new__(WorkerStore)
        self.store.store = self.table  # type: ignore[assignment]
        self.now = 1000.0
        self.started: Counter[str] = Counter()
        self.deleted: set[str] = set()
        self.results: dict[str, bytes] = {}
        self.acknowledged: set[str] = set()
        self.live()

    def live(self) -> None:
        """Start a process of the worker."""
        self.failing = ""
        self.queue: list[Commit] = []
        self.connected = self.stopped = False
        self.running: list[str] = []
        self.given_back: set[str] = set()
        records = finish(self.store._load())
        begun = finish(self.store._read_begun(records))
        self.engine = WorkerEngine("w1", "svc", self.settings, now=self.now)
        self.perform(self.engine.restore(records, begun, self.now))
        self.perform(self.engine.open(self.now))
        self.hear(Open() if self.introduced else Keepalive("svc"))
        for uuid in () if self.forgets else self.deleted:
            job = self.engine.jobs.by_uuid.get(uuid)
            assert job is not None and job.deleted, f"{uuid} is not deleted any more"

    # --- effects

    def perform(self, todo: list[Action]) -> None:
        """Perform actions, and check them."""
        for action in todo:
            match action:
                case Commit():
                    if self.failing and action.refusable:
                        self.perform(self.engine.not_stored(action.ticket, self.failing, self.now))
                    else:
                        self.queue.append(action)
                case actions.Start(uuid=uuid):
                    self.check_start(uuid)
                case actions.Send(command=command):
                    assert self.connected
                    if isinstance(command, Response):
                        self.check_response(command)
                case actions.Connect():
                    self.connected = True
                case actions.Close():
                    self.connected = False
                case actions.Load(number=number, uuid=uuid, client=client):
                    body = finish(self.store.read_result(number))
                    self.perform(self.engine.loaded(uuid, client, body, self.now))
                case actions.Report(happening=JobsGivenBack(uuids=uuids)):
                    self.acknowledged -= set(uuids)
                    self.given_back |= set(uuids)
                case actions.Stopped():
                    self.stopped = True

    def check_start(self, uuid: str) -> None:
        """A task may start."""
        found = self.table.job(uuid)
        assert found is not None, "it starts before it is durable"
        number, held = found
        assert not held and number <= self.table.begun(), "that it begins is not durable"
        result = self.table.result(uuid)
        assert result is None or result[1], "only a deletion may be there, which is not acknowledged yet"
        assert uuid not in self.deleted or self.forgets
        self.started[uuid] += 1
        assert self.started[uuid] == 1 or self.forgets, "it runs twice"
        self.running.append(uuid)

    def check_response(self, command: Response) -> None:
        """A response may be sent."""
        uuid, body = command.uuid, json.loads(command.body)
        if command.status == 201:
            assert self.table.job(uuid) is not None, "it is acknowledged before it is durable"
            self.acknowledged.add(uuid)
        elif "the job was deleted" in str(body):
            self.acknowledged.discard(uuid)
        elif body.get("status") == "DELETED":
            result = self.table.result(uuid)
            self.acknowledged.discard(uuid)
            if uuid in self.given_back:
                return  # the worker forgets it, and the broker knows of the deletion
            if self.forgets and self.table.job(uuid) is None:
                return  # its row was removed to make room, after the deletion was durable
            assert result is not None and result[1], "its deletion is not durable"
            self.deleted.add(uuid)
        elif "w1" in body and body["w1"]["task"] != "w1:":
            entry = body["w1"]
            assert uuid not in self.deleted or self.forgets, "a deleted job has a result"
            durable = self.table.result(uuid)
            if durable is not None and durable[1]:
                return  # it was durable, and a deletion followed, which is not acknowledged yet
            if durable is None or durable[0] != command.body:
                assert command.status == 500 and NOT_STORED in entry["errors"][0], (durable, command)
                self.acknowledged.discard(uuid)
                return
            if not self.forgets:
                assert self.results.setdefault(uuid, command.body) == command.body

    # --- what happens

    def hear(self, command: Command) -> None:
        """Handle a command of the broker."""
        self.perform(self.engine.receive(command, self.now))

    @rule(uuid=st.sampled_from(UUIDS), kind=st.sampled_from([Post, Post, Post, Get, Get, Delete]))
    def ask(self, uuid: str, kind: Any) -> None:
        """The broker sends a command about a job, once it is connected."""
        while not self.connected:
            self.wait(0.5)
        self.hear(Post(uuid, BODY, client=b"c") if kind is Post else kind(uuid, client=b"c"))

    def apply(self, commits: list[Commit]) -> None:
        """Make commits durable."""
        for commit in commits:
            self.store.write(commit.ticket, commit.records, refusable=commit.refusable)

    @rule(uuid=st.sampled_from(UUIDS))
    def delete_released(self, uuid: str) -> None:
        """A client deletes a job while the broker asks for it."""
        self.ask(uuid, Delete)
        self.ask(uuid, Get)

    @precondition(lambda self: self.queue and not self.failing)
    @rule(count=st.sampled_from([1, 1, 2, 8]))
    def commit(self, count: int) -> None:
        """The next commits are durable."""
        done, self.queue = self.queue[:count], self.queue[count:]
        self.apply(done)
        self.perform(self.engine.stored(done[-1].ticket, self.now))

    @rule(trouble=st.sampled_from(["fault", "disk", "disk", "connection", "stop", "restart"]))
    def trouble(self, trouble: str) -> None:
        """The next commit is faulty, the disk fails or recovers, the connection is lost, or the worker is stopped."""
        if trouble == "fault" and self.queue and not self.failing:
            commit = self.queue.pop(0)
            self.perform(self.engine.not_stored(commit.ticket, "faulty", self.now))
            self.perform(self.engine.stored(commit.ticket, self.now))
        elif trouble == "disk" and self.failing:
            self.failing = ""
            self.perform(self.engine.store_refuses("", self.now))
        elif trouble == "disk":
            self.fail()
        elif trouble == "connection":
            self.perform(self.engine.lost("net", self.now))
        elif trouble in ("stop", "restart"):
            self.perform(self.engine.stop(self.now, restart=trouble == "restart"))
            self.again_if_stopped()

    def fail(self) -> None:
        """The disk refuses what may be refused; the rest waits."""
        self.failing = "disk full"
        refused = [commit for commit in self.queue if commit.refusable]
        self.queue = [commit for commit in self.queue if not commit.refusable]
        self.perform(self.engine.store_refuses(self.failing, self.now))
        for commit in refused:
            self.perform(self.engine.not_stored(commit.ticket, self.failing, self.now))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """A task ends."""
        uuid = data.draw(st.sampled_from(self.running))
        self.running.remove(uuid)
        outcome = Outcome(result=msgspec.Raw(msgspec.json.encode(uuid)))
        self.perform(self.engine.ended(uuid, outcome, self.now))

    @rule(seconds=st.sampled_from([0.5, 6.0, 30.0]))
    def wait(self, seconds: float) -> None:
        """Time passes."""
        end = self.now + seconds
        while self.now < end and not self.stopped:
            self.now += 0.5
            if self.connected:
                self.hear(Keepalive("svc"))
            self.perform(self.engine.tick(self.now))
        self.again_if_stopped()

    @rule(count=st.sampled_from([0, 1, 2, 8]))
    def kill(self, count: int) -> None:
        """Kill the worker, when so many commits are durable that were not reported, and start it again."""
        if not self.failing:
            self.apply(self.queue[:count])
        self.live()

    def again_if_stopped(self) -> None:
        """Start the next process."""
        if self.stopped:
            if not self.failing:
                self.apply(self.queue)
            self.live()

    def teardown(self) -> None:
        """Every job that was acknowledged has a result, once the disk and the broker are there."""
        if not hasattr(self, "engine"):
            return
        if self.failing:
            self.trouble("disk")
        for _ in range(40):
            if self.queue:
                self.commit(100)
            self.again_if_stopped()
            while self.running:
                uuid = self.running.pop()
                outcome = Outcome(result=msgspec.Raw(msgspec.json.encode(uuid)))
                self.perform(self.engine.ended(uuid, outcome, self.now))
            if self.engine.connection.registered:
                for uuid in sorted(self.acknowledged - set(self.results)):
                    self.ask(uuid, Get)
            self.wait(0.5)
        if not self.forgets:
            assert self.acknowledged <= set(self.results), self.acknowledged - set(self.results)
        assert not self.engine.execution.running


TestWorker = Worker.TestCase
TestWorker.settings = settings(
    max_examples=HISTORIES, stateful_step_count=60, deadline=None, suppress_health_check=list(HealthCheck)
)
