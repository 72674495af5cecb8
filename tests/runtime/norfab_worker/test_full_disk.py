"""A worker whose disk fails and recovers, and what is on it when a task starts, with a small broker on a real socket."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab import wire
from specwire.runtime.norfab.commands import Command, Delete, Get, Open, Post, Ready, Response
from specwire.runtime.norfab.pendingcommits import StoreRecovered
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.norfab.worker import NorfabWorker, WorkerSettings, task
from specwire.runtime.norfab.worker import serve as serve_module
from specwire.runtime.norfab.worker.events import Happening, StoreFailed
from specwire.runtime.norfab.worker.restoring import INTERRUPTED
from specwire.runtime.norfab.worker.store import WorkerStore
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.router import Router
from tests.runtime.kernel.store.stores import FULL, Disk, as_killed, fault, run
from tests.runtime.norfab_worker.laboratory import job

CONSTRAINT = fault(sqlite3.SQLITE_CONSTRAINT, "CHECK constraint failed")
SETTINGS = WorkerSettings(acknowledge_s=0.0, drain_s=0.5, disk_s=0.5)


class Plugin:
    """Tasks that wait for the test.

    Attributes:
        started: how often `wait` has started.
        on_start: called in its thread.
    """

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.started = 0
        self.on_start: Callable[[], object] = lambda: None

    @task
    def add(self) -> int:
        """Return at once."""
        return 5

    @task
    def wait(self) -> str:
        """Return when the gate is open."""
        self.on_start()
        self.started += 1
        assert self.gate.wait(30)
        return "done"


class Scene:
    """A worker, its disk, its events, and a broker.

    Attributes:
        responses: those that the broker has received, in order.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.disk, self.plugin = Disk(), Plugin()
        self.events: list[Happening] = []
        self.responses: list[Response] = []
        self.ready = False
        self._context = TransportContext()
        self._router = Router(
            self._context,
            on_message=self._receive,
            on_sent=lambda peer, frames: None,
            on_room=lambda peer: None,
            on_gone=lambda peer, reason: None,
        )
        self.endpoint = self._router.bind("tcp://127.0.0.1:*")

    def _receive(self, peer: bytes, frames: list[bytes]) -> None:
        command = wire.decode(frames).command
        if isinstance(command, Ready):
            self.send(Open())
            self.ready = True
        elif isinstance(command, Response):
            self.responses.append(command)

    def send(self, command: Command) -> None:
        """Send a command to the worker."""
        self._router.send(b"w1", wire.encode(command, Dialect.DEPLOYED, "broker", "worker"))

    def post(self, uuid: str, name: str = "add") -> None:
        """Send a job."""
        self.send(Post(uuid, job(name), client=b"c1"))

    async def status(self, uuid: str, number: int = 1) -> int:
        """Wait until a job has so many responses; return the status of the last one."""
        await self.until(lambda: len(self.of(uuid)) >= number)
        return self.of(uuid)[-1].status

    def of(self, uuid: str) -> list[Response]:
        """Return the responses about a job."""
        return [response for response in self.responses if response.uuid == uuid]

    def entry(self, uuid: str) -> Any:
        """Return the worker's entry of the last response about a job."""
        return json.loads(self.of(uuid)[-1].body)["w1"]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is true."""
        while not condition():
            await asyncio.sleep(0.005)

    def count(self, kind: type[Happening]) -> int:
        """Return the number of events of one kind."""
        return sum(isinstance(event, kind) for event in self.events)

    async def close(self) -> None:
        """Close the socket."""
        self.plugin.gate.set()
        self._router.close()
        await self._context.close()


@asynccontextmanager
async def scene_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """Run a worker and a broker."""
    scene = Scene(folder)
    store = partial(WorkerStore, connect=scene.disk.connect, probe_s=0.02)
    monkeypatch.setattr(serve_module, "WorkerStore", store)
    worker = NorfabWorker(
        scene.endpoint,
        "w1",
        "svc",
        scene.plugin,
        folder=folder,
        settings=SETTINGS,
        on_event=scene.events.append,
    )
    try:
        async with worker:
            await scene.until(lambda: scene.ready)
            yield scene
            scene.plugin.gate.set()
    finally:
        await scene.close()


def test_jobs_are_refused_while_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result of a job that ended meanwhile is sent when it is stored."""

    async def story() -> None:
        async with scene_at(tmp_path, monkeypatch) as scene:
            scene.post("j1", "wait")
            assert await scene.status("j1") == 201
            scene.disk.fail(FULL, at="INSERT")
            scene.post("j2")
            assert await scene.status("j2") == 500
            assert scene.entry("j2")["errors"] == [
                "the worker cannot store the job: database or disk is full"
            ]
            scene.plugin.gate.set()
            for number in range(3, 10):
                scene.post(f"j{number}")
                assert await scene.status(f"j{number}") == 500
            assert [response.status for response in scene.of("j1")] == [201]
            assert scene.count(StoreFailed) >= 1 and not scene.count(StoreRecovered)
            scene.disk.recover()
            assert await scene.status("j1", 2) == 200
            assert scene.entry("j1")["result"] == "done"
            await scene.until(lambda: scene.count(StoreRecovered))
            scene.post("j2")
            assert await scene.status("j2", 3) == 200
            assert scene.entry("j2")["result"] == 5

    run(story)


def test_a_result_that_is_faulty_is_replaced_by_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with scene_at(tmp_path, monkeypatch) as scene:
            scene.post("j1", "wait")
            assert await scene.status("j1") == 201
            scene.disk.fail(CONSTRAINT, at="INSERT INTO result", times=1)
            scene.plugin.gate.set()
            assert await scene.status("j1", 2) == 500
            [error] = scene.entry("j1")["errors"]
            assert error == "the worker cannot store the result: CHECK constraint failed"
            assert scene.events.count(StoreFailed("CHECK constraint failed")) == 1
            stored = scene.of("j1")[-1].body
            scene.send(Get("j1", client=b"c1"))
            await scene.status("j1", 3)
            assert scene.of("j1")[-1].body == stored

    run(story)


def test_a_deletion_that_is_not_stored_leaves_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with scene_at(tmp_path, monkeypatch) as scene:
            scene.post("j1")
            assert await scene.status("j1", 2) == 200
            scene.disk.fail(FULL, at="INSERT")
            scene.send(Delete("j1", client=b"c1"))
            assert await scene.status("j1", 3) == 500
            assert b"cannot store that the job is deleted" in scene.of("j1")[-1].body
            scene.send(Get("j1", client=b"c1"))
            assert await scene.status("j1", 4) == 200
            assert scene.entry("j1")["result"] == 5
            scene.disk.recover()
            await scene.until(lambda: scene.count(StoreRecovered))
            scene.send(Delete("j1", client=b"c1"))
            assert await scene.status("j1", 5) == 200
            scene.send(Get("j1", client=b"c1"))
            assert await scene.status("j1", 6) == 400

    run(story)


def test_results_that_the_disk_never_takes_are_reported_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with scene_at(tmp_path, monkeypatch) as scene:
            scene.post("j1", "wait")
            assert await scene.status("j1") == 201
            scene.disk.fail(FULL, at="INSERT")
            scene.plugin.gate.set()
        assert [response.status for response in scene.of("j1")] == [201]
        failures = [event.reason for event in scene.events if isinstance(event, StoreFailed)]
        assert any("is closed: database or disk is full" in reason for reason in failures)

    run(story)


@pytest.mark.parametrize("before", [0, 1])
def test_that_a_job_begins_is_on_the_disk_when_its_task_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """A process that is killed at that moment never starts it again, whether the job had to wait for a place or not."""

    async def story() -> None:
        async with scene_at(tmp_path / "w", monkeypatch) as scene:
            waiting = [f"j{number}" for number in range(before)]
            for uuid in waiting:
                scene.post(uuid, "wait")
                assert await scene.status(uuid) == 201
            while scene.plugin.started < before:  # in its thread, a moment after it was accepted
                await asyncio.sleep(0.001)
            scene.plugin.on_start = lambda: as_killed(tmp_path / "w", tmp_path / "killed")
            scene.post("last", "wait")
            assert await scene.status("last") == 201
            scene.plugin.gate.set()
            await scene.status("last", 2)
        async with scene_at(tmp_path / "killed", monkeypatch) as scene:
            scene.send(Get("last", client=b"c1"))
            assert await scene.status("last") == 500
            assert scene.entry("last")["errors"] == [INTERRUPTED]
            assert scene.plugin.started == 0

    run(story)


def test_a_job_whose_begin_record_is_not_on_the_disk_starts_when_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with scene_at(tmp_path / "w", monkeypatch) as scene:
            scene.post("j1", "wait")
            scene.post("j2", "wait")
            assert await scene.status("j2") == 201
            scene.disk.stop_at("COMMIT")
            scene.plugin.gate.set()
            await scene.disk.stopped()
            as_killed(tmp_path / "w", tmp_path / "killed")
            assert scene.plugin.started == 1
            scene.disk.gate.set()
            assert await scene.status("j2", 2) == 200
            assert scene.plugin.started == 2
        async with scene_at(tmp_path / "killed", monkeypatch) as scene:
            scene.plugin.gate.set()
            scene.send(Get("j2", client=b"c1"))
            assert await scene.status("j2", 2) == 200
            assert scene.entry("j2")["result"] == "done"
            assert scene.plugin.started == 1

    run(story)
