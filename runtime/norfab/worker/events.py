"""Events of a worker, for its user. (The EVENT command of the protocol is `commands.Event`.)"""

from __future__ import annotations

from typing import Literal

import msgspec

from specwire.runtime.norfab.pendingcommits import StoreRecovered


class Connected(msgspec.Struct, frozen=True, gc=False):
    """A broker has answered: the worker is registered there."""

    broker: str
    service: str


class Disconnected(msgspec.Struct, frozen=True, gc=False):
    """The connection is lost. The next attempt is at `broker` in `retry_s` seconds."""

    reason: str
    broker: str
    retry_s: float


class JobTaken(msgspec.Struct, frozen=True, gc=False):
    """A job is durable, and accepted."""

    uuid: str
    task: str


class JobStarted(msgspec.Struct, frozen=True, gc=False):
    """A task is started."""

    uuid: str
    task: str


class JobEnded(msgspec.Struct, frozen=True, gc=False):
    """The result of a job is durable; `failure` is empty if it succeeded."""

    uuid: str
    task: str
    seconds: float
    failure: str


class JobRefused(msgspec.Struct, frozen=True, gc=False):
    """A job was not accepted."""

    uuid: str
    reason: str


class JobsGivenBack(msgspec.Struct, frozen=True, gc=False):
    """Jobs that had not begun when the worker was stopped; the broker gives them to other workers."""

    uuids: tuple[str, ...]


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """A message of the broker was malformed or unexpected."""

    kind: Literal["malformed", "unexpected"]
    reason: str


class StoreFailed(msgspec.Struct, frozen=True, gc=False):
    """A record could not be stored or read, or the disk fails and new jobs are refused."""

    reason: str


Happening = (
    Connected
    | Disconnected
    | JobTaken
    | JobStarted
    | JobEnded
    | JobRefused
    | JobsGivenBack
    | Dropped
    | StoreFailed
    | StoreRecovered
)
