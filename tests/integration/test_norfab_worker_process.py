"""`specwire norfab worker` as a process that is stopped, killed and begun anew in the middle of jobs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from specwire.runtime.cli.norfab_worker_options import PROCESS, WorkerOptions
from specwire.runtime.norfab.commands import Event, Get, Mmi, Response
from specwire.runtime.norfab.events import Refused
from specwire.runtime.norfab.limits import Settings
from specwire.runtime.norfab.worker.restoring import INTERRUPTED
from specwire.runtime.norfab.worker.serve import NorfabWorker
from tests.integration.norfab_plugin import Fleet
from tests.integration.norfab_scene import Heard, RawPeer, crowd_at, run, serving_broker
from tests.integration.norfab_watch import NorfabWatch

pytestmark = pytest.mark.peers

PATIENCE_S = 40.0
PLUGIN = "tests.integration.norfab_plugin:Fleet"
MEGABYTE = 1024
"""In kilobytes."""


class Process:
    """A worker's process, with what it wrote.

    Args:
        command: begin with the command line, as people do; else with the process that it gives its place to.
    """

    def __init__(self, endpoint: str, folder: Path, *, command: bool) -> None:
        folder.mkdir(exist_ok=True)
        self.log = folder / "log.txt"
        self.ran = folder / "ran.txt"
        words = _command(endpoint, folder / "store") if command else _process(endpoint, folder / "store")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**os.environ, "RAN": str(self.ran)},
            )

    @property
    def said(self) -> str:
        """What it wrote to its log."""
        return self.log.read_text()

    async def until_said(self, words: str, times: int = 1) -> None:
        """Wait until it wrote this so often."""
        until = time.monotonic() + PATIENCE_S
        while self.said.count(words) < times:
            assert self.process.poll() is None and time.monotonic() < until, self.said
            await asyncio.sleep(0.01)

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()
        self.process.wait()

    async def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to stop; return the exit status."""
        self.process.send_signal(number)
        return await asyncio.to_thread(self.process.wait, PATIENCE_S)

    def runs(self) -> Counter[str]:
        """Return how often each job ran."""
        return Counter(self.ran.read_text().split()) if self.ran.exists() else Counter()


def _command(endpoint: str, store: Path) -> list[str]:
    words = f"specwire norfab worker --service svc --name w1 --plugin {PLUGIN} --broker {endpoint} --insecure"
    return [*words.split(), "--folder", str(store)]


def _process(endpoint: str, store: Path) -> list[str]:
    options = WorkerOptions(
        service="svc",
        plugin=PLUGIN,
        name="w1",
        brokers=(endpoint,),
        concurrency=1,
        job_timeout=None,
        grace=None,
        drain=None,
        resources=(),
        folder=str(store),
        durability="process",
        keys=None,
        user=None,
        insecure=True,
        protocol="norfab_ascii",
        capture=None,
        quiet=False,
    )
    return [PROCESS, msgspec.json.encode(options).decode()]


@contextmanager
def working(endpoint: str, folder: Path, *, command: bool = False) -> Iterator[Process]:
    """Start a worker, and leave nothing of it."""
    worker = Process(endpoint, folder, command=command)
    try:
        yield worker
    finally:
        worker.kill()


def peak(pid: int) -> int:
    """Return the most memory that a process has had, in kilobytes; 0 where the system does not tell."""
    file = Path(f"/proc/{pid}/status")
    lines = file.read_text().splitlines() if file.exists() else []
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


async def entry(client: RawPeer, uuid: str) -> Any:
    """Wait for the end of a job; return the worker's entry."""
    return (await client.answer(uuid, 200))["w1"]


async def until_taken(client: RawPeer, uuid: str) -> None:
    """Wait until a job is said to be taken, or has its result, which says so, too."""
    await client.hear(Response, lambda said: said.uuid == uuid and said.status in (200, 201))


QUIET = Settings(keepalive_s=1000.0, poll_s=1000.0)
"""The broker says nothing of its own, and so does not notice that a connection has gone: the worker is back before."""


def test_a_worker_that_is_killed_in_the_middle_of_seven_jobs(tmp_path: Path) -> None:
    """The one that ran has failed and says why; the others run, once, when the worker is back."""

    async def story() -> None:
        async with serving_broker(tmp_path / "broker", settings=QUIET) as (broker, _):
            endpoint = broker.endpoints[0]
            async with crowd_at(endpoint) as crowd:
                client = crowd.client()
                with working(endpoint, tmp_path / "w") as worker:
                    await worker.until_said("registered")
                    client.post("j0", task="wait_for", args=[str(tmp_path / "never")], target="w1")
                    await client.hear(Event)
                    for number in range(1, 7):
                        client.post(f"j{number}", task="count", target="w1")
                        await client.answer(f"j{number}", 201)
                with working(endpoint, tmp_path / "w") as worker:
                    ends: dict[str, Any] = {}
                    while len(ends) < 7:
                        reply = await client.hear(Response, lambda said: said.status in (200, 500))
                        ends[reply.uuid] = json.loads(reply.body)["w1"]
                    assert ends.pop("j0")["errors"] == [INTERRUPTED]
                    assert {uuid: end["result"] for uuid, end in ends.items()} == {
                        f"j{number}": f"j{number}" for number in range(1, 7)
                    }
                    assert worker.runs() == Counter(f"j{number}" for number in range(7))

    run(story)


def test_a_job_for_any_worker_goes_to_another_when_its_worker_was_killed(tmp_path: Path) -> None:
    """The worker that is back says that it could not do it; the other one does, and the result says so."""

    async def story() -> None:
        ready = tmp_path / "ready"
        async with serving_broker(tmp_path / "broker", settings=QUIET) as (broker, _):
            endpoint = broker.endpoints[0]
            async with crowd_at(endpoint) as crowd:
                client = crowd.client()
                with working(endpoint, tmp_path / "w") as worker:
                    await worker.until_said("registered")
                    client.post("j1", task="wait_for", args=[str(ready)], target="any")
                    await client.hear(Event)
                watch = NorfabWatch("W")
                async with NorfabWorker(endpoint, "w2", "svc", Fleet, folder=tmp_path / "w2", tap=watch):
                    while "w2" not in broker.engine.registry.workers:
                        await asyncio.sleep(0.01)
                    ready.touch()
                    with working(endpoint, tmp_path / "w"):
                        end = await entry(client, "j1")
                assert (end["result"], end["worker"], end["attempt"]) == ("it is there", "w2", 2)
                assert watch.faults == []

    run(story)


def test_under_kills_no_job_runs_twice_and_each_ends(tmp_path: Path) -> None:
    """The broker notices each loss at once, or does not: either way there is one end for each job."""

    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            async with crowd_at(endpoint) as crowd:
                client = crowd.client()
                posted: list[str] = []
                for life in range(2):
                    with working(endpoint, tmp_path / "w") as worker:
                        await worker.until_said("registered", times=life + 1)
                        for number in range(30):
                            posted.append(f"j{life}-{number}")
                            client.post(posted[-1], task="count", target="w1")
                        await until_taken(client, f"j{life}-{10 * life}")
                with working(endpoint, tmp_path / "w") as worker:
                    client.got.clear()
                    for uuid in posted:
                        client.say(Get(uuid, service="svc", target="all"))
                    ended: set[str] = set()
                    while len(ended) < len(posted):
                        reply = await client.hear(Response, lambda said: said.status in (200, 500))
                        ended.add(reply.uuid)
                    runs = worker.runs()
                    assert set(runs) <= set(posted)
                    assert set(runs.values()) == {1}

    run(story)


def test_sigterm_lets_what_runs_end_and_prints_go_to_the_log(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            async with crowd_at(endpoint) as crowd:
                client = crowd.client()
                with working(endpoint, tmp_path / "w", command=True) as worker:
                    client.post("j0", task="print_and_leave")
                    assert (await entry(client, "j0"))["errors"] == ["the task called sys.exit(5)"]
                    await worker.until_said("printed by a plugin")
                    ready = tmp_path / "ready"
                    client.post("j1", task="wait_for", args=[str(ready)])
                    await client.hear(Event)
                    ending = asyncio.create_task(worker.end())
                    await worker.until_said("stopping")
                    ready.touch()
                    assert (await entry(client, "j1"))["result"] == "it is there"
                    assert await ending == 0
                    assert "j1 wait_for done" in worker.said
                    assert worker.process.stdout is not None and worker.process.stdout.read() == b""

    run(story)


def test_a_plugin_that_ends_the_process_costs_its_job_alone(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            async with crowd_at(endpoint) as crowd:
                client = crowd.client()
                with working(endpoint, tmp_path / "w") as worker:
                    client.post("j1", task="die", target="w1")
                    await asyncio.to_thread(worker.process.wait, PATIENCE_S)
                with working(endpoint, tmp_path / "w"):
                    reply = await client.hear(Response, lambda said: said.status in (200, 500))
                    assert b'"failed":true' in reply.body
                    client.post("j2", task="add", args=[1])
                    assert (await entry(client, "j2"))["result"] == 2

    run(story)


def test_management_begins_the_process_anew(tmp_path: Path) -> None:
    """The same process, with the plugin's present code."""

    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            async with crowd_at(endpoint) as crowd:
                client = crowd.client()
                with working(endpoint, tmp_path / "w", command=True) as worker:
                    await worker.until_said("registered")
                    client.say(Mmi("m1", b'{"task":"restart"}', "mmi.service.worker", "w1"))
                    assert (await client.answer("m1", 200))["w1"] == {"status": "restarting"}
                    await worker.until_said("registered", times=2)
                    client.post("j1", task="add", args=[1])
                    assert (await entry(client, "j1"))["result"] == 2
                    client.say(Mmi("m2", b'{"task":"shutdown"}', "mmi.service.worker", "w1"))
                    assert await asyncio.to_thread(worker.process.wait, PATIENCE_S) == 0

    run(story)


def test_an_idle_worker_is_small_and_shares_its_folder_with_no_other(tmp_path: Path) -> None:
    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            with working(endpoint, tmp_path / "w", command=True) as first:
                await first.until_said("registered")
                assert peak(first.process.pid) <= 40 * MEGABYTE
                with working(endpoint, tmp_path / "w") as second:
                    assert await asyncio.to_thread(second.process.wait, PATIENCE_S) == 1
                    assert f"is in use by process {first.process.pid}" in second.said

    run(story)


@pytest.mark.parametrize(
    ("kind", "status"), [("process", -signal.SIGTERM), ("pool", 0), ("return", 0), ("exit", 7)]
)
def test_a_task_may_end_a_child_process(tmp_path: Path, kind: str, status: int) -> None:
    """SIGTERM ends the child, not the worker; a forked child that returns from the task exits."""

    async def story() -> None:
        async with serving_broker(tmp_path / "broker") as (broker, _):
            endpoint = broker.endpoints[0]
            async with crowd_at(endpoint) as crowd:
                client = crowd.client()
                with working(endpoint, tmp_path / "w", command=True) as worker:
                    await worker.until_said("registered")
                    client.post("j1", task="end_child", args=[kind], target="w1")
                    assert (await entry(client, "j1"))["result"] == status
                    client.post("j2", task="add", args=[2, 3], target="w1")
                    assert (await entry(client, "j2"))["result"] == 5
                    assert "stopping" not in worker.said
                    assert await worker.end() == 0

    run(story)


def test_a_child_that_hangs_keeps_neither_store_nor_connection(tmp_path: Path) -> None:
    """After the worker is killed, another of the same name registers while the child still runs."""
    file = tmp_path / "child"

    async def story() -> None:
        async with serving_broker(tmp_path / "broker", settings=QUIET) as (broker, _):
            endpoint = broker.endpoints[0]
            async with crowd_at(endpoint) as crowd:
                client = crowd.client()
                with working(endpoint, tmp_path / "w") as worker:
                    await worker.until_said("registered")
                    client.post("j1", task="leave_child", args=[str(file)], target="w1")
                    while not file.exists() or not file.read_text():
                        await asyncio.sleep(0.01)
                with working(endpoint, tmp_path / "w") as worker:
                    await worker.until_said("registered", 2)
                    os.kill(int(file.read_text()), signal.SIGKILL)

    run(story)


def test_a_second_worker_logs_that_its_name_is_taken(tmp_path: Path) -> None:
    """The broker logs it, too, and the first worker continues."""

    async def story() -> None:
        heard = Heard()
        async with serving_broker(tmp_path / "broker", heard=heard) as (broker, _):
            endpoint = broker.endpoints[0]
            async with crowd_at(endpoint) as crowd:
                client = crowd.client()
                with working(endpoint, tmp_path / "first") as first:
                    await first.until_said("registered")
                    with working(endpoint, tmp_path / "second") as second:
                        await second.until_said("another worker named w1 is connected: stop that one")
                        assert "registered" not in second.said
                    refused = await heard.until(Refused)
                    assert refused.reason == "another worker named w1 is connected"
                    client.post("j1", task="add", args=[2, 3], target="w1")
                    assert (await entry(client, "j1"))["result"] == 5

    run(story)
