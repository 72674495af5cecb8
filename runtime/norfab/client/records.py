"""Records that a client stores: jobs, their states, results and progress.

Times are seconds since the epoch.
"""

from __future__ import annotations

import msgspec


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """A job as it was submitted, stored before it is sent.

    A job without a body was submitted by another client: the broker is only asked for its results.
    """

    uuid: str
    service: str
    task: str
    target: str
    body: bytes
    created_at: float
    deadline: float


class StateRecord(msgspec.Struct, frozen=True, gc=False):
    """State of a job; replaces the state stored before.

    Attributes:
        workers: those that the broker has listed.
        ended_at: 0 before the end.
        octets: size of all results.
    """

    uuid: str
    state: str
    workers: tuple[str, ...]
    deadline: float
    code: int = 0
    error: str = ""
    ended_at: float = 0.0
    octets: int = 0


class ResultRecord(msgspec.Struct, frozen=True, gc=False):
    """Result of one worker: its entry of a RESPONSE, as JSON."""

    uuid: str
    worker: str
    code: int
    entry: bytes
    at: float


class EventRecord(msgspec.Struct, frozen=True, gc=False):
    """Progress of a job, as JSON."""

    uuid: str
    at: float
    body: bytes


class ForgottenRecord(msgspec.Struct, frozen=True, gc=False):
    """Deletes everything stored about a job."""

    uuid: str


Record = JobRecord | StateRecord | ResultRecord | EventRecord | ForgottenRecord


class StoredJob(msgspec.Struct, frozen=True):
    """Everything stored about one job, except its progress."""

    job: JobRecord
    state: StateRecord
    results: tuple[ResultRecord, ...] = ()


class HistoryEntry(msgspec.Struct, frozen=True):
    """A job without its results, as the history lists it. `ended_at` is 0 before the end."""

    uuid: str
    service: str
    task: str
    target: str
    state: str
    workers: tuple[str, ...]
    code: int
    error: str
    submitted_at: float
    ended_at: float


def history_entry(job: JobRecord, state: StateRecord) -> HistoryEntry:
    """Return the line of the history for a job."""
    return HistoryEntry(
        job.uuid,
        job.service,
        job.task,
        job.target,
        state.state,
        state.workers,
        state.code,
        state.error,
        job.created_at,
        state.ended_at,
    )
