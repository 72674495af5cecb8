"""A worker in this process at a real broker: jobs, losses, returns, and the list of brokers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab import commands
from specwire.runtime.norfab.commands import Delete, Event, Get, Mmi, Response
from specwire.runtime.norfab.worker import NorfabWorker, WorkerSettings
from specwire.runtime.norfab.worker.events import Connected, Happening
from tests.integration.norfab_plugin import Fleet
from tests.integration.norfab_scene import RawPeer, crowd_at, job_body, run, serving_broker
from tests.integration.norfab_watch import NorfabWatch

pytestmark = pytest.mark.peers

SETTINGS = WorkerSettings(keepalive_s=0.5, liveness=60, drain_s=20.0, acknowledge_s=0.0)


class Notes:
    """What happened in a worker, which a test can wait for."""

    def __init__(self) -> None:
        self.all: list[Happening] = []
        self._changed = asyncio.Event()

    def __call__(self, happening: Happening) -> None:
        """Take a happening."""
        self.all.append(happening)
        self._changed.set()

    async def connected(self, times: int = 1) -> Connected:
        """Wait until the worker has been registered so often; return the last time."""
        while True:
            found = [happening for happening in self.all if isinstance(happening, Connected)]
            if len(found) >= times:
                return found[-1]
            self._changed.clear()
            await self._changed.wait()


@asynccontextmanager
async def serving_worker(
    endpoints: str | list[str], folder: Path, name: str = "w1", **given: Any
) -> AsyncIterator[tuple[NorfabWorker, Notes]]:
    """Run a worker, whose dialog is watched, and wait until it is registered."""
    watch, notes = NorfabWatch("W"), Notes()
    given.setdefault("settings", SETTINGS)
    worker = NorfabWorker(endpoints, name, "svc", Fleet, folder=folder, tap=watch, on_event=notes, **given)
    async with worker:
        await notes.connected()
        yield worker, notes
    assert not watch.faults, watch.faults


async def entry(client: RawPeer, uuid: str, worker: str = "w1") -> Any:
    """Wait for the end of a job; return the worker's entry."""
    return (await client.answer(uuid, 200))[worker]


def test_jobs_of_all_kinds(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            async with serving_worker(endpoint, tmp_path / "worker"), crowd_at(endpoint) as crowd:
                client = crowd.client()
                client.post("j1", task="add", args=[1], kwargs={"b": 4})
                assert (await client.answer("j1", 202))["workers"] == ["w1"]
                assert (await client.answer("j1", 201))["worker"] == "w1"
                assert (await entry(client, "j1"))["result"] == 5
                client.post("j2", task="add", args=["no number"])
                assert (await entry(client, "j2"))["errors"] == [
                    "wrong arguments: argument 'a': Expected `int`, got `str`"
                ]
                client.post("j3", task="print_and_leave")
                assert (await entry(client, "j3"))["errors"] == ["the task called sys.exit(5)"]
                client.post("j4", task="large", args=[3 << 20])
                assert len((await entry(client, "j4"))["result"]) == 3 << 20
                client.post("j5", task="list_tasks")
                assert "add" in [found["name"] for found in (await entry(client, "j5"))["result"]]
                client.post("j6", task="wait_softly", args=[str(tmp_path)])
                event = await client.hear(Event)
                assert b'"message":"waiting softly"' in event.body
                assert (await entry(client, "j6"))["result"] == "it is there"

    run(story)


def test_the_octet_dialect(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            async with (
                serving_worker(endpoint, tmp_path / "worker", protocol="norfab"),
                crowd_at(endpoint) as crowd,
            ):
                client = crowd.client()
                client.post("j1", task="add", args=[1])
                assert (await entry(client, "j1"))["result"] == 2

    run(story)


def test_a_task_that_blocks_does_not_cost_the_registration(tmp_path: Path) -> None:
    """Signs of life go on both ways, and management is answered, while a task heeds nothing."""

    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            quick = WorkerSettings(keepalive_s=0.05, liveness=200)
            async with (
                serving_worker(endpoint, tmp_path / "worker", settings=quick) as (_, notes),
                crowd_at(endpoint) as crowd,
            ):
                client = crowd.client()
                ready = tmp_path / "ready"
                client.post("j1", task="wait_for", args=[str(ready)])
                await client.answer("j1", 201)
                worker = broker.engine.registry.workers["w1"]
                before = worker.keepalives_in
                client.say(Mmi("m1", b'{"task":"show_worker"}', "mmi.service.worker", "w1"))
                assert (await client.answer("m1", 200))["w1"]["jobs running"] == 1
                while worker.keepalives_in < before + 3:
                    await asyncio.sleep(0.01)
                ready.touch()
                assert (await entry(client, "j1"))["result"] == "it is there"
                assert len([note for note in notes.all if isinstance(note, Connected)]) == 1

    run(story)


def test_delete_cancels_what_runs(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            async with serving_worker(endpoint, tmp_path / "worker"), crowd_at(endpoint) as crowd:
                client = crowd.client()
                client.post("j1", task="wait_for", args=[str(tmp_path / "never")])
                await client.hear(Event)
                client.say(Delete("j1", service="svc", target="all"))
                await client.hear(Response, lambda said: said.uuid == "j1" and b"DELETED" in said.body)
                client.post("j2", task="add", args=[1])
                assert (await entry(client, "j2"))["result"] == 2

    run(story)


def test_the_worker_moves_on_to_the_next_broker(tmp_path: Path) -> None:
    async def story() -> None:
        settings = WorkerSettings(keepalive_s=0.2, liveness=100, patience_s=0.3)
        async with serving_broker(tmp_path / "second") as (second, _):
            async with serving_broker(tmp_path / "first") as (first, _):
                endpoints = [first.endpoints[0], second.endpoints[0]]
                holder = serving_worker(endpoints, tmp_path / "worker", settings=settings)
                _, notes = await holder.__aenter__()
                assert (await notes.connected()).broker == endpoints[0]
                async with crowd_at(endpoints[0]) as crowd:
                    client = crowd.client()
                    client.post("j1", task="add", args=[1])
                    await entry(client, "j1")
            while (await notes.connected()).broker != endpoints[1]:
                await notes.connected(len([n for n in notes.all if isinstance(n, Connected)]) + 1)
            async with crowd_at(endpoints[1]) as crowd:
                client = crowd.client()
                client.post("j2", task="add", args=[2])
                assert (await entry(client, "j2"))["result"] == 3
                # What was done for the first broker can be asked for at the second.
                client.say(Get("j1", service="svc", target="all"))
                assert (await entry(client, "j1"))["result"] == 2
            await holder.__aexit__(None, None, None)

    run(story)


def test_a_worker_that_stops_finishes_what_runs_and_hands_the_rest_over(tmp_path: Path) -> None:
    async def story() -> None:
        ready = tmp_path / "ready"
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            async with crowd_at(endpoint) as crowd:
                client = crowd.client()
                first = serving_worker(endpoint, tmp_path / "w1", "w1")
                worker, _ = await first.__aenter__()
                client.post("j1", task="wait_for", args=[str(ready)], target="any")
                await client.hear(Event)
                client.post("j2", task="add", args=[1], target="any")
                await client.answer("j2", 201)
                async with serving_worker(endpoint, tmp_path / "w2", "w2"):
                    stopping = asyncio.create_task(worker.stop())
                    await asyncio.sleep(0)  # it has begun, and has taken j2 back, before j1 may end
                    ready.touch()
                    assert (await entry(client, "j1"))["result"] == "it is there"
                    await stopping
                    said = await client.answer("j2", 200)
                    assert said["w1"]["result"] == 2
                    assert (said["w1"]["worker"], said["w1"]["attempt"]) == ("w2", 2)

    run(story)


def test_resources_change_at_run_time(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            async with (
                serving_worker(endpoint, tmp_path / "w1", "w1", resources=["r1"]),
                serving_worker(endpoint, tmp_path / "w2", "w2", resources=["r2"]),
                crowd_at(endpoint) as crowd,
            ):
                client = crowd.client()
                client.post("j1", task="add", args=[1], resources=["r1"])
                assert (await client.answer("j1", 202))["workers"] == ["w1"]
                client.post("j2", task="manage", args=[["r1", "r3"]], target="w2")
                assert (await entry(client, "j2", "w2"))["result"] == ["r1", "r3"]
                while broker.engine.registry.workers["w2"].resources != {"r1", "r3"}:
                    await asyncio.sleep(0.01)
                client.post("j3", task="add", args=[1], resources=["r1"])
                assert sorted((await client.answer("j3", 202))["workers"]) == ["w1", "w2"]

    run(story)


def test_management_of_a_worker(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            async with (
                serving_worker(endpoint, tmp_path / "worker") as (worker, notes),
                crowd_at(endpoint) as crowd,
            ):
                client = crowd.client()
                client.say(Mmi("m1", b'{"task":"disconnect"}', "mmi.service.worker", "w1"))
                assert (await client.answer("m1", 200))["w1"] == {"status": "reconnecting"}
                await notes.connected(2)
                client.post("j1", task="add", args=[1])
                assert (await entry(client, "j1"))["result"] == 2
                client.say(Mmi("m2", b'{"task":"restart"}', "mmi.service.worker", "w1"))
                assert (await client.answer("m2", 200))["w1"] == {"status": "restarting"}
                assert await worker.run() is True

    run(story)


def test_files_and_inventory_of_the_broker(tmp_path: Path) -> None:
    pytest.importorskip("yaml")

    async def story() -> None:
        (tmp_path / "files").mkdir()
        (tmp_path / "files" / "motd.txt").write_text("hello")
        (tmp_path / "inventory.yaml").write_text("workers:\n  'w*':\n    - {site: here}\n")
        async with serving_broker(
            tmp_path / "broker", files=tmp_path / "files", inventory=tmp_path / "inventory.yaml"
        ) as (broker, _):
            endpoint = broker.endpoints[0]
            async with serving_worker(endpoint, tmp_path / "worker"), crowd_at(endpoint) as crowd:
                client = crowd.client()
                client.post("j1", task="read", args=["nf://motd.txt"])
                assert (await entry(client, "j1"))["result"] == "hello"
                client.post("j2", task="read", args=["nf://../inventory.yaml"])
                assert (await entry(client, "j2"))["failed"]
                client.post("j3", task="inventory")
                assert (await entry(client, "j3"))["result"]["site"] == "here"

    run(story)


def test_a_scripted_broker_that_dies_and_returns(tmp_path: Path) -> None:
    """Without a word, and on the same endpoint: the worker registers again, and its result is there when asked for."""
    from specwire.runtime.norfab import wire
    from specwire.runtime.norfab.wire import Dialect
    from specwire.runtime.transport.context import TransportContext
    from specwire.runtime.transport.router import Router

    class Broker:
        def __init__(self, endpoint: str) -> None:
            self.context = TransportContext()
            self.got: asyncio.Queue[Any] = asyncio.Queue()
            self.router = Router(
                self.context,
                on_message=lambda peer, frames: self.got.put_nowait(wire.decode(frames).command),
                on_sent=lambda peer, frames: None,
                on_room=lambda peer: None,
                on_gone=lambda peer, reason: None,
            )
            self.endpoint = self.router.bind(endpoint)

        def say(self, command: commands.Command) -> None:
            self.router.send(b"w1", wire.encode(command, Dialect.DEPLOYED, "broker", "worker"))

        async def hear(self, kind: type[Any]) -> Any:
            while not isinstance(command := await self.got.get(), kind):
                pass
            return command

        async def die(self) -> None:
            self.router.close()
            await self.context.close()

    async def story() -> None:
        broker = Broker("tcp://127.0.0.1:*")
        watch = NorfabWatch("W")
        async with NorfabWorker(
            broker.endpoint, "w1", "svc", Fleet, folder=tmp_path / "w", settings=SETTINGS, tap=watch
        ):
            await broker.hear(commands.Ready)
            broker.say(commands.Keepalive("svc"))
            file = tmp_path / "ready"
            broker.say(commands.Post("j1", job_body("wait_for", args=[str(file)]), client=b"c1"))
            assert (await broker.hear(Response)).status == 201
            await broker.hear(Event)
            await broker.die()
            file.touch()
            again = Broker(broker.endpoint)
            await again.hear(commands.Ready)
            again.say(Get("j1", client=b"c1"))
            reply = await again.hear(Response)
            while reply.status == 300:
                again.say(Get("j1", client=b"c1"))
                reply = await again.hear(Response)
            assert (reply.status, reply.client) == (200, b"c1")
            assert b'"result":"it is there"' in reply.body
            await again.die()
        assert watch.faults == []

    run(story)
