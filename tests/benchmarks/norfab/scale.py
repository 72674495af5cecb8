"""One broker with very many workers and clients: how long they take to register, what heartbeats cost, how long jobs take.

The peers are the barest there can be, a few hundred in a process, as it is the broker that is measured.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from specwire.runtime.norfab.client import BlockingClient
from tests.benchmarks.norfab.jobs import LOOPBACK, OURS, quantile, row
from tests.benchmarks.norfab.process import Process, ours

IN_A_PROCESS = 500
RESOURCES = 10
"""What each worker manages."""

DEADLINE_S = 120.0


def crowd(work: Path, workers: int, clients: int, seconds: float) -> Iterator[dict[str, object]]:
    """Measure them; raises RuntimeError where a worker was dropped."""
    with ExitStack() as stack:
        command = [*OURS.command, "broker", str(work), LOOPBACK, *OURS.durability]
        broker = stack.enter_context(Process(command, work))
        endpoint = broker.ready["endpoint"]
        admin = stack.enter_context(BlockingClient(endpoint))
        begun = time.perf_counter()
        for first in range(0, workers, IN_A_PROCESS):
            count = min(IN_A_PROCESS, workers - first)
            given = ("workers", endpoint, str(first), str(count), str(RESOURCES))
            stack.enter_context(Process(ours("crowds", *given), work))
        until_registered(admin, workers)
        registered_s = time.perf_counter() - begun
        asking = stack.enter_context(Process(ours("crowds", "clients", endpoint, str(clients)), work))
        idle = cost(broker, seconds)
        to_all = asking.order(target="all", clients=1)["took"]
        to_any = [took for _ in range(5) for took in asking.order(target="any")["took"]]
        managed = asking.order(target="all", resource="r7-3", clients=1)["took"]
        check_all_there(admin, workers)
        who = f"{workers:,} workers, {clients} clients, {workers * RESOURCES:,} resources"
        figures = {
            f"{who}: all registered": ("s", registered_s),
            "heartbeats of these: broker": ("% of a core", 100 * idle),
            "a job to all of these": ("s", to_all[0]),
            "a job to any from each client at once, p50": ("ms", 1000 * quantile(to_any, 0.5)),
            "a job to any from each client at once, p99": ("ms", 1000 * quantile(to_any, 0.99)),
            "a job to who manages a resource": ("ms", 1000 * managed[0]),
            "broker at most": ("MiB", broker.most_kib / 1024),
        }
        for case, (unit, value) in figures.items():
            yield row(case, OURS, unit, value)


def until_registered(admin: BlockingClient, workers: int) -> None:
    """Wait until the broker has all of them."""
    deadline = time.monotonic() + DEADLINE_S
    while (there := count_workers(admin)) < workers:
        if time.monotonic() > deadline:
            raise RuntimeError(f"only {there} of {workers} workers registered within {DEADLINE_S:g} s")
        time.sleep(0.1)


def count_workers(admin: BlockingClient) -> int:
    """Return how many workers the broker has."""
    shown = admin.manage("mmi.service.broker", "show_broker")
    return int(shown["workers count"])


def check_all_there(admin: BlockingClient, workers: int) -> None:
    """Raise where a worker was dropped, even one that is back: each registered once and is as old as the others."""
    rows = admin.manage("mmi.service.broker", "show_workers")
    young = [row["name"] for row in rows if float(row["alive (s)"]) < 5]
    if len(rows) != workers or young:
        raise RuntimeError(f"{len(rows)} of {workers} workers are here; registered anew: {young[:5]}")


def cost(broker: Process, seconds: float) -> float:
    """Return the share of a core that the broker takes."""
    before = broker.cpu_s
    time.sleep(seconds)
    return (broker.cpu_s - before) / seconds
