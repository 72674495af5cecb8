"""Programs of the chaos test: the plugin of its workers, and its client.

Both log what they do with one `write` to a file that is opened for appending, before they continue: a line is there whole,
or not at all, whenever the process is killed. Times are those of the machine's monotonic clock, which all processes share.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path

from specwire.runtime.norfab.client import NorfabClient
from specwire.runtime.norfab.client.results import JobResult
from specwire.runtime.norfab.worker import Job, task

SERVICE = "chaos"
JOB_S = 90.0
COLLECT_S = 600.0


def note(path: Path, line: str) -> None:
    """Append a line."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, f"{line}\n".encode())
    finally:
        os.close(descriptor)


class Chaos:
    """The service: a task that says that it runs, and takes a moment."""

    @task
    def mark(self, job: Job, log: str, pause_s: float) -> str:
        """Log that the job runs here, report progress, wait, and return its uuid."""
        note(Path(log), f"{job.uuid} {job.worker.name} {time.monotonic()}")
        job.progress("half way")
        job.wait(pause_s)
        return job.uuid


def choose_target(rng: random.Random, workers: list[str]) -> str | list[str]:
    """Return whom a job is for."""
    kind = rng.random()
    if kind < 0.6:
        return "any"
    return "all" if kind < 0.8 else rng.sample(workers, rng.randint(1, min(2, len(workers))))


def describe(result: JobResult) -> str:
    """Return the end of a job as JSON."""
    parts = {
        name: {"failed": part.failed, "cause": part.cause, "attempt": part.attempt, "result": part.result}
        for name, part in result.results.items()
    }
    return json.dumps(
        {
            "ended": result.ended,
            "state": result.state.name,
            "code": result.code,
            "error": result.error,
            "missing": list(result.missing),
            "parts": parts,
        }
    )


class Program:
    """One run of a client: it goes on where the run before was killed."""

    def __init__(
        self,
        folder: Path,
        endpoint: str,
        name: str,
        count: int,
        workers: list[str],
        runs: Path,
        in_flight: int,
    ) -> None:
        self._log = folder / f"{name}.log"
        self._runs, self._name, self._count, self._workers = runs, name, count, workers
        self._client = NorfabClient(endpoint, name=name, folder=folder / name)
        self._turns = asyncio.Semaphore(in_flight)

    async def run(self) -> None:
        """Submit all jobs and see all of them end."""
        acknowledged, ended, _ = read_log(self._log)
        async with self._client, asyncio.TaskGroup() as jobs:
            for number in range(self._count):
                uuid = f"{self._name}-{number:05d}"
                if uuid not in ended:
                    await self._turns.acquire()
                    jobs.create_task(self._job(uuid, uuid in acknowledged))

    async def _job(self, uuid: str, acknowledged: bool) -> None:
        rng = random.Random(uuid)
        try:
            if not acknowledged:
                await self._submit(uuid, choose_target(rng, self._workers), rng.choice((0.0, 0.0, 0.02, 0.2)))
                note(self._log, f"ack {uuid}")
            result = await self._client.collect(uuid, COLLECT_S)
            note(self._log, f"end {uuid} {time.monotonic()} {describe(result)}")
        finally:
            self._turns.release()

    async def _submit(self, uuid: str, targets: str | list[str], pause_s: float) -> None:
        try:
            await self._client.submit(
                SERVICE, "mark", str(self._runs), pause_s, targets=targets, timeout=JOB_S, uuid=uuid
            )
        except ValueError:  # it was on disk when the run before was killed, which had no time to say so
            await self._client.look(uuid)


def read_log(log: Path) -> tuple[set[str], dict[str, list[str]], dict[str, float]]:
    """Return the uuids that were acknowledged, by uuid each end that the client got, and when it got the first."""
    acknowledged: set[str] = set()
    ended: dict[str, list[str]] = {}
    ended_at: dict[str, float] = {}
    for line in log.read_text().splitlines() if log.exists() else ():
        kind, uuid, *rest = line.split(" ", 2)
        if kind == "ack":
            acknowledged.add(uuid)
        else:
            at, end = rest[0].split(" ", 1)
            ended.setdefault(uuid, []).append(end)
            ended_at.setdefault(uuid, float(at))
    return acknowledged, ended, ended_at


if __name__ == "__main__":
    base, where, who, jobs, names, together = sys.argv[1:]
    program = Program(Path(base), where, who, int(jobs), names.split(","), Path(base) / "runs", int(together))
    asyncio.run(program.run())
