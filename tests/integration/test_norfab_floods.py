"""Queues and connections without end: all is kept or refused, what a client and a worker do goes on, and a restart forgets nothing.

`SPECWIRE_FLOOD_JOBS` is the number of jobs that wait for a service that nobody offers (1,000), `SPECWIRE_FLOOD_CONNECTIONS`
that of connections that say nothing (200).
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from asyncio.subprocess import PIPE
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
import pytest

from specwire.runtime.norfab import commands
from tests.integration.norfab_scene import SETTINGS, Crowd, crowd_at, job_body, serving_broker
from tests.integration.test_norfab_broker_hostile import undisturbed

pytestmark = pytest.mark.peers

CLIENTS = 10
JOBS = int(os.environ.get("SPECWIRE_FLOOD_JOBS", "1000"))
CONNECTIONS = int(os.environ.get("SPECWIRE_FLOOD_CONNECTIONS", "200"))
TOGETHER = 500
"""Jobs of one client that it has not heard of yet; what it says beyond that waits with itself."""

SPARE_FILES = 500
DEADLINE_S = 60.0 + JOBS / 100
"""It bounds the test, and is no goal."""


SILENT = """
import socket, sys
host, port, count = sys.argv[1:]
connections = [socket.create_connection((host, int(port))) for _ in range(int(count))]
print("connected", flush=True)
sys.stdin.read()
"""
"""Connects so often, says nothing, and leaves when its input ends."""


@contextmanager
def files_for(connections: int) -> Iterator[None]:
    """Let this process and its children have so many connections, or skip the test."""
    wanted = connections + SPARE_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"a process here has up to {hard} open files, and {wanted} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@asynccontextmanager
async def silent_connections(endpoint: str) -> AsyncIterator[None]:
    """Have a process that connects and says nothing."""
    host, port = endpoint.removeprefix("tcp://").split(":")
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SILENT, host, port, str(CONNECTIONS), stdin=PIPE, stdout=PIPE
    )
    try:
        assert child.stdin is not None and child.stdout is not None
        assert await child.stdout.readline() == b"connected\n"
        yield
        child.stdin.close()
        assert await child.wait() == 0
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


async def post_many(crowd: Crowd) -> Counter[int]:
    """Have several clients post jobs for a service that nobody offers; return how often each status was the answer."""
    told: Counter[int] = Counter()
    for flooder in range(CLIENTS):
        client = crowd.client(f"flooder-{flooder}")
        for begin in range(0, JOBS // CLIENTS, TOGETHER):
            some = range(begin, min(begin + TOGETHER, JOBS // CLIENTS))
            for number in some:
                client.say(commands.Post(f"flood-{flooder}-{number}", job_body(), "nobody", "any"))
            for _ in some:
                told[(await client.hear(commands.Response)).status] += 1
    return told


def test_jobs_without_a_worker_and_connections_without_a_word(tmp_path: Path) -> None:
    settings = msgspec.structs.replace(SETTINGS, queue_s=10 * DEADLINE_S, jobs_per_client=JOBS)

    async def flood() -> None:
        async with (
            serving_broker(tmp_path, settings=settings) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
            undisturbed(crowd),
            silent_connections(broker.endpoints[0]),
        ):
            assert await post_many(crowd) == {300: JOBS}
            assert broker.status().jobs.open >= JOBS

    async def begin_anew() -> None:
        async with (
            serving_broker(tmp_path, settings=settings) as (broker, _),
            crowd_at(broker.endpoints[0]) as crowd,
        ):
            assert broker.status().jobs.open == JOBS
            worker = crowd.worker("late")
            worker.say(commands.Ready("nobody"))
            worker.end_job(await worker.take_job())

    async def story() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await flood()
            await begin_anew()

    with files_for(CONNECTIONS):
        asyncio.run(story())
