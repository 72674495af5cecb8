"""What a broker has acknowledged is there after every restart: the cases in which version 0.1 lost it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from specwire.runtime.norfab import commands
from tests.integration.filemq_process import PeerProcess, kept_endpoint
from tests.integration.norfab_process import DiligentClient, DiligentWorker, connected, running_broker
from tests.integration.norfab_scene import Crowd, RawPeer, crowd_at, run

WAYS = ["SIGTERM", "SIGKILL"]


async def finish(broker: PeerProcess, way: str) -> None:
    """End a broker."""
    if way == "SIGKILL":
        await broker.kill()
    else:
        await broker.stop()


async def registered(crowd: Crowd, name: str) -> RawPeer:
    """Return a worker that is registered."""
    worker = await connected(crowd, name, worker=True)
    worker.say(commands.Ready("svc"))
    return worker


def report(worker: RawPeer, job: commands.Post, count: int = 3) -> None:
    """Let a worker report progress."""
    for number in range(count):
        body = {"event_type": "progress", "message": f"step {number}", "worker": "w1"}
        worker.say(commands.Event(job.uuid, 200, json.dumps(body).encode(), client=job.client))


async def state_of(crowd: Crowd) -> dict[str, str]:
    """Return the state of each job, as management shows it."""
    client = await connected(crowd, "boss", worker=False)
    rows: Any = await client.manage("show_jobs", state="all", limit=1000)
    client.close()
    return {row["uuid"]: row["state"] for row in rows}


@asynccontextmanager
async def restarted_twice(endpoint: str, folder: Path, way: str) -> AsyncIterator[PeerProcess]:
    """Start a broker, end it, and start it again."""
    async with running_broker(endpoint, folder) as first:
        await finish(first, way)
    async with running_broker(endpoint, folder) as second:
        yield second


@pytest.mark.peers
@pytest.mark.parametrize("way", WAYS)
def test_a_result_after_progress_and_a_restart_is_stored(tmp_path: Path, way: str) -> None:
    """Its row took the number of a row of history, and was dropped after the client had the result."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with crowd_at(endpoint) as crowd:
                async with running_broker(endpoint, tmp_path) as broker:
                    worker = await registered(crowd, "w1")
                    client = await connected(crowd, "c1", worker=False)
                    client.post("j1", target="w1")
                    job = await worker.take_job()
                    report(worker, job)
                    await client.hear(commands.Event)
                    await finish(broker, way)
                async with running_broker(endpoint, tmp_path) as broker:
                    worker = await registered(crowd, "w1")
                    await worker.hear(commands.Get)
                    client = await connected(crowd, "c1", worker=False)
                    client.say(commands.Get("j1", b"{}", "svc", "all"))
                    worker.end_job(job, "done")
                    await client.answer("j1", 200)
                    await finish(broker, way)
                async with restarted_twice(endpoint, tmp_path, way):
                    asking = await connected(crowd, "c1", worker=False)
                    asking.say(commands.Get("j1", b"{}", "svc", "all"))
                    assert (await asking.answer("j1", 200))["w1"]["result"] == "done"
                    assert await state_of(crowd) == {"j1": "ENDED"}

    run(story)


@pytest.mark.peers
def test_a_job_for_any_worker_that_has_ended_never_goes_to_another(tmp_path: Path) -> None:
    """It ran a second time on another worker, after two graceful restarts."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with crowd_at(endpoint) as crowd:
                async with running_broker(endpoint, tmp_path) as broker:
                    first = await registered(crowd, "leaf-1")
                    client = await connected(crowd, "c1", worker=False)
                    client.post("j1", target="any")
                    job = await first.take_job()
                    report(first, job)
                    await client.hear(commands.Event)
                    await broker.stop()
                async with running_broker(endpoint, tmp_path) as broker:
                    first = await registered(crowd, "leaf-1")
                    await first.hear(commands.Get)
                    client = await connected(crowd, "c1", worker=False)
                    client.say(commands.Get("j1", b"{}", "svc", "all"))
                    first.end_job(job, "upgraded")
                    await client.answer("j1", 200)
                    first.say(commands.Disconnect("svc"))
                    await broker.stop()
                async with restarted_twice(endpoint, tmp_path, "SIGTERM"):
                    second = await registered(crowd, "leaf-2")
                    client = await connected(crowd, "c1", worker=False)
                    client.post("j2", target="any")
                    assert (await second.take_job()).uuid == "j2", "jobs come in order, so j1 does not come"
                    assert (await state_of(crowd))["j1"] == "ENDED"

    run(story)


class ReportingWorker(DiligentWorker):
    """Reports progress of each job when it takes it."""

    def _take(self, peer: RawPeer, command: commands.Command) -> None:
        is_new = isinstance(command, commands.Post) and command.uuid not in self.runs
        super()._take(peer, command)
        if is_new and isinstance(command, commands.Post):
            report(peer, command, 2)


@pytest.mark.peers
def test_jobs_that_ended_between_restarts_are_ended_after_the_last_one(tmp_path: Path) -> None:
    """Each had reported progress; in version 0.1 some were RUNNING again.

    A job that was on its way to the worker when the broker ended fails, and never starts.
    """
    uuids = [f"j{number}" for number in range(400)]

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with crowd_at(endpoint) as crowd:
                worker, client = ReportingWorker(crowd), DiligentClient(crowd, uuids, "w1")
                tasks = [asyncio.create_task(worker.work()), asyncio.create_task(client.work())]
                for limit, way in zip((20, 60, 100, 140), WAYS * 2, strict=True):
                    worker.limit = limit
                    async with running_broker(endpoint, tmp_path) as broker:
                        while len(client.reported - set(worker.results)) < 5:
                            await asyncio.sleep(0.001)
                        await finish(broker, way)
                worker.limit = len(uuids)
                async with running_broker(endpoint, tmp_path) as broker:
                    await tasks[1]
                    tasks[0].cancel()
                    await broker.stop()
                failed = {uuid: body for uuid, (status, body) in client.ended.items() if status != 200}
                assert {body["error"] for body in failed.values()} <= {"worker w1 did not get the job"}
                assert worker.runs == Counter(uuid for uuid in uuids if uuid not in failed)
                async with restarted_twice(endpoint, tmp_path, "SIGTERM"):
                    assert await state_of(crowd) == dict.fromkeys(uuids, "ENDED")

    run(story)


@pytest.mark.peers
def test_a_damaged_store_in_a_relative_folder_is_salvaged(tmp_path: Path) -> None:
    """The file was moved away first, and then the relative path was an error: all jobs were lost."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with crowd_at(endpoint) as crowd:
                async with running_broker(endpoint, tmp_path / "other") as broker:
                    client = await connected(crowd, "c1", worker=False)
                    for number in range(200):
                        client.post(f"j{number}", target="w1", kwargs={"text": "x" * 500})
                        await client.answer(f"j{number}", 300)
                    await broker.stop()
                damage(tmp_path / "other" / "broker.sqlite3")
                before = Path.cwd()
                os.chdir(tmp_path)
                try:
                    async with running_broker(endpoint, Path("other")):
                        found = await state_of(crowd)
                finally:
                    os.chdir(before)
                assert {"j0", "j199"} <= set(found)
                assert 150 < len(found) < 200

    run(story)


def damage(path: Path) -> None:
    """Overwrite two pages in the middle of a file."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    octets = bytearray(path.read_bytes())
    middle = len(octets) // 2 // 4096 * 4096
    octets[middle : middle + 8192] = os.urandom(8192)
    path.write_bytes(octets)
