"""What is measured: a broker, a worker or a client of ours, in a process of its own.

    python -m tests.benchmarks.norfab.peers broker FOLDER ENDPOINT DURABILITY
    python -m tests.benchmarks.norfab.peers worker FOLDER ENDPOINT DURABILITY NAME
    python -m tests.benchmarks.norfab.peers client FOLDER ENDPOINT DURABILITY

A client does `jobs` of the task `noop`, ``{"jobs": COUNT, "together": BOOL}`` a line, and says how long each took and all.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from time import perf_counter
from typing import Literal, cast

from specwire.runtime.norfab.client import NorfabClient
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.worker import NorfabWorker, task

SERVICE = "bench"
Durability = Literal["process", "full"]


class Bench:
    """A plugin that does nothing."""

    @task
    async def noop(self) -> None:
        """Do nothing."""


async def serve(folder: Path, endpoint: str, durability: Durability) -> None:
    """Be the broker."""
    async with NorfabBroker(endpoint, folder, durability=durability) as broker:
        print(json.dumps({"endpoint": broker.endpoints[0]}), flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def work(folder: Path, endpoint: str, durability: Durability, name: str) -> None:
    """Be a worker."""
    async with NorfabWorker(endpoint, name, SERVICE, Bench, folder=folder, durability=durability):
        print(json.dumps({"worker": name}), flush=True)
        await asyncio.to_thread(sys.stdin.read)


async def ask(folder: Path, endpoint: str, durability: Durability) -> None:
    """Be a client."""
    async with NorfabClient(endpoint, folder=folder, durability=durability) as client:
        print(json.dumps({"client": client.name}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            print(json.dumps(await measure(client, **order)), flush=True)


async def measure(client: NorfabClient, jobs: int, together: bool) -> dict[str, object]:
    """Do jobs; return what each and all took, and how many workers answered each."""
    took: list[float] = []
    answers = 0

    async def one() -> None:
        nonlocal answers
        begun = perf_counter()
        done = await client.run(SERVICE, "noop", timeout=300)
        took.append(perf_counter() - begun)
        answers += len(done.values())

    begun = perf_counter()
    if together:
        await asyncio.gather(*(one() for _ in range(jobs)))
    else:
        for _ in range(jobs):
            await one()
    return {"seconds": perf_counter() - begun, "took": took, "answers": answers}


if __name__ == "__main__":
    role, place, at, how, *name = sys.argv[1:]
    kind = cast(Durability, how)
    if role == "broker":
        asyncio.run(serve(Path(place), at, kind))
    elif role == "worker":
        asyncio.run(work(Path(place), at, kind, *name))
    else:
        asyncio.run(ask(Path(place), at, kind))
