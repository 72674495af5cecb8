"""A broker against a plain model, through any history of jobs, disk faults, stops and kills: frames in, frames out.

The model knows nothing but what peers were sent: which jobs were acknowledged, refused or deleted, and which parts ended
with which result. The broker is a real one with a real store; only its sockets are lists. After every stop or kill it is
started again twice in a row, and each time a client asks for every job. What must hold:

- a job that was acknowledged is known, until its deletion was acknowledged; then it stays deleted;
- a part whose end a client was sent has that same end, octet for octet, and is never sent to a worker again;
- a job that was refused is unknown, and no worker was ever sent it.

A kill is simulated: from one moment on every statement of SQLite raises an error before it is executed, nothing more is
sent, and the connection is closed without a commit. That leaves the file as kill -9 does: SQLite takes a transaction in the
WAL for committed only if its commit is there, and the rest is ignored by the next process.

``SPECWIRE_SOAK_HISTORIES`` is the number of histories.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from specwire.runtime.norfab.broker import BrokerEngine
from specwire.runtime.norfab.brokerstore import NAME
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.serve.counters import Counters
from specwire.runtime.norfab.serve.entrance import Door, Entrance
from specwire.runtime.norfab.serve.serving import Serving

HISTORIES = int(os.environ.get("SPECWIRE_SOAK_HISTORIES", "100"))
DOOR: Door = ("worker", "client")
ANSWER_S = 20.0
PATIENT = Settings(keepalive_s=1000.0, queue_s=100_000.0, job_s=100_000.0, poll_s=0.02, attempts=100)
"""No time runs out in a history but the interval in which a worker is asked for what it owes."""

POST, RESPONSE, GET, DELETE, EVENT = b"0x04", b"0x05", b"0x06", b"0x07", b"0x08"
JOBS = [f"j{number}" for number in range(8)]
WORKERS = ["w0", "w1"]
RARELY = st.sampled_from([False] * 4 + [True])
PAUSES = st.sampled_from(["none", "none", "some", "long", "all"])
POISON = "poison"
"""A job, or a result, with this in it violates a constraint of the database."""


class Disk:
    """Faults of the disk, and the end of the process.

    Attributes:
        code: SQLite's error for everything that writes; 0 while the disk works.
        after: so many statements are executed before the fault.
        dead: nothing is executed any more.
    """

    def __init__(self) -> None:
        self.code = self.after = 0
        self.dead = False

    def connect(self, path: Path) -> sqlite3.Connection:
        """Return a connection that fails as this disk does."""
        disk = self

        class Faulty(sqlite3.Connection):
            def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
                disk.check(sql, parameters)
                return super().execute(sql, parameters)

        disk.check("", ())
        return sqlite3.connect(path, isolation_level=None, check_same_thread=False, factory=Faulty)

    def check(self, sql: str, parameters: Sequence[Any]) -> None:
        """Raise what SQLite raises for this statement."""
        if self.dead:
            raise _error(sqlite3.SQLITE_IOERR, "the process is dead")
        poisoned = any(POISON in value for value in parameters if isinstance(value, str)) or any(
            POISON.encode() in value for value in parameters if isinstance(value, bytes)
        )
        if poisoned and sql.startswith("INSERT"):
            raise _error(sqlite3.SQLITE_CONSTRAINT, "CHECK constraint failed")
        if self.code and sql.startswith(("BEGIN", "INSERT", "DELETE", "COMMIT", "CREATE")):
            if self.after:
                self.after -= 1
            else:
                raise _error(self.code, "the disk fails")


def _error(code: int, text: str) -> sqlite3.Error:
    error = (sqlite3.IntegrityError if code == sqlite3.SQLITE_CONSTRAINT else sqlite3.OperationalError)(text)
    error.sqlite_errorcode = code
    return error


class Sockets:
    """In place of the sockets; `on_sent` is called with each message."""

    def __init__(self, on_sent: Any) -> None:
        self._on_sent = on_sent
        self.cut = False
        self.routers = dict.fromkeys(DOOR, self)

    def open(self, front: Sequence[str], back: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return tuple(front), tuple(back)

    def send_all(self, peer: bytes, messages: Iterable[list[bytes]]) -> None:
        for frames in messages:
            if not self.cut:
                self._on_sent(peer.decode(), [bytes(frame) for frame in frames])

    def forget(self, peer: bytes) -> None: ...

    def gather(self) -> None: ...

    def settle(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    async def close(self, *, linger_s: float) -> None: ...


class ModelJob:
    """What the model knows of a job."""

    def __init__(self) -> None:
        self.state = "unanswered"  # or acknowledged, refused, deleting, deleted
        self.parts: dict[str, Any] = {}  # the end of each part, by the name of its slot


class Histories(RuleBasedStateMachine):
    """Rules are what peers, the disk and the administrator do."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        self.jobs: dict[str, ModelJob] = {}
        self.inbox: dict[str, list[str]] = {name: [] for name in WORKERS}  # jobs that a worker has not done
        self.results: dict[str, dict[str, bytes]] = {name: {} for name in WORKERS}  # what a worker has done
        self.here: set[str] = set()
        self.faults: list[str] = []
        self.history: list[str] = []  # for whoever looks for the cause of a failure
        self.asked = ""
        self.answers: list[tuple[str, int, Any]] = []
        self.barriers: set[str] = set()
        self.count = 0
        self.run(self.start())
        for worker in WORKERS:
            self.register(worker, "none")

    def run(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(coroutine, ANSWER_S))

    # --- the broker

    async def start(self) -> None:
        self.disk = Disk()
        self.sockets = sockets = Sockets(self.on_sent)
        engine = BrokerEngine(PATIENT, now=0.0)
        self.serving = Serving(
            engine,
            self.folder,
            "process",
            services={},
            make_inmate=None,
            tell=lambda event: None,
            owns=None,
            after=lambda: None,
            counters=Counters(),
            tap=None,
            connect=self.disk.connect,
            probe_s=0.005,
        )
        await self.serving.open(lambda serving: cast("Entrance", sockets), ("tcp://x",), ())
        self.here.clear()

    async def stop(self) -> None:
        """SIGTERM; the disk works."""
        self.disk.code = 0
        await self.serving.close("the history says so")

    async def kill(self) -> None:
        """kill -9, at once; see the module."""
        self.disk.dead = self.sockets.cut = True
        await self.serving._release(linger_s=0.0)

    def hear(self, peer: str, *frames: bytes) -> None:
        """Let the broker receive a message, on its event loop."""
        if not self.loop.is_running():

            async def heard() -> None:
                self.hear(peer, *frames)

            self.run(heard())
            return
        self.history.append(f"{peer}: {b' '.join(frames)!r}")
        self.serving.on_messages(DOOR, [("", [peer.encode(), b"", *frames])])
        self.serving.on_rest()

    def hear_client(
        self, client: str, command: bytes, uuid: str, target: str = "all", body: bytes = b"{}"
    ) -> None:
        self.hear(client, b"NFPC01", command, b"svc", target.encode(), uuid.encode(), body)

    # --- what the broker sends

    def on_sent(self, peer: str, frames: list[bytes]) -> None:
        self.history.append(f"    broker to {peer}: {b' '.join(frames[2:])!r}")
        if peer in WORKERS:
            self.on_sent_to_worker(peer, frames)
        elif frames[2] == RESPONSE:
            uuid, status, body = frames[4].decode(), int(frames[5]), frames[6]
            if uuid.startswith("barrier"):
                self.barriers.add(uuid)
            elif peer == "asking":
                if uuid == self.asked:  # else an answer to an earlier question that was good enough without
                    self.answers.append((uuid, status, json.loads(body)))
            else:
                self.on_answer(uuid, status, json.loads(body))

    def on_sent_to_worker(self, worker: str, frames: list[bytes]) -> None:
        command = frames[2]
        if command not in (POST, GET, DELETE):
            return
        uuid = frames[5].decode()
        if uuid.startswith("barrier"):
            return
        job = self.jobs[uuid]
        if command == POST:
            self.check(job.state != "refused", f"{uuid} was refused, and sent to {worker}")
            self.check(job.state != "deleted", f"{uuid} was deleted, and sent to {worker}")
            self.check(worker not in job.parts, f"{uuid} had ended at {worker}, and was sent to it again")
            any_ended = self.target_of(uuid) == "any" and job.parts
            self.check(not any_ended, f"{uuid} had ended, and was sent to {worker}")
            if uuid not in self.inbox[worker] and uuid not in self.results[worker]:
                self.inbox[worker].append(uuid)
        elif command == GET:
            if uuid in self.results[worker]:
                status, body = b"200", self.results[worker][uuid]
            elif uuid in self.inbox[worker]:
                status, body = b"300", b"{}"
            else:
                status, body = b"404", b"{}"
            self.loop.call_soon(self.answer_as, worker, frames[3], uuid, status, body)

    def answer_as(self, worker: str, client: bytes, uuid: str, status: bytes, body: bytes) -> None:
        if worker in self.here and not self.sockets.cut:
            self.hear(worker, b"NFPW01", RESPONSE, client, b"", uuid.encode(), status, body)

    def on_answer(self, uuid: str, status: int, body: Any) -> None:
        """Handle a RESPONSE to the client that posts."""
        job = self.jobs[uuid]
        if job.state == "deleting" and status == 200 and body.get("status") == "DELETED":
            job.state = "deleted"
        elif (
            job.state == "unanswered"
            and status == 500
            and not any(isinstance(e, dict) for e in body.values())
        ):
            job.state = "refused"
        elif status in (202, 300) and job.state == "unanswered":
            job.state = "acknowledged"
        for slot, end in ends_of(body).items():
            self.check(job.parts.setdefault(slot, end) == end, f"{uuid} has two ends at {slot}")

    def target_of(self, uuid: str) -> str:
        return ["any", "all", "w0", "w0,w1"][int(uuid[1:2]) % 4]

    def check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.faults.append(otherwise)

    # --- rules

    @rule(numbers=st.lists(st.integers(0, 7), min_size=1, max_size=4), poisoned=RARELY, pause=PAUSES)
    def post(self, numbers: list[int], poisoned: bool, pause: str) -> None:
        for number in numbers:
            uuid = JOBS[number] + (POISON if poisoned else "")
            job = self.jobs.setdefault(uuid, ModelJob())
            if job.state == "refused":
                self.jobs[uuid] = ModelJob()  # a client may try again
            self.hear_client("posting", POST, uuid, self.target_of(uuid), b'{"task":"t"}')
        self.pause(pause)

    @rule(worker=st.sampled_from(WORKERS), pause=PAUSES)
    def register(self, worker: str, pause: str) -> None:
        self.here.add(worker)
        self.hear(worker, b"NFPW01", b"0x01", b"svc")
        self.pause(pause)

    @precondition(lambda self: self.here)
    @rule(worker=st.sampled_from(WORKERS), forgets=st.booleans())
    def lose_worker(self, worker: str, forgets: bool) -> None:
        if worker in self.here:
            self.here.discard(worker)
            if forgets:
                self.inbox[worker].clear()
                self.results[worker].clear()
            self.loop.call_soon(self.serving.on_gone, DOOR, worker.encode(), "is not connected any more")

    @rule(count=st.integers(1, 4), progress=st.integers(0, 3), poisoned=RARELY, pause=PAUSES)
    def work(self, count: int, progress: int, poisoned: bool, pause: str) -> None:
        for worker in sorted(self.here):
            for uuid in self.inbox[worker][:count]:
                self.inbox[worker].remove(uuid)
                self.do(worker, uuid, progress, poisoned)
        self.pause(pause)

    def do(self, worker: str, uuid: str, progress: int, poisoned: bool) -> None:
        """Let a worker do a job, and report it."""
        for number in range(progress):
            event = b'{"event_type":"progress","message":"%d"}' % number
            self.hear(worker, b"NFPW01", EVENT, b"posting", b"", uuid.encode(), b"200", event)
        self.count += 1
        result = POISON if poisoned else self.count
        entry: dict[str, object] = {
            "result": result,
            "failed": False,
            "errors": [],
            "task": "t",
            "status": "completed",
        }
        self.results[worker][uuid] = body = json.dumps({worker: entry}).encode()
        self.hear(worker, b"NFPW01", RESPONSE, b"posting", b"", uuid.encode(), b"200", body)

    @rule(number=st.integers(0, 7), pause=PAUSES)
    def delete(self, number: int, pause: str) -> None:
        known = [uuid for uuid, job in self.jobs.items() if job.state == "acknowledged"]
        if known:
            uuid = known[number % len(known)]
            self.jobs[uuid].state = "deleting"
            self.hear_client("posting", DELETE, uuid)
        self.pause(pause)

    @rule(
        code=st.sampled_from([sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY]),
        after=st.integers(0, 5),
    )
    def fail_disk(self, code: int, after: int) -> None:
        self.history.append(f"the disk fails with {code} after {after}")
        self.disk.after, self.disk.code = after, code

    @rule()
    def heal_disk(self) -> None:
        self.disk.code = 0

    def pause(self, kind: str) -> None:
        """Let the event loop and the disk do nothing, something, or everything."""
        if kind == "some":
            self.run(asyncio.sleep(0.001))
        elif kind == "long":
            self.run(asyncio.sleep(0.006))
        elif kind == "all" and not self.disk.code:
            self.settle()

    @rule()
    def settle(self) -> None:
        """Let the disk work until everything before this is durable."""
        self.disk.code = 0
        self.run(self.barrier())
        for uuid, job in self.jobs.items():
            self.check(job.state != "unanswered", f"the client that posted {uuid} was sent no answer")

    async def barrier(self) -> None:
        """Post jobs that no worker does, until one is acknowledged: commits are in order."""
        while True:
            self.count += 1
            name = f"barrier{self.count}"
            self.hear("posting", b"NFPC01", POST, b"none", b"any", name.encode(), b'{"task":"t"}')
            while name not in self.barriers:
                await asyncio.sleep(0)
            if not self.serving._engine.refusing:
                return
            await asyncio.sleep(0.002)

    @rule(
        first=st.sampled_from(["stop", "kill"]),
        second=st.sampled_from(["stop", "kill"]),
        damage=st.booleans(),
    )
    def restart_twice(self, first: str, second: str, damage: bool) -> None:
        for way in (first, second):
            self.history.append(way)
            self.run(self.stop() if way == "stop" else self.kill())
            for job in self.jobs.values():
                if job.state == "deleting":
                    job.state = "acknowledged or deleted"
            if way == "stop" and damage:
                self.damage()
            self.run(self.start())
            self.run(self.examine())
        for worker in WORKERS:
            self.register(worker, "none")

    def damage(self) -> None:
        """Destroy the index of the table: every row can still be read."""
        path = self.folder / NAME
        with closing(sqlite3.connect(path)) as connection:
            [(page,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        octets = bytearray(path.read_bytes())
        octets[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
        path.write_bytes(octets)

    async def examine(self) -> None:
        """Ask for every job, and compare."""
        for uuid, job in self.jobs.items():
            self.asked = uuid
            self.answers.clear()
            self.hear_client("asking", GET, uuid)
            deadline = self.loop.time() + ANSWER_S / 4
            while not self.is_answered(uuid, job) and self.loop.time() < deadline:
                await asyncio.sleep(0)
            self.check(
                self.is_answered(uuid, job),
                f"{uuid} {job.state}, ended: {job.parts}, but GET is answered {self.answers}",
            )
            self.nothing_is_wrong()
            self.compare(uuid, job)
        self.nothing_is_wrong()

    def is_answered(self, uuid: str, job: ModelJob) -> bool:
        """Return whether there is an answer, and the end of each part whose end the model knows."""
        if not self.answers:
            return False
        refused = self.answers[0][1] >= 400 and not ends_of(self.answers[0][2])
        told = {slot for _, _, body in self.answers for slot in ends_of(body)}
        pending = {
            entry for _, status, body in self.answers if status == 300 for entry in [body.get("worker", "")]
        }
        return refused or set(job.parts) <= told | pending

    def compare(self, uuid: str, job: ModelJob) -> None:
        status, body = self.answers[0][1:]
        error = str(body.get("errors", ""))
        unknown, deleted = "unknown" in error, "deleted" in error
        if job.state == "acknowledged":
            self.check(
                not unknown and not deleted, f"{uuid} was acknowledged, and is answered {status}: {error}"
            )
        elif job.state == "deleted":
            self.check(deleted, f"{uuid} was deleted, and is answered {status}")
        elif job.state == "refused":
            self.check(unknown, f"{uuid} was refused, and is answered {status}")
        elif unknown:
            job.state = "refused"
        else:
            job.state = "deleted" if deleted else "acknowledged"
        if job.state == "acknowledged":
            ends = {slot: end for _, _, body in self.answers for slot, end in ends_of(body).items()}
            for slot, end in job.parts.items():
                self.check(
                    ends.get(slot) == end, f"{uuid} had ended at {slot}, and the end is {ends.get(slot)}"
                )
            for slot, end in ends.items():
                job.parts.setdefault(slot, end)

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert not self.faults, "\n".join([*self.faults, *self.history])

    def teardown(self) -> None:
        if self.serving is not None and not self.serving._closed:
            self.run(self.kill())
        self.loop.close()
        shutil.rmtree(self.folder)


def ends_of(body: Any) -> dict[str, Any]:
    """Return the entries of workers in the body of a RESPONSE: the end of their parts."""
    return {slot: entry for slot, entry in body.items() if isinstance(entry, dict) and "failed" in entry}


def test_any_history_of_a_broker() -> None:
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=HISTORIES,
            stateful_step_count=50,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
