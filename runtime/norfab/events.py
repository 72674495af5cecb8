"""What happened in a broker, told to whoever runs it. (The protocol's EVENT is `commands.Event`.)"""

from __future__ import annotations

from typing import Literal

import msgspec


class WorkerReady(msgspec.Struct, frozen=True, gc=False):
    """A worker registered; `again` where it was registered already."""

    worker: str
    service: str
    again: bool


class WorkerGone(msgspec.Struct, frozen=True, gc=False):
    """A worker is no longer registered."""

    worker: str
    service: str
    reason: str


class Refused(msgspec.Struct, frozen=True, gc=False):
    """A peer asked for what it does not get, or a worker was not let in."""

    peer: bytes
    reason: str


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """A message was not passed on: late, forged, double, malformed, or out of turn."""

    peer: bytes
    kind: Literal["late", "forged", "double", "malformed", "unexpected", "unknown"]
    reason: str


class JobAccepted(msgspec.Struct, frozen=True, gc=False):
    """A job is durable and was acknowledged."""

    uuid: str
    user: str
    client: bytes
    service: str
    task: str
    workers: tuple[str, ...]


class JobRedispatched(msgspec.Struct, frozen=True, gc=False):
    """Part of a job was given to a worker once more."""

    uuid: str
    before: str
    worker: str
    attempt: int


class JobEnded(msgspec.Struct, frozen=True, gc=False):
    """One worker's part of a job has ended; `failure` is empty where the worker itself answered."""

    uuid: str
    worker: str
    status: int
    failure: str


class JobDeleted(msgspec.Struct, frozen=True, gc=False):
    """A client deleted a job, durably."""

    uuid: str
    peer: bytes
    user: str


class StoreFailed(msgspec.Struct, frozen=True, gc=False):
    """A record could not be committed."""

    ticket: int
    reason: str


class StoreRefuses(msgspec.Struct, frozen=True, gc=False):
    """The disk fails: new work is refused, and everything else waits until the disk takes it."""

    reason: str


class StoreAccepts(msgspec.Struct, frozen=True, gc=False):
    """The disk takes records again."""


Happening = (
    WorkerReady
    | WorkerGone
    | Refused
    | Dropped
    | JobAccepted
    | JobRedispatched
    | JobEnded
    | JobDeleted
    | StoreFailed
    | StoreRefuses
    | StoreAccepts
)
