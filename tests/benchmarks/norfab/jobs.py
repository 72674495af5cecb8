"""The measurements with jobs: one at a time, many together, to ten workers at once; and what passes through a broker alone.

A kind of peers is measured with a broker, workers and one client, each a process of its own with a folder of its own.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from tests.benchmarks.norfab.process import Process, ours

LOOPBACK = "tcp://127.0.0.1:*"
SETTLE_S = 1.0
"""After the workers have begun: the broker has all of them."""


class Kind(msgspec.Struct, frozen=True):
    """Package that is measured: `command` starts a peer of it, `durability` is its last argument if it has one."""

    name: str
    command: tuple[str, ...]
    durability: tuple[str, ...] = ()


OURS = Kind("ours", tuple(ours("peers")), ("process",))
OURS_FULL = Kind("ours, --durability full", tuple(ours("peers")), ("full",))


def real(python: Path) -> Kind:
    """Return the real package."""
    return Kind("norfab 0.25.0", (str(python), str(Path(__file__).with_name("real.py"))))


@contextmanager
def crew(kind: Kind, work: Path, workers: int) -> Iterator[tuple[Process, list[Process], Process]]:
    """Start a broker, workers and a client."""
    with ExitStack() as stack:

        def start(role: str, endpoint: str, *name: str) -> Process:
            folder = work / f"{role}{''.join(name)}"
            folder.mkdir(parents=True)
            command = [*kind.command, role, str(folder), endpoint, *kind.durability, *name]
            return stack.enter_context(Process(command, folder))

        broker = start("broker", LOOPBACK)
        endpoint = broker.ready["endpoint"]
        crew = [start("worker", endpoint, f"w{number}") for number in range(workers)]
        client = start("client", endpoint)
        time.sleep(SETTLE_S)
        yield broker, crew, client


def one_and_one(kind: Kind, work: Path, jobs: int, together: int) -> list[dict[str, object]]:
    """Measure one client and one worker."""
    with crew(kind, work, 1) as (broker, (worker,), client):
        idle_kib = worker.kib
        client.order(jobs=20, together=False)
        one = client.order(jobs=jobs, together=False)
        check(one["answers"], jobs)
        many = client.order(jobs=together, together=True)
        check(many["answers"], together)
        return [
            row("one at a time, p50", kind, "ms", 1000 * statistics.median(one["took"])),
            row("one at a time, p99", kind, "ms", 1000 * quantile(one["took"], 0.99)),
            row("one at a time", kind, "jobs/s", jobs / one["seconds"]),
            row(f"{together:,} in flight", kind, "jobs/s", together / many["seconds"]),
            row("idle worker", kind, "MiB", idle_kib / 1024),
            row("broker after that", kind, "MiB", broker.kib / 1024),
        ]


def to_all(kind: Kind, work: Path, workers: int, jobs: int) -> list[dict[str, object]]:
    """Measure jobs that all of several workers do."""
    with crew(kind, work, workers) as (_, _, client):
        client.order(jobs=5, together=False)
        done = client.order(jobs=jobs, together=True)
        check(done["answers"], workers * jobs)
        return [row(f"{workers} workers, all", kind, "jobs/s", jobs / done["seconds"])]


def relayed(kind: Kind | None, work: Path, jobs: int, windows: Sequence[int]) -> list[dict[str, object]]:
    """Measure POST and RESPONSE through a broker, or through the bare relay where there is no kind."""
    with ExitStack() as stack:
        if kind is None:
            broker = stack.enter_context(Process(ours("raw", "relay"), work))
        else:
            command = [*kind.command, "broker", str(work), LOOPBACK, *kind.durability]
            broker = stack.enter_context(Process(command, work))
        endpoint = broker.ready["endpoint"]
        stack.enter_context(Process(ours("raw", "worker", endpoint), work))
        client = stack.enter_context(Process(ours("raw", "client", endpoint), work))
        time.sleep(SETTLE_S)
        client.order(jobs=50, window=1)
        name = kind or Kind("bare relay", ())
        rows = []
        for window in windows:
            before = broker.cpu_s
            took = client.order(jobs=jobs, window=window)["seconds"]
            case = f"relay alone, window {window}"
            rows.append(row(case, name, "jobs/s", jobs / took))
            used_us = 1e6 * (broker.cpu_s - before) / jobs
            rows.append(row(f"{case}: broker's processor time", name, "us a job", used_us))
        return rows


def row(case: str, kind: Kind, unit: str, value: float) -> dict[str, object]:
    """Return one figure."""
    return {"case": case, "kind": kind.name, "unit": unit, "value": value}


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which this share of them is."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def check(found: int, wanted: int) -> None:
    """Raise where not every worker answered every job: then nothing was measured."""
    if found != wanted:
        raise RuntimeError(f"{found} results of {wanted}")
