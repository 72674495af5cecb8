"""The broker is killed in the middle of jobs and begins again: every acknowledged job ends, and none runs twice."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from specwire.runtime.norfab import commands
from tests.integration.filemq_process import kept_endpoint
from tests.integration.norfab_process import DiligentClient, DiligentWorker, connected, running_broker
from tests.integration.norfab_scene import crowd_at, run

JOBS = 300


@pytest.mark.parametrize("durability", ["process", "full"])
def test_jobs_outlive_brokers_that_are_killed(tmp_path: Path, durability: str) -> None:
    """Three kills during 300 jobs: each job has its result, and was begun once."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with crowd_at(endpoint) as crowd:
                worker = DiligentWorker(crowd)
                client = DiligentClient(crowd, [f"job-{number}" for number in range(JOBS)])
                tasks = [asyncio.create_task(worker.work()), asyncio.create_task(client.work())]
                for kill_at in (JOBS // 4, JOBS // 2, 3 * JOBS // 4):
                    async with running_broker(endpoint, tmp_path, "--durability", durability) as broker:
                        while len(client.ended) < kill_at:
                            await asyncio.sleep(0.001)
                        await broker.kill()
                async with running_broker(endpoint, tmp_path):
                    await tasks[1]
                tasks[0].cancel()
                assert {status for status, _ in client.ended.values()} == {200}
                assert len(client.ended) == JOBS
                assert set(worker.runs.values()) == {1}

    run(story)


def test_job_that_ended_while_there_was_no_broker_reaches_its_client(tmp_path: Path) -> None:
    """The real broker's fault: killed in the middle of a job, and the job that the worker finished failed for good."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with crowd_at(endpoint) as crowd:
                async with running_broker(endpoint, tmp_path) as broker:
                    worker = await connected(crowd, "w1", worker=True)
                    worker.say(commands.Ready("svc"))
                    client = await connected(crowd, "c1", worker=False)
                    client.post("j1")
                    job = await worker.take_job()
                    await client.answer("j1", 202)
                    await broker.kill()
                async with running_broker(endpoint, tmp_path):
                    again = await connected(crowd, "w1", worker=True)
                    again.say(commands.Ready("svc"))
                    asked = await again.hear(commands.Get)
                    assert (asked.uuid, asked.client) == ("j1", b"c1")
                    asking = await connected(crowd, "c1", worker=False)
                    asking.say(commands.Get("j1", b"{}", "svc", "all"))
                    again.end_job(job, "done meanwhile")
                    assert (await asking.answer("j1", 200))["w1"]["result"] == "done meanwhile"

    run(story)


def test_job_whose_worker_does_not_come_back_fails_with_the_cause(tmp_path: Path) -> None:
    """After the broker's return the worker is waited for as long as a silent one, and then the loss is told."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with crowd_at(endpoint) as crowd:
                async with running_broker(endpoint, tmp_path) as broker:
                    worker = await connected(crowd, "w1", worker=True)
                    worker.say(commands.Ready("svc"))
                    client = await connected(crowd, "c1", worker=False)
                    client.post("j1", target="w1")
                    await worker.take_job()
                    await client.answer("j1", 202)
                    worker.close()
                    await broker.kill()
                async with running_broker(endpoint, tmp_path, "--keepalive", "0.1"):
                    asking = await connected(crowd, "c1", worker=False)
                    asking.say(commands.Get("j1", b"{}", "svc", "all"))
                    body = await asking.answer("j1", 500)
                    assert "w1" in body["errors"][0]

    run(story)


def test_results_are_there_after_a_kill(tmp_path: Path) -> None:
    """A client that asks any time later, by another name too, gets the result that was stored."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with crowd_at(endpoint) as crowd:
                async with running_broker(endpoint, tmp_path) as broker:
                    worker = await connected(crowd, "w1", worker=True)
                    worker.say(commands.Ready("svc"))
                    client = await connected(crowd, "c1", worker=False)
                    for number in range(20):
                        client.post(f"j{number}")
                        worker.end_job(await worker.take_job(), number)
                        await client.answer(f"j{number}", 200)
                    await broker.kill()
                async with running_broker(endpoint, tmp_path):
                    other = await connected(crowd, "c2", worker=False)
                    for number in range(20):
                        other.say(commands.Get(f"j{number}", b"{}", "svc", "all"))
                        assert (await other.answer(f"j{number}", 200))["w1"]["result"] == number

    run(story)


def test_jobs_move_with_the_folder_to_another_broker(tmp_path: Path) -> None:
    """A broker that is gone for good is restored elsewhere from a copy of its folder; worker and client go there."""

    async def story() -> None:
        with kept_endpoint() as endpoint, kept_endpoint() as other:
            async with crowd_at(endpoint) as crowd, running_broker(endpoint, tmp_path / "a") as broker:
                worker = await connected(crowd, "w1", worker=True)
                worker.say(commands.Ready("svc"))
                client = await connected(crowd, "c1", worker=False)
                client.post("ended")
                worker.end_job(await worker.take_job(), "of before")
                await client.answer("ended", 200)
                client.post("open")
                job = await worker.take_job()
                await client.answer("open", 202)
                client.post("waiting", service="later")
                await client.answer("waiting", 300)
                await broker.kill()
            shutil.copytree(tmp_path / "a", tmp_path / "b")
            async with crowd_at(other) as crowd, running_broker(other, tmp_path / "b"):
                worker, late = [await connected(crowd, name, worker=True) for name in ("w1", "w2")]
                worker.say(commands.Ready("svc"))
                late.say(commands.Ready("later"))
                client = await connected(crowd, "c1", worker=False)
                client.say(commands.Get("ended", b"{}", "svc", "all"))
                assert (await client.answer("ended", 200))["w1"]["result"] == "of before"
                client.say(commands.Get("open", b"{}", "svc", "all"))
                await worker.hear(commands.Get)
                worker.end_job(job, "of after")
                assert (await client.answer("open", 200))["w1"]["result"] == "of after"
                client.say(commands.Get("waiting", b"{}", "later", "all"))
                late.end_job(await late.take_job())
                await client.answer("waiting", 200)

    run(story)
