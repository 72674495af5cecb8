"""A NORFAB broker, two workers and a client, with jobs for all, jobs for any, and failing jobs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec

from specwire.generated import norfab_ascii
from specwire.runtime.cli.job.taps import Taps
from specwire.runtime.norfab.client import JobResult, NorfabClient
from specwire.runtime.norfab.serve import NorfabBroker
from specwire.runtime.norfab.worker import NorfabWorker, task

SERVICE = "fleet"
WORKERS = ("leaf-1", "leaf-2")
JOBS = 30
"""Jobs of each kind."""
CONCURRENT = 5


class NorfabResult(msgspec.Struct, frozen=True):
    """Counts of jobs by outcome and of results, and jobs with a wrong outcome or result."""

    done: int
    failed: int
    results: int
    faults: tuple[str, ...]


class _Fleet:
    """The plugin of both workers."""

    @task
    def show_version(self) -> str:
        """Return the version that the devices run."""
        return "15.2(4)M"

    @task
    def ping(self, device: str) -> str:
        """Fail, because the device does not exist."""
        raise LookupError(f"no device {device}")


async def run_norfab(folder: Path, taps: Taps) -> NorfabResult:
    """Start the peers, whose stores are in `folder`, run the jobs, and stop the peers."""
    tap = taps.open("norfab_ascii", "norfab-broker", norfab_ascii.EDITION)
    async with NorfabBroker(folder=folder / "broker", tap=tap) as broker:
        (endpoint,) = broker.endpoints
        first, second = (
            NorfabWorker(endpoint, name, SERVICE, _Fleet, folder=folder / name) for name in WORKERS
        )
        async with first, second, NorfabClient(endpoint) as client:
            # A job for all goes to the workers known at that time. So each worker gets a job by its
            # name first.
            first_jobs = [(name, await client.run(SERVICE, "show_version", targets=name)) for name in WORKERS]
            limit = asyncio.Semaphore(CONCURRENT)

            async def run(number: int) -> tuple[str, JobResult]:
                name, targets = _KINDS[number % len(_KINDS)]
                async with limit:
                    kwargs = {"device": "spine-9"} if name == "ping" else {}
                    return targets, await client.run(SERVICE, name, targets=targets, kwargs=kwargs)

            jobs = [*first_jobs, *await asyncio.gather(*map(run, range(JOBS * len(_KINDS))))]
    return NorfabResult(
        done=sum(job.ok for _, job in jobs),
        failed=sum(not job.ok for _, job in jobs),
        results=sum(len(job.results) for _, job in jobs),
        faults=tuple(fault for targets, job in jobs if (fault := _find_fault(targets, job))),
    )


_KINDS = (("show_version", "all"), ("show_version", "any"), ("ping", "leaf-2"))
"""Task and target of each kind of job."""


def _find_fault(targets: str, job: JobResult) -> str | None:
    """Return a sentence if the outcome or the results of a job are wrong."""
    results = {name: None if part.failed else part.result for name, part in job.results.items()}
    if job.task == "ping":
        right = job.failures.keys() == {"leaf-2"} and "no device spine-9" in job.failures["leaf-2"]
    elif targets == "all":
        right = results == dict.fromkeys(WORKERS, "15.2(4)M")
    else:
        right = len(results) == 1 and set(results.values()) == {"15.2(4)M"}
    return None if right else f"job {job.uuid} ({job.task} for {targets}) ended as {job.state}: {results}"
