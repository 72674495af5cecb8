"""What a job came to: the answer of each worker, and why there is none where there is none.

A worker's entry is JSON of whoever wrote the worker: what is not as it should be is made to fit, and never raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

import msgspec

from specwire.runtime.norfab.client.states import State


class WorkerResult(msgspec.Struct, frozen=True):
    """One worker's part of a job.

    `code` is the status of its response; `attempt` counts how often the part was given to a worker, and `done_by` is who
    had it last, where that is not `worker`.
    """

    worker: str
    result: Any = None
    failed: bool = False
    errors: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    code: int = 200
    task: str = ""
    status: str = ""
    resources: tuple[str, ...] = ()
    diff: Any = None
    dry_run: bool | None = None
    started: str = ""
    completed: str = ""
    attempt: int = 1
    done_by: str = ""

    @property
    def cause(self) -> str:
        """Why it failed, in one sentence; empty where it did not."""
        if not self.failed:
            return ""
        return (
            "; ".join(self.errors) or "; ".join(self.messages) or "it failed, and the worker did not say why"
        )


class JobError(Exception):
    """A job has failed, wholly or in part, or has no result in time; `result` is all that there is of it."""

    def __init__(self, result: JobResult) -> None:
        super().__init__(result.explain())
        self.result = result


class JobResult(msgspec.Struct, frozen=True):
    """How a job stands, at its end or before.

    `results` is by the names that the broker told; `missing` are workers that have not answered; `code` and `error` say why the
    job as a whole has no result, and are 200 and empty where its workers answered. Times are seconds since the epoch,
    `ended_at` is 0 before the end.
    """

    uuid: str
    service: str
    task: str
    target: str
    state: State
    results: dict[str, WorkerResult] = {}
    missing: tuple[str, ...] = ()
    code: int = 200
    error: str = ""
    submitted_at: float = 0.0
    ended_at: float = 0.0

    @property
    def ended(self) -> bool:
        """Whether there is nothing to wait for."""
        return self.state.ended

    @property
    def ok(self) -> bool:
        """Whether every worker has done it."""
        return self.state is State.COMPLETED

    @property
    def failures(self) -> dict[str, str]:
        """Why, by worker, for those that failed."""
        return {name: part.cause for name, part in self.results.items() if part.failed}

    def values(self) -> dict[str, Any]:
        """Return what each worker's task returned; raises JobError where one has failed or not answered."""
        return {name: part.result for name, part in self.check().results.items()}

    def check(self) -> Self:
        """Return this where the job is done; raises JobError where not."""
        if not self.ok:
            raise JobError(self)
        return self

    def explain(self) -> str:
        """Return what went wrong, or how far it is, in one sentence."""
        what = f"{self.task or 'the job'} of {self.service} ({self.uuid})"
        if self.ok:
            return f"{what} is done by {_listed(self.results)}"
        causes = [self.error] if self.error else []
        if not self.error or self.results:
            causes += [f"{name}: {cause}" for name, cause in self.failures.items() if cause != self.error]
        if self.missing and not self.error:
            causes.append(f"no answer of {_listed(self.missing)}")
        word = "has failed" if self.ended else f"has not ended ({self.state})"
        more = f"; and {len(causes) - 5} more" if len(causes) > 5 else ""
        return f"{what} {word}: {'; '.join(causes[:5])}{more}" if causes else f"{what} {word}"


class Answer(msgspec.Struct, frozen=True):
    """An answer to a management request: the status code, and the body as it came."""

    code: int
    body: bytes

    def read(self) -> Any:
        """Return the body as JSON; raises ValueError where it is none."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ValueError(f"the answer is no JSON: {error}") from None


def read_entry(worker: str, code: int, entry: bytes) -> WorkerResult:
    """Return what a worker's entry says."""
    try:
        usual = _USUAL.decode(entry)
    except _UNREADABLE:
        return _read_unusual(worker, code, entry)
    return WorkerResult(
        worker,
        usual.result,
        usual.failed or code >= 400,
        usual.errors,
        usual.messages,
        code,
        usual.task,
        usual.status,
        usual.resources,
        usual.diff,
        usual.dry_run,
        usual.task_started or "",
        usual.task_completed or "",
        usual.attempt,
        usual.worker if usual.worker != worker else "",
    )


class _Usual(msgspec.Struct, frozen=True):
    """An entry in which everything is what it should be."""

    result: Any = None
    failed: bool = False
    errors: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    task: str = ""
    status: str = ""
    resources: tuple[str, ...] = ()
    diff: Any = None
    dry_run: bool | None = None
    task_started: str | None = None
    task_completed: str | None = None
    attempt: int = 1
    worker: str = ""


_USUAL = msgspec.json.Decoder(_Usual)
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _read_unusual(worker: str, code: int, entry: bytes) -> WorkerResult:
    """Return what an entry says in which not everything is as it should be."""
    try:
        said = msgspec.json.decode(entry)
    except _UNREADABLE:
        said = None
    if not isinstance(said, dict):
        return WorkerResult(worker, failed=True, errors=("its answer cannot be read",), code=417)
    done_by, attempt = said.get("worker"), said.get("attempt")
    return WorkerResult(
        worker,
        result=said.get("result"),
        failed=bool(said.get("failed")) or code >= 400,
        errors=_texts(said.get("errors")),
        messages=_texts(said.get("messages")),
        code=code,
        task=_text(said.get("task")),
        status=_text(said.get("status")),
        resources=_texts(said.get("resources")),
        diff=said.get("diff"),
        dry_run=said["dry_run"] if isinstance(said.get("dry_run"), bool) else None,
        started=_text(said.get("task_started")),
        completed=_text(said.get("task_completed")),
        attempt=attempt if isinstance(attempt, int) and not isinstance(attempt, bool) else 1,
        done_by=done_by if isinstance(done_by, str) and done_by != worker else "",
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,) if value else ()
    return tuple(_text(item) for item in value) if isinstance(value, list) else ()


def _listed(names: Iterable[str] | Mapping[str, object]) -> str:
    words = list(names)
    return ", ".join(words[:5]) + (f" and {len(words) - 5} more" if len(words) > 5 else "")
