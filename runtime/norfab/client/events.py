"""What happens to a client and its jobs, told to whoever runs it. (The protocol's EVENT is `commands.Event`.)"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from specwire.runtime.norfab.client.results import Answer, JobResult
from specwire.runtime.norfab.client.states import State

DropKind = Literal["double", "late", "unknown", "malformed", "unexpected"]


class Progress(msgspec.Struct, frozen=True):
    """What a worker, or the broker for it, says of a job that runs; `said` is all of it, `at` seconds since the epoch."""

    uuid: str
    worker: str
    message: str
    severity: str = "INFO"
    status: str = ""
    task: str = ""
    service: str = ""
    event_type: str = "progress"
    resources: tuple[str, ...] = ()
    at: float = 0.0
    said: dict[str, Any] = {}


class JobAccepted(msgspec.Struct, frozen=True):
    """A broker has the job: it will end there, whatever happens here."""

    uuid: str


class JobChanged(msgspec.Struct, frozen=True):
    """A job is in another state, or its workers are known, or one has answered: `answered` of `workers`, `failed` of those."""

    uuid: str
    state: State
    workers: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobEnded(msgspec.Struct, frozen=True):
    """A job has ended; `late` where nobody waited any more, and it ends once more by the result that came all the same."""

    result: JobResult
    late: bool = False


class JobWaits(msgspec.Struct, frozen=True):
    """The broker has a job for which there is no worker now."""

    uuid: str


class JobPostponed(msgspec.Struct, frozen=True):
    """The broker cannot take a job, or answer for it, now; it is asked again."""

    uuid: str
    reason: str


class JobPostedAgain(msgspec.Struct, frozen=True):
    """A broker that does not know an accepted job was given it once more, under the same uuid."""

    uuid: str
    target: str
    reason: str


class Answered(msgspec.Struct, frozen=True):
    """A management request, or a deletion, has its answer."""

    uuid: str
    answer: Answer


class Piece(msgspec.Struct, frozen=True):
    """A worker streams octets to a job."""

    uuid: str
    code: int
    body: bytes


class Connecting(msgspec.Struct, frozen=True):
    """A broker is tried."""

    endpoint: str


class Connected(msgspec.Struct, frozen=True):
    """A broker has spoken."""

    endpoint: str


class ConnectionLost(msgspec.Struct, frozen=True):
    """There is no way to the broker; it, or the next one, is tried again."""

    endpoint: str
    reason: str


class Dropped(msgspec.Struct, frozen=True):
    """A message was of no use: double, late, of no job of this client, or malformed."""

    uuid: str
    kind: DropKind
    reason: str


class StoreFailed(msgspec.Struct, frozen=True):
    """Something could not be kept on disk."""

    reason: str


Happening = (
    Progress
    | JobAccepted
    | JobChanged
    | JobEnded
    | JobWaits
    | JobPostponed
    | JobPostedAgain
    | Answered
    | Piece
    | Connecting
    | Connected
    | ConnectionLost
    | Dropped
    | StoreFailed
)
