"""What happened in a worker, told to whoever runs it. (The protocol's EVENT is `commands.Event`.)"""

from __future__ import annotations

from typing import Literal

import msgspec


class Connected(msgspec.Struct, frozen=True, gc=False):
    """A broker was heard: the worker is registered there."""

    broker: str
    service: str


class Disconnected(msgspec.Struct, frozen=True, gc=False):
    """There is no connection any more; the next attempt is at `broker` in `retry_s` seconds."""

    reason: str
    broker: str
    retry_s: float


class JobTaken(msgspec.Struct, frozen=True, gc=False):
    """A job is durable and was acknowledged."""

    uuid: str
    task: str


class JobStarted(msgspec.Struct, frozen=True, gc=False):
    """A job begins."""

    uuid: str
    task: str


class JobEnded(msgspec.Struct, frozen=True, gc=False):
    """A job's end is durable; `failure` is empty where it succeeded."""

    uuid: str
    task: str
    seconds: float
    failure: str


class JobRefused(msgspec.Struct, frozen=True, gc=False):
    """A job was not taken."""

    uuid: str
    reason: str


class JobsGivenBack(msgspec.Struct, frozen=True, gc=False):
    """These had not begun when the worker was told to stop: the broker gives them to others, or tells their loss."""

    uuids: tuple[str, ...]


class Dropped(msgspec.Struct, frozen=True, gc=False):
    """A message of the broker's was not understood, or came out of turn."""

    kind: Literal["malformed", "unexpected"]
    reason: str


class StoreFailed(msgspec.Struct, frozen=True, gc=False):
    """A record could not be stored or read, or the disk fails and new jobs are refused."""

    reason: str


class StoreRecovered(msgspec.Struct, frozen=True, gc=False):
    """The disk works again, and jobs are accepted."""


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
