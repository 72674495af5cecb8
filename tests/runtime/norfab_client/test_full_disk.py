"""A client whose disk fails and recovers, with a small broker on a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import zmq
import zmq.asyncio

from specwire.runtime.norfab import wire
from specwire.runtime.norfab.client import JobError, NorfabClient, State
from specwire.runtime.norfab.client import session as session_module
from specwire.runtime.norfab.client.events import Happening, JobAccepted, StoreFailed
from specwire.runtime.norfab.client.store import DiskStore
from specwire.runtime.norfab.commands import Post, Response
from specwire.runtime.norfab.pendingcommits import StoreRecovered
from tests.runtime.kernel.store.stores import FULL, Disk, run


class Scene:
    """A client, its disk, its events, and a broker that accepts every job for the worker ``w1``.

    Attributes:
        posted: uuids of the jobs that the broker has received, in order.
    """

    def __init__(self) -> None:
        self.disk = Disk()
        self.events: list[Happening] = []
        self.posted: list[str] = []
        self.client: NorfabClient
        self._context = zmq.asyncio.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self.endpoint = f"tcp://127.0.0.1:{self._router.bind_to_random_port('tcp://127.0.0.1')}"
        self._peer = b""

    async def serve(self) -> None:
        """Accept jobs."""
        while True:
            self._peer, *frames = await self._router.recv_multipart()
            command = wire.read(frames)
            if isinstance(command, Post):
                self.posted.append(command.uuid)
                accepted = {"workers": ["w1"], "uuid": command.uuid, "status": "DISPATCHED"}
                await self.respond(command.uuid, 202, accepted)

    async def respond(self, uuid: str, status: int, body: dict[str, Any]) -> None:
        """Send a RESPONSE."""
        response = Response(uuid, status, json.dumps(body).encode(), "svc")
        frames = wire.encode(response, wire.Dialect.DEPLOYED, "broker", "client")
        await self._router.send_multipart([self._peer, *frames])

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until a condition is true."""
        while not condition():
            await asyncio.sleep(0.005)

    def count(self, kind: type[Happening]) -> int:
        """Return the number of events of one kind."""
        return sum(isinstance(event, kind) for event in self.events)

    def close(self) -> None:
        """Close the socket."""
        self._context.destroy(linger=0)


@asynccontextmanager
async def scene_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """Run a client and a broker."""
    scene = Scene()
    store = partial(DiskStore, connect=scene.disk.connect, probe_s=0.02)
    monkeypatch.setattr(session_module, "DiskStore", store)
    serving = asyncio.create_task(scene.serve())
    try:
        async with NorfabClient(scene.endpoint, folder=folder, on_event=scene.events.append) as scene.client:
            yield scene
    finally:
        serving.cancel()
        scene.close()


def test_jobs_are_refused_while_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`submit` raises and `run` returns a failure that names the reason. Both work again afterwards."""

    async def story() -> None:
        async with scene_at(tmp_path, monkeypatch) as scene:
            scene.disk.fail(FULL, at="INSERT")
            with pytest.raises(JobError, match="not sent: database or disk is full"):
                await scene.client.submit("svc", "add", uuid="u1")
            with pytest.raises(JobError, match="not sent: database or disk is full"):
                await scene.client.submit("svc", "add", uuid="u2")
            result = await scene.client.run("svc", "add")
            assert (result.state, result.code) == (State.FAILED, 500) and "disk is full" in result.error
            assert scene.count(StoreFailed) == 1 and not scene.count(StoreRecovered)
            scene.disk.recover()
            await scene.until(lambda: scene.count(StoreRecovered))
            assert await scene.client.submit("svc", "add", uuid="u1") == "u1"
            await scene.until(lambda: scene.posted)
            assert scene.posted == ["u1"]
            assert [entry.uuid for entry in await scene.client.history()] == ["u1"]

    run(story)


def test_results_are_stored_when_the_disk_recovers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their caller gets them at once."""

    async def story() -> None:
        async with scene_at(tmp_path, monkeypatch) as scene:
            await scene.client.submit("svc", "add", uuid="u1")
            await scene.until(lambda: scene.count(JobAccepted))
            scene.disk.fail(FULL, at="INSERT")
            with pytest.raises(JobError):
                await scene.client.submit("svc", "add", uuid="u2")
            collecting = asyncio.create_task(scene.client.collect("u1"))
            await asyncio.sleep(0)
            await scene.respond("u1", 200, {"w1": {"result": 5, "failed": False, "errors": []}})
            assert (await collecting).values() == {"w1": 5}
            assert not (await scene.client.look("u1")).results, "not stored yet"
            scene.disk.recover()
            await scene.until(lambda: scene.count(StoreRecovered))
            assert (await scene.client.look("u1")).values() == {"w1": 5}
        async with NorfabClient(scene.endpoint, folder=tmp_path) as client:
            result = await client.look("u1")
            assert result.state is State.COMPLETED and result.values() == {"w1": 5}

    run(story)


def test_results_that_are_lost_at_the_end_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is still full when the client stops. The next client asks the broker for the result."""

    async def story() -> None:
        async with scene_at(tmp_path, monkeypatch) as scene:
            await scene.client.submit("svc", "add", uuid="u1")
            await scene.until(lambda: scene.count(JobAccepted))
            await asyncio.sleep(0.3)  # the state is stored at the next tick
            scene.disk.fail(FULL, at="INSERT")
            collecting = asyncio.create_task(scene.client.collect("u1"))
            await asyncio.sleep(0)
            await scene.respond("u1", 200, {"w1": {"result": 5, "failed": False, "errors": []}})
            assert (await collecting).values() == {"w1": 5}
        failures = [event.reason for event in scene.events if isinstance(event, StoreFailed)]
        assert "records could not be stored" in failures[-1] and "full" in failures[-1]
        async with NorfabClient(scene.endpoint, folder=tmp_path, resume=False) as client:
            assert (await client.look("u1")).state is State.DISPATCHED

    run(story)
