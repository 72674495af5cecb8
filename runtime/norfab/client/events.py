"""Events of a client, for its user. (The EVENT command of the protocol is `commands.Event`.)"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from specwire.runtime.norfab.client.results import Answer, JobResult
from specwire.runtime.norfab.client.states import State
from specwire.runtime.norfab.pendingcommits import StoreRecovered

DropKind = Literal["double", "late", "unknown", "malformed", "unexpected"]


class Progress(msgspec.Struct, frozen=True):
    """Progress of a running job, from a worker or from the broker for it.

    Attributes:
        at: seconds since the epoch.
        said: the whole body.
    """

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
    """A broker has accepted the job, and will end it whatever happens to this client."""

    uuid: str


class JobChanged(msgspec.Struct, frozen=True):
    """A job has a new state, new workers or a new answer.

    Attributes:
        answered: those of `workers` that have answered.
        failed: those of `answered` that have failed.
    """

    uuid: str
    state: State
    workers: tuple[str, ...] = ()
    answered: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


class JobEnded(msgspec.Struct, frozen=True):
    """A job has ended. `late`: it was stale, and its result has arrived after all."""

    result: JobResult
    late: bool = False


class JobWaits(msgspec.Struct, frozen=True):
    """The broker has a job, and no worker for it now."""

    uuid: str


class JobPostponed(msgspec.Struct, frozen=True):
    """The broker cannot accept a job, or answer for it, now. The client asks again."""

    uuid: str
    reason: str


class JobPostedAgain(msgspec.Struct, frozen=True):
    """A job was posted again, under the same uuid, as the broker does not know it."""

    uuid: str
    target: str
    reason: str


class Answered(msgspec.Struct, frozen=True):
    """A management request, or a deletion, has its answer."""

    uuid: str
    answer: Answer


class Piece(msgspec.Struct, frozen=True):
    """Octets that a worker streams to a job."""

    uuid: str
    code: int
    body: bytes


class Connecting(msgspec.Struct, frozen=True):
    """The client connects to a broker."""

    endpoint: str


class Connected(msgspec.Struct, frozen=True):
    """A broker has sent its first message."""

    endpoint: str


class ConnectionLost(msgspec.Struct, frozen=True):
    """There is no connection. The client tries this broker, or the next one, again."""

    endpoint: str
    reason: str


class Dropped(msgspec.Struct, frozen=True):
    """A message was ignored."""

    uuid: str
    kind: DropKind
    reason: str


class StoreFailed(msgspec.Struct, frozen=True):
    """Records could not be stored, or have to wait until the disk accepts writes."""

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
    | StoreRecovered
)
