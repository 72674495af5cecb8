"""What management tells of jobs: the newest first, so many as are asked for, and only what the asking user may see."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from specwire.runtime.norfab.job import Job, State

if TYPE_CHECKING:
    from specwire.runtime.norfab.broker import BrokerEngine

ROWS = 100
MAX_ROWS = 1000
MAX_NAMES = 100
"""Workers that are listed in a row; `parts` says how many there are."""


def show_jobs(engine: BrokerEngine, user: str, kwargs: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each job; `service`, `state` (open, ended, all), `uuid` and `limit` narrow it."""
    limit = kwargs.get("limit")
    rows = limit if isinstance(limit, int) and 0 < limit <= MAX_ROWS else ROWS
    return [_row(engine, job) for job in islice(_meant(engine, user, kwargs), rows)]


def _meant(engine: BrokerEngine, user: str, kwargs: Mapping[str, Any]) -> Iterator[Job]:
    service, state, uuid = kwargs.get("service"), kwargs.get("state"), kwargs.get("uuid")
    for job in reversed(engine.jobs.by_uuid.values()):
        if (
            not job.deleted
            and service in (None, "", "all", job.service)
            and uuid in (None, "", job.uuid)
            and state in (None, "", "all", "ended" if job.ended else "open")
            and engine.access.may_see(user, job.user)
        ):
            yield job


def _row(engine: BrokerEngine, job: Job) -> dict[str, Any]:
    tasks = list(islice(job.tasks.values(), MAX_NAMES))
    running = any(task.state is not State.WAITING for task in tasks)
    return {
        "uuid": job.uuid,
        "service": job.service,
        "task": job.task[:200],
        "user": job.user,
        "client": job.client.decode(errors="backslashreplace"),
        "target": job.target[:200],
        "state": "ENDED" if job.ended else "RUNNING" if running else "WAITING",
        "parts": len(job.tasks),
        "workers": [task.slot for task in tasks],
        "answered": [task.slot for task in tasks if task.state is State.DONE],
        "age (s)": round(engine.now - job.accepted_at, 3),
    }
