"""JSON bodies that a worker sends, in the format of deployed workers.

The result of a job is ``{worker: {"result", "failed", "errors", …}}``. A task's value is encoded where the
task runs, and inserted here as raw JSON, so that nothing here can fail because of it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

NULL = msgspec.Raw(b"null")
_encode = msgspec.json.Encoder().encode


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a task. `result` and `diff` are JSON."""

    result: msgspec.Raw = NULL
    failed: bool = False
    errors: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    status: str = ""
    diff: msgspec.Raw = NULL
    dry_run: bool = False
    fault: bool = False
    """It failed because of the worker, not of the task: another worker may succeed."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """Progress of a running task."""

    message: str
    severity: str = "INFO"
    resources: tuple[str, ...] = ()
    status: str = "running"
    event_type: str = "progress"
    extras: msgspec.Raw | None = None


def failure(cause: str, status: str = "failed") -> Outcome:
    """Return the outcome of a job that failed."""
    return Outcome(failed=True, errors=(cause,), status=status)


def fault(cause: str) -> Outcome:
    """Return the outcome of a job that failed because of the worker."""
    return Outcome(failed=True, errors=(cause,), fault=True)


def result(
    worker: str,
    service: str,
    uuid: str,
    task: str,
    outcome: Outcome,
    messages: Sequence[str],
    began: float | None,
    ended: float,
) -> bytes:
    """Body of the RESPONSE with the result of a job."""
    entry = {
        "result": outcome.result,
        "failed": outcome.failed,
        "errors": outcome.errors,
        "task": f"{worker}:{task}",
        "messages": [*messages, *outcome.messages],
        "juuid": uuid,
        "resources": outcome.resources,
        "status": outcome.status or ("failed" if outcome.failed else "completed"),
        "task_started": None if began is None else _clock(int(began)),
        "task_completed": _clock(int(ended)),
        "service": service,
        "diff": outcome.diff,
        "dry_run": outcome.dry_run,
    }
    return _encode({worker: entry})


@lru_cache(maxsize=16)
def _clock(second: int) -> str:
    return time.ctime(second)


def state(worker: str, service: str, uuid: str, status: str, error: str = "") -> bytes:
    """Body of 201, 300, and of the answer to DELETE."""
    body: dict[str, Any] = {"worker": worker, "uuid": uuid, "status": status, "service": service}
    return msgspec.json.encode(body | {"error": error, "errors": [error]} if error else body)


def unknown(worker: str, service: str, uuid: str) -> bytes:
    """Body of 400 and 404: this worker does not know the uuid."""
    return state(worker, service, uuid, "UNKNOWN", f"{worker} does not know the job {uuid[:255]}")


def event(worker: str, service: str, uuid: str, task: str, progress: Progress, at: float) -> bytes:
    """Body of an EVENT."""
    said: dict[str, Any] = {
        "worker": worker,
        "service": service,
        "uuid": uuid,
        "event_type": progress.event_type,
        "message": progress.message,
        "task": task,
        "status": progress.status,
        "resource": progress.resources,
        "severity": progress.severity,
        "timestamp": time.ctime(at),
    }
    return msgspec.json.encode(said if progress.extras is None else said | {"extras": progress.extras})


def name_query(name: str) -> bytes:
    """Return the body of OPEN that asks whether a name is taken."""
    return msgspec.json.encode({"name": name})


def introduction(resources: Sequence[str]) -> bytes:
    """Return the body of OPEN with the worker's resources; empty if there are none."""
    return msgspec.json.encode({"resources": resources}) if resources else b""
