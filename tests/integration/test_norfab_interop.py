"""The real norfab 0.25.0 with ours: its clients and workers at our broker, ours at its broker, and what it is known to get wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab import events
from specwire.runtime.norfab.client import NorfabClient
from specwire.runtime.norfab.worker import Job, NorfabWorker, task
from tests.integration.norfab_real import NotInstallableError, RealPeer, python_with_norfab, real_peer
from tests.integration.norfab_scene import Heard, run, serving_broker
from tests.integration.norfab_watch import NorfabWatch

SERVICE = "sums"


@pytest.fixture(scope="module")
def python() -> Path:
    """Return the Python of an environment with the real package."""
    try:
        return python_with_norfab()
    except NotInstallableError as error:
        pytest.skip(str(error))


class Sums:
    """The tasks that `norfab_real_peer` has."""

    @task
    def add(self, a: int, b: int) -> int:
        """Return the sum."""
        return a + b

    @task
    async def slow(self, seconds: float) -> str:
        """Take so long."""
        await asyncio.sleep(seconds)
        return "slept"

    @task
    def noisy(self, job: Job, count: int) -> int:
        """Say so many things."""
        for number in range(count):
            job.progress(f"step {number}")
        return count

    @task
    def broken(self) -> None:
        """Fail."""
        raise RuntimeError("it is broken")


@asynccontextmanager
async def our_worker(endpoint: str, name: str, folder: Path) -> AsyncIterator[NorfabWorker]:
    """Run a worker of ours; what it says is watched."""
    watch = NorfabWatch("W")
    async with NorfabWorker(endpoint, name, SERVICE, Sums, folder=folder / name, tap=watch) as worker:
        yield worker
    assert not watch.faults, watch.faults


@asynccontextmanager
async def our_client(endpoint: str, folder: Path) -> AsyncIterator[NorfabClient]:
    """Run a client of ours; what it says is watched."""
    watch = NorfabWatch("C")
    async with NorfabClient(endpoint, name="ours", folder=folder / "ours", tap=watch) as client:
        yield client
    assert not watch.faults, watch.faults


def real_worker(python: Path, endpoint: str, name: str, folder: Path) -> Any:
    """Run a worker of theirs."""
    return real_peer(python, "worker", folder / name, endpoint, name, SERVICE)


def real_client(python: Path, endpoint: str, folder: Path, name: str = "theirs") -> Any:
    """Run a client of theirs."""
    return real_peer(python, "client", folder / name, endpoint, name)


async def until_ready(heard: Heard, *names: str) -> None:
    """Wait until these workers are registered at our broker."""
    for name in names:

        def is_meant(ready: events.WorkerReady, name: str = name) -> bool:
            return ready.worker == name

        await heard.until(events.WorkerReady, is_meant)


async def names_at(client: NorfabClient) -> set[str]:
    """Return which workers a broker has."""
    return {row["name"] for row in await client.manage("mmi.service.broker", "show_workers")}


async def run_job(
    client: RealPeer,
    job: str,
    target: object = "all",
    timeout: float = 30,
    uuid: str | None = None,
    **kwargs: Any,
) -> Any:
    """Have their client do a job."""
    return await client.call(
        "run_job", service=SERVICE, task=job, kwargs=kwargs, workers=target, timeout=timeout, uuid=uuid
    )


def test_their_client_at_our_broker_with_our_workers(tmp_path: Path, python: Path) -> None:
    """Every target, a failure, progress, and all of the management that their client knows."""

    async def story() -> None:
        heard = Heard()
        inventory = tmp_path / "inventory.yaml"
        inventory.write_text("workers:\n  'w*':\n    - colour: green\n")
        async with (
            serving_broker(tmp_path / "b", heard=heard, inventory=inventory) as (broker, watch),
            our_worker(broker.endpoints[0], "w1", tmp_path),
            our_worker(broker.endpoints[0], "w2", tmp_path),
        ):
            await until_ready(heard, "w1", "w2")
            async with real_client(python, broker.endpoints[0], tmp_path) as client:
                for target, names in (("all", {"w1", "w2"}), (["w2"], {"w2"}), ("w1", {"w1"})):
                    results = await run_job(client, "add", target, a=2, b=3)
                    assert set(results) == names
                    assert all(entry["result"] == 5 and not entry["failed"] for entry in results.values())
                assert len(await run_job(client, "add", "any", a=2, b=3)) == 1
                broken = (await run_job(client, "broken", "w1"))["w1"]
                assert broken["failed"]
                assert "it is broken" in "".join(broken["errors"])
                assert (await run_job(client, "noisy", "w1", count=3))["w1"]["result"] == 3
                assert watch.seen["B:EventClient"] >= 3
                assert (await run_job(client, "no_such_task", "w1"))["w1"]["failed"]

                async def ask(job: str, service: str = "mmi.service.broker", **kwargs: Any) -> Any:
                    said = await client.call("mmi", service=service, task=job, kwargs=kwargs, timeout=20)
                    assert said["status"] == "200", said
                    return said["results"]

                assert {row["name"] for row in await ask("show_workers")} == {"w1", "w2"}
                for job in ("get_stats", "get_status", "show_broker_version", "get_logs"):
                    assert await ask(job) is not None
                assert "workers" in str(await ask("show_broker_inventory"))
                assert set(await ask("show_workers", "mmi.service.worker")) == {"w1", "w2"}
                assert (await ask("get_inventory", "sid.service.broker", name="w1"))["colour"] == "green"

    run(story)


def test_their_workers_at_our_broker_with_our_client(tmp_path: Path, python: Path) -> None:
    """Results, a failure, events, a worker's own inventory, and a job for theirs and ours together."""

    async def story() -> None:
        heard = Heard()
        inventory = tmp_path / "inventory.yaml"
        inventory.write_text("workers:\n  'r*':\n    - colour: blue\n")
        async with serving_broker(tmp_path / "b", heard=heard, inventory=inventory) as (broker, _):
            endpoint = broker.endpoints[0]
            async with (
                real_worker(python, endpoint, "r1", tmp_path),
                our_worker(endpoint, "w1", tmp_path),
                our_client(endpoint, tmp_path) as client,
            ):
                await until_ready(heard, "r1", "w1")
                both = await client.run(SERVICE, "add", kwargs={"a": 2, "b": 3}, timeout=30)
                assert both.values() == {"r1": 5, "w1": 5}
                assert (await client.run(SERVICE, "colour", targets="r1", timeout=30)).values() == {
                    "r1": "blue"
                }
                broken = await client.run(SERVICE, "broken", targets="r1", timeout=30)
                assert "it is broken" in "".join(broken.results["r1"].errors)
                said: list[str] = []
                await client.run(
                    SERVICE, "noisy", targets="r1", kwargs={"count": 3}, timeout=30,
                    on_progress=lambda progress: said.append(progress.message),
                )  # fmt: skip
                assert [text for text in said if text.startswith("step")] == ["step 0", "step 1", "step 2"]
                many = [client.run(SERVICE, "add", n, n, targets="r1", timeout=40) for n in range(20)]
                assert [done.values()["r1"] for done in await asyncio.gather(*many)] == list(range(0, 40, 2))

    run(story)


def test_our_worker_and_client_at_their_broker(tmp_path: Path, python: Path) -> None:
    """Ours do with a broker that answers no OPEN, relays no DELETE, and wants to be asked for every result."""

    async def story() -> None:
        async with real_peer(python, "broker", tmp_path / "b", "tcp://127.0.0.1:*") as broker:
            endpoint = broker.ready["endpoint"]
            async with (
                our_worker(endpoint, "w1", tmp_path),
                real_worker(python, endpoint, "r1", tmp_path),
                our_client(endpoint, tmp_path) as client,
                real_client(python, endpoint, tmp_path) as theirs,
            ):
                while await names_at(client) != {"w1", "r1"}:
                    await asyncio.sleep(0.2)
                both = await client.run(SERVICE, "add", kwargs={"a": 2, "b": 3}, timeout=30)
                assert both.values() == {"r1": 5, "w1": 5}
                broken = await client.run(SERVICE, "broken", targets="w1", timeout=30)
                assert "it is broken" in "".join(broken.results["w1"].errors)
                results = await run_job(theirs, "add", a=4, b=4)
                assert {name: entry["result"] for name, entry in results.items()} == {"r1": 8, "w1": 8}
                assert (await run_job(theirs, "noisy", "w1", count=2))["w1"]["result"] == 2

    run(story)


def test_the_loss_of_their_worker_is_told_and_any_goes_to_another(tmp_path: Path, python: Path) -> None:
    """At their own broker all seven jobs of a worker that is killed stay STARTED for ever, and none goes to another."""

    async def story() -> None:
        heard = Heard()
        async with serving_broker(tmp_path / "b", heard=heard) as (broker, _):
            endpoint = broker.endpoints[0]
            async with (
                real_worker(python, endpoint, "r1", tmp_path) as lost,
                real_client(python, endpoint, tmp_path) as theirs,
                our_client(endpoint, tmp_path) as client,
            ):
                await heard.until(events.WorkerReady)
                named = [client.run(SERVICE, "slow", 30, targets="r1", timeout=50) for _ in range(7)]
                free = [client.run(SERVICE, "slow", 0.1, targets="any", timeout=50) for _ in range(3)]
                running = [asyncio.create_task(one) for one in (*named, *free)]
                asked = asyncio.create_task(run_job(theirs, "slow", "r1", 50, uuid="f" * 32, seconds=30))
                while len(heard.of(events.JobAccepted)) < 11:
                    await asyncio.sleep(0.05)
                async with our_worker(endpoint, "w1", tmp_path):
                    await until_ready(heard, "w1")
                    await lost.kill()
                    done = await asyncio.gather(*running)
                    assert all("r1" in "".join(one.results["r1"].errors) for one in done[:7])
                    assert all("slept" in one.values().values() for one in done[7:])
                    assert await asked is None
                    told = await theirs.call("job_db.get_job", uuid="f" * 32)
                    assert told["status"] == "FAILED"
                    assert "r1" in "".join(told["errors"])

    run(story)


def test_a_broker_that_begins_anew_loses_nothing_of_theirs(tmp_path: Path, python: Path) -> None:
    """At their own broker the finished job would be FAILED for its client, and workers away for 13 s."""

    async def story() -> None:
        heard = Heard()
        async with serving_broker(tmp_path / "b", heard=heard) as (broker, watch):
            endpoint = broker.endpoints[0]
            async with (
                real_worker(python, endpoint, "r1", tmp_path),
                real_client(python, endpoint, tmp_path) as theirs,
            ):
                await heard.until(events.WorkerReady)
                asked = asyncio.create_task(run_job(theirs, "slow", "r1", timeout=45, seconds=2))
                await heard.until(events.JobAccepted)
                await broker.stop()
                again = Heard()
                async with serving_broker(tmp_path / "b", endpoint=endpoint, heard=again, after=watch):
                    await until_ready(again, "r1")
                    assert (await asked)["r1"]["result"] == "slept"

    run(story)
