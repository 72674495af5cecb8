"""The command `specwire norfab broker`: signals, a folder that is taken, a full disk, few descriptors, its status."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from specwire.runtime.norfab import commands
from specwire.runtime.norfab.serve.status import ROLE, BrokerStatus
from specwire.runtime.transport.status_folder import address_in, locate_status_folder
from specwire.runtime.transport.status_socket import ask_status
from tests.integration.filemq_process import kept_endpoint
from tests.integration.norfab_process import connected, running_broker, start
from tests.integration.norfab_scene import crowd_at, run

DISK_OCTETS = 8 << 20


def test_sigterm_lets_workers_go_and_keeps_jobs(tmp_path: Path) -> None:
    """Workers are told DISCONNECT, the process ends with 0, and the next broker has the job."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with crowd_at(endpoint) as crowd:
                async with running_broker(endpoint, tmp_path) as broker:
                    worker = await connected(crowd, "w1", worker=True)
                    worker.say(commands.Ready("svc"))
                    client = await connected(crowd, "c1", worker=False)
                    client.post("j1")
                    await client.answer("j1", 202)
                    stopping = asyncio.create_task(broker.stop())
                    await worker.hear(commands.Disconnect)
                    await stopping
                    await broker.line_with("ended: the broker stops")
                async with running_broker(endpoint, tmp_path) as broker:
                    await broker.line_with("1 jobs from before")
                    await broker.stop()
        lines = [json.loads(line) for line in (tmp_path / "accounting.jsonl").read_text().splitlines()]
        assert [line["event"] for line in lines if line["event"].startswith("broker")] == [
            "broker began",
            "broker ended",
        ] * 2

    run(story)


def test_second_broker_on_a_folder_is_told_who_has_it(tmp_path: Path) -> None:
    """It ends with status 1 and the number of the other; the first one works on."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with running_broker(endpoint, tmp_path) as broker, crowd_at(endpoint) as crowd:
                second = await start(
                    "broker", "--endpoint", "tcp://127.0.0.1:*", "--folder", str(tmp_path), "--insecure"
                )
                try:
                    line = await second.line_with("in use by process")
                    assert str(broker.pid) in line
                    assert await second._process.wait() == 1
                finally:
                    await second.end()
                client = await connected(crowd, "c1", worker=False)
                assert (await client.manage("show_broker"))["status"] == "active"

    run(story)


def test_endpoint_that_is_taken_is_told(tmp_path: Path) -> None:
    """A second broker at the same endpoint ends with a sentence, and leaves its folder free."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with running_broker(endpoint, tmp_path / "a"):
                second = await start(
                    "broker", "--endpoint", endpoint, "--folder", str(tmp_path / "b"), "--insecure"
                )
                try:
                    await second.line_with(f"cannot listen on {endpoint}: Address already in use")
                    assert await second._process.wait() == 1
                finally:
                    await second.end()

    run(story)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_OCTETS}", "tmpfs", str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_full_disk_turns_jobs_away_until_there_is_room(small_disk: Path) -> None:
    """A new job is refused with the reason; a result waits, as nothing is sent before it is stored; with room both go on."""
    ballast = small_disk / "ballast"

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with running_broker(endpoint, small_disk / "broker"), crowd_at(endpoint) as crowd:
                worker = await connected(crowd, "w1", worker=True)
                worker.say(commands.Ready("svc"))
                client = await connected(crowd, "c1", worker=False)
                client.post("before")
                job = await worker.take_job()
                await client.answer("before", 202)
                descriptor = os.open(ballast, os.O_WRONLY | os.O_CREAT)
                try:
                    while True:
                        os.write(descriptor, bytes(4096))
                except OSError:
                    os.close(descriptor)
                client.post("large", kwargs={"text": "x" * 1_000_000})
                assert "full" in (await client.answer("large", 500))["errors"][0]
                worker.end_job(job, "y" * 100_000)
                assert (await client.manage("show_broker"))["status"] == "active"
                ballast.unlink()
                await client.answer("before", 200)
                client.post("large", kwargs={"text": "x" * 1_000_000})
                worker.end_job(await worker.take_job())
                await client.answer("large", 200)

    run(story)


def test_broker_without_descriptors_serves_who_is_there(tmp_path: Path) -> None:
    """Who comes when there is no descriptor left does not get in, which is told; the others are served."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with running_broker(endpoint, tmp_path) as broker, crowd_at(endpoint) as crowd:
                worker = await connected(crowd, "w1", worker=True)
                worker.say(commands.Ready("svc"))
                client = await connected(crowd, "c1", worker=False)
                _, hard = resource.prlimit(broker.pid, resource.RLIMIT_NOFILE)
                used = len(os.listdir(f"/proc/{broker.pid}/fd"))
                resource.prlimit(broker.pid, resource.RLIMIT_NOFILE, (used + 5, hard))
                for number in range(20):
                    crowd.client(f"more-{number}").say(commands.Open())
                await broker.line_with("Too many open files")
                client.post("j1")
                worker.end_job(await worker.take_job())
                await client.answer("j1", 200)

    run(story)


def test_broker_tells_its_status(tmp_path: Path) -> None:
    """The status socket has a document with workers, jobs and counters."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with running_broker(endpoint, tmp_path) as broker, crowd_at(endpoint) as crowd:
                worker = await connected(crowd, "w1", worker=True)
                worker.say(commands.Ready("svc"))
                client = await connected(crowd, "c1", worker=False)
                client.post("j1")
                await worker.take_job()
                path = address_in(locate_status_folder(os.environ), ROLE, broker.pid).path
                document = await asyncio.to_thread(ask_status, path, timeout_s=30)
                status = msgspec.json.decode(document, type=BrokerStatus)
                assert status.endpoints == (endpoint,)
                assert [(w.name, w.service, w.jobs) for w in status.workers] == [("w1", "svc", 1)]
                assert status.jobs.open == 1
                counters = status.counters
                assert counters.jobs_accepted == 1
                # READY, OPEN if it was said, POST came; 202 and POST have left
                assert counters.messages_in >= 2 and counters.messages_out >= 2
                assert counters.octets_in > len("svcj1") and counters.octets_out > len("svcj1")

    run(story)


def test_table_is_read_again_at_sighup(tmp_path: Path) -> None:
    """A table that cannot be used changes nothing and is told; one that can takes effect."""

    async def story() -> None:
        with kept_endpoint() as endpoint:
            async with running_broker(
                endpoint, tmp_path, "--access", str(tmp_path / "keys/access.toml")
            ) as broker:
                table = tmp_path / "keys/access.toml"
                good = table.read_text()
                table.write_text("[ada]\nroles = 7\n")
                os.kill(broker.pid, signal.SIGHUP)
                await broker.line_with("the table of peers stays as it was")
                table.write_text(good)
                os.kill(broker.pid, signal.SIGHUP)
                await broker.line_with("the table of peers was read again: 3 peers")
                await broker.stop()

    run(story)
