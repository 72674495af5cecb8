"""The broker over real sockets, with peers that say one message at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.runtime.norfab import commands
from specwire.runtime.norfab.events import JobDeleted, WorkerGone
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.serve.events import Began, Managed
from specwire.runtime.norfab.wire import Dialect
from tests.integration.norfab_scene import SETTINGS, Heard, crowd_at, run, serving_broker


@pytest.mark.parametrize("dialect", [Dialect.DEPLOYED, Dialect.NORFAB])
def test_job_goes_to_its_worker_and_its_result_to_the_client(tmp_path: Path, dialect: Dialect) -> None:
    """POST, 202, POST to the worker, 201 and 200; each in the dialect of its peer."""

    async def story() -> None:
        async with serving_broker(tmp_path) as (broker, watch), crowd_at(broker.endpoints[0]) as crowd:
            worker, client = crowd.worker(dialect=dialect), crowd.client()
            await worker.register()
            client.post("j1")
            job = await worker.take_job()
            assert job.client == b"c1"
            assert (await client.answer("j1", 202))["workers"] == ["w1"]
            worker.end_job(job, 42)
            assert (await client.answer("j1", 200))["w1"]["result"] == 42
            assert watch.seen["B:PostWorker"] == 1

    run(story)


def test_large_bodies_pass(tmp_path: Path) -> None:
    """Ten megabytes there and back."""

    async def story() -> None:
        async with serving_broker(tmp_path) as (broker, _), crowd_at(broker.endpoints[0]) as crowd:
            worker, client = crowd.worker(), crowd.client()
            await worker.register()
            await client.manage("show_workers")  # a first message may not be that large
            client.post("j1", kwargs={"text": "x" * 10_000_000})
            job = await worker.take_job()
            assert len(job.body) > 10_000_000
            worker.end_job(job, "y" * 10_000_000)
            assert len((await client.answer("j1", 200))["w1"]["result"]) == 10_000_000

    run(story)


def test_worker_that_hangs_up_is_lost_at_once(tmp_path: Path) -> None:
    """The next KEEPALIVE finds nobody: no expiry is waited for, and its job fails with the cause."""

    async def story() -> None:
        heard = Heard()
        async with (
            serving_broker(tmp_path, heard=heard) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            worker, client = crowd.worker(), crowd.client()
            await worker.register()
            client.post("j1")
            await worker.take_job()
            worker.close()
            gone = await heard.until(WorkerGone)
            assert gone.worker == "w1"
            assert "connected" in gone.reason
            assert "w1" in (await client.answer("j1", 500))["errors"][0]

    run(story)


def test_front_and_back_are_two_sockets(tmp_path: Path) -> None:
    """Workers come in at the back alone, clients at the front alone; the same name may be at both."""

    async def story() -> None:
        async with serving_broker(tmp_path, back="tcp://127.0.0.1:*") as (broker, _):
            [front], [back] = broker.endpoints, broker.back
            async with crowd_at(front) as clients, crowd_at(back) as workers:
                stranger = clients.worker("w9")
                stranger.say(commands.Ready("svc"))
                worker, client = workers.worker("both"), clients.client("both")
                await worker.register()
                client.post("j1")
                job = await worker.take_job()
                worker.end_job(job)
                assert (await client.answer("j1", 202))["workers"] == ["both"]
                await client.answer("j1", 200)
                assert [row["name"] for row in await client.manage("show_workers")] == ["both"]

    run(story)


def test_broker_listens_at_several_endpoints(tmp_path: Path) -> None:
    """A worker at one and a client at another are of the same broker."""

    async def story() -> None:
        endpoints = ["tcp://127.0.0.1:*", f"ipc://{tmp_path}/b"]
        async with (
            serving_broker(tmp_path, endpoint=endpoints) as (broker, _),
            crowd_at(broker.endpoints[0]) as here,
            crowd_at(broker.endpoints[1]) as there,
        ):
            worker, client = here.worker(), there.client()
            await worker.register()
            client.post("j1")
            worker.end_job(await worker.take_job())
            await client.answer("j1", 200)

    run(story)


def test_restart_keeps_endpoint_and_jobs(tmp_path: Path) -> None:
    """Management's restart: the worker is told, comes back, and the job goes on where it was."""

    async def story() -> None:
        heard = Heard()
        async with (
            serving_broker(tmp_path, heard=heard) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            [endpoint] = broker.endpoints
            worker, client = crowd.worker(), crowd.client()
            await worker.register()
            client.post("j1", target="any")
            job = await worker.take_job()
            await client.answer("j1", 202)
            assert await client.manage("restart") == {"status": "restarting"}
            await worker.hear(commands.Disconnect)
            await heard.until(Began, lambda began: began.jobs == 1)
            again, asking = crowd.worker(), crowd.client()
            await again.register()
            assert broker.endpoints == (endpoint,)
            asking.say(commands.Get("j1", b"{}", "svc", "all"))
            await asking.answer("j1", 300)
            again.end_job(job)
            await asking.answer("j1", 200)

    run(story)


def test_shutdown_ends_the_broker(tmp_path: Path) -> None:
    """Management's shutdown is what `finished` waits for."""

    async def story() -> None:
        async with serving_broker(tmp_path) as (broker, _), crowd_at(broker.endpoints[0]) as crowd:
            client = crowd.client()
            assert await client.manage("shutdown") == {"status": "stopping"}
            assert await broker.finished() == "shutdown was asked for"
            await client.until_lost()

    run(story)


def test_what_clients_do_to_the_broker_is_told(tmp_path: Path) -> None:
    """Management that acts, and deletions, with who wanted it; questions are nobody's news."""

    async def story() -> None:
        heard = Heard()
        async with (
            serving_broker(tmp_path, heard=heard) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            worker, client = crowd.worker(), crowd.client()
            await worker.register()
            client.post("j1")
            await client.answer("j1", 202)
            client.say(
                commands.Delete("unknown", b"{}", "svc", "all"), commands.Delete("j1", b"{}", "svc", "all")
            )
            await client.answer("j1", 200)
            await client.manage("show_workers")
            await client.manage("disconnect", "m2")
            assert heard.of(JobDeleted) == [JobDeleted("j1", b"c1", "")]
            assert [(told.task, told.allowed) for told in heard.of(Managed)] == [("disconnect", True)]

    run(story)


def test_listener_that_fails_costs_no_job(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """What is told of events is no part of the broker's work; the log has the fault."""

    def fail(event: object) -> None:
        raise RuntimeError("a listener's own fault")

    async def story() -> None:
        async with (
            NorfabBroker(folder=tmp_path, settings=SETTINGS, on_event=fail) as broker,
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            worker, client = crowd.worker(), crowd.client()
            await worker.register()
            client.post("j1")
            worker.end_job(await worker.take_job())
            await client.answer("j1", 200)

    run(story)
    assert "a listener's own fault" in caplog.text
