"""What a client keeps on disk, as values: its jobs, how they stand, the results of workers, and their progress.

Times are seconds since the epoch.
"""

from __future__ import annotations

import msgspec


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """A job as it was submitted, before it is sent; one without a body was another client's, and is only asked for."""

    uuid: str
    service: str
    task: str
    target: str
    body: bytes
    created_at: float
    deadline: float


class StateRecord(msgspec.Struct, frozen=True, gc=False):
    """How a job stands. `workers` are those of the broker's list; `ended_at` is 0 before the end; `octets` of results."""

    uuid: str
    state: str
    workers: tuple[str, ...]
    deadline: float
    code: int = 0
    error: str = ""
    ended_at: float = 0.0
    octets: int = 0


class ResultRecord(msgspec.Struct, frozen=True, gc=False):
    """What one worker answered: its entry, as JSON."""

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
    """Nothing of this job needs to be kept."""

    uuid: str


Record = JobRecord | StateRecord | ResultRecord | EventRecord | ForgottenRecord


class Kept(msgspec.Struct, frozen=True):
    """All that a store has of one job, but for its progress."""

    job: JobRecord
    state: StateRecord
    results: tuple[ResultRecord, ...] = ()


class HistoryEntry(msgspec.Struct, frozen=True):
    """A line of the history: a job without its results. `ended_at` is 0 before the end."""

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
