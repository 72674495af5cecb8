"""What a broker keeps on disk, as values: jobs, results, what happened in them, and that they were deleted.

A later record takes the place of an earlier one of the same kind and key: a job's key is its uuid, a result's is uuid
and slot. Times are seconds since the epoch.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class TaskRecord(msgspec.Struct, frozen=True, gc=False):
    """One worker's part of a job.

    `slot` is the name that the client was told, `worker` the one that has it now: they differ where a job for any
    worker was given to another. `attempt` counts how often it was given to a worker; 0 is not yet.
    """

    slot: str
    worker: str
    attempt: int


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """A job that was accepted. `client` is a routing id; without `tasks` it waits for workers of its service."""

    uuid: str
    client: bytes
    user: str
    service: str
    target: str
    body: bytes
    accepted_at: float
    deadline: float
    tasks: tuple[TaskRecord, ...] = ()


class AssignedRecord(msgspec.Struct, frozen=True, gc=False):
    """Some parts of a job went to workers: these take the place of those with their slots in the job's record."""

    uuid: str
    tasks: tuple[TaskRecord, ...]


class ResultRecord(msgspec.Struct, frozen=True, gc=False):
    """How one worker's part ended; the body is what the client is sent."""

    uuid: str
    slot: str
    status: int
    body: bytes
    ended_at: float


class HeldResult(msgspec.Struct, frozen=True, gc=False):
    """A `ResultRecord` as a store may tell of it when a broker begins: without the body, which it has."""

    uuid: str
    slot: str
    status: int
    octets: int
    ended_at: float


class EventRecord(msgspec.Struct, frozen=True, gc=False):
    """What happened in a job, for its history; never waited for."""

    uuid: str
    at: float
    body: bytes


class DeletedRecord(msgspec.Struct, frozen=True, gc=False):
    """The job was deleted at a client's wish: its record, results and events can go, its uuid stays known."""

    uuid: str
    service: str
    at: float


class WorkerRecord(msgspec.Struct, frozen=True, gc=False):
    """A worker registered; forgotten when it is lost or has left, so it says who was here when a broker died.

    `uuid` is `worker_key` of its name, which no job has.
    """

    uuid: str
    name: str
    service: str


class ForgottenRecord(msgspec.Struct, frozen=True, gc=False):
    """Nothing of this uuid needs to be kept: retention is over, a worker is gone (`left`), or its job was `refused`."""

    uuid: str
    reason: Literal["age", "number", "left", "refused"]


Record = (
    JobRecord | AssignedRecord | ResultRecord | EventRecord | DeletedRecord | WorkerRecord | ForgottenRecord
)


def worker_key(name: str) -> str:
    """Return under what a worker is kept: a uuid has no space."""
    return f"worker {name}"
