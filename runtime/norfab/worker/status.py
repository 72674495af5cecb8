"""Status of a running worker, for its metrics and its page.

Names and reasons may come from the network; who prints them makes them safe. Times are seconds, sizes
octets.
"""

from __future__ import annotations

import os
from collections import Counter
from itertools import islice

import msgspec

from specwire import __version__
from specwire.runtime.capture.counts import TapCounts
from specwire.runtime.norfab.durations import Durations
from specwire.runtime.norfab.worker.assignment import WAITING, Assignment, State
from specwire.runtime.norfab.worker.engine import WorkerEngine

NEWEST = 20
"""Jobs that are listed."""


class AssignedStatus(msgspec.Struct, frozen=True):
    """Status of a job. `seconds`: how long it runs or ran; None before it began."""

    uuid: str
    task: str
    client: str
    state: str
    seconds: float | None
    failure: str


class WorkerCounters(msgspec.Struct, frozen=True):
    """Counts since the start."""

    completed: int
    failed: int
    registrations: int
    keepalives_in: int
    keepalives_out: int
    dropped: int


class WorkerStatus(msgspec.Struct, frozen=True, tag="worker", tag_field="role"):
    """Status of a worker.

    Attributes:
        broker: endpoint of the broker, or of the one that is tried next.
        registered_s: time since the registration; None without one.
        running, waiting, held: open jobs.
        abandoned: tasks that did not end after they were cancelled.
        kept: ended jobs whose results are stored.
        waiting_for_disk: commits that are not durable yet.
        durations: of ended jobs, by task.
        store: why the store refuses new jobs at present; empty if it does not.
    """

    name: str
    service: str
    pid: int
    version: str
    up_s: float
    broker: str
    registered_s: float | None
    stopping: bool
    concurrency: int
    running: int
    waiting: int
    held: int
    abandoned: int
    kept: int
    kept_octets: int
    waiting_for_disk: int
    resources: int
    newest: tuple[AssignedStatus, ...]
    counters: WorkerCounters
    captures: tuple[TapCounts, ...] = ()
    durations: dict[str, Durations] = {}
    store: str = ""


def describe(
    engine: WorkerEngine,
    *,
    now: float,
    captures: tuple[TapCounts, ...] = (),
    durations: dict[str, Durations],
) -> WorkerStatus:
    """Return the status of the worker with this engine."""
    connection, jobs, execution = engine.connection, engine.jobs, engine.execution
    states = Counter(job.state for job in jobs.by_uuid.values())
    return WorkerStatus(
        name=engine.name,
        service=engine.service,
        pid=os.getpid(),
        version=__version__,
        up_s=round(now - engine.started, 3),
        broker=connection.label,
        registered_s=round(now - connection.registered_at, 3) if connection.registered else None,
        stopping=engine.stopping,
        concurrency=engine.settings.concurrency,
        running=len(execution.running),
        waiting=sum(states[state] for state in WAITING),
        held=states[State.HELD],
        abandoned=len(execution.abandoned),
        kept=len(jobs.kept),
        kept_octets=jobs.kept_octets,
        waiting_for_disk=len(engine.commits),
        resources=len(engine.resources),
        newest=tuple(_row(job, now) for job in islice(reversed(jobs.by_uuid.values()), NEWEST)),
        counters=WorkerCounters(
            completed=jobs.completed,
            failed=jobs.failed,
            registrations=connection.registrations,
            keepalives_in=connection.keepalives_in,
            keepalives_out=connection.keepalives_out,
            dropped=engine.dropped,
        ),
        captures=captures,
        durations=durations,
        store=engine.refusing,
    )


def _row(job: Assignment, now: float) -> AssignedStatus:
    end = job.ended_at if job.state is State.DONE else now
    return AssignedStatus(
        uuid=job.uuid,
        task=job.task,
        client=job.client.decode(errors="backslashreplace"),
        state=job.state.name.lower(),
        seconds=None if job.began is None else round(end - job.began, 3),
        failure=job.failure,
    )
