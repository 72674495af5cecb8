"""What a worker keeps on disk, as values. Times are seconds since the epoch.

A job is known by its number. Jobs begin in the order of their numbers, so that one number says which have begun; those
that were kept through a restart and wait to be asked for are out of this order, and say so. A later record of a number
takes the place of an earlier one of the same kind.
"""

from __future__ import annotations

import msgspec


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """A job that was taken. `client` is the address that the broker gave with it; the body is kept until it ends."""

    number: int
    uuid: str
    client: bytes
    task: str
    body: bytes
    accepted_at: float
    held: bool = False
    """It has not begun, whatever numbers have; when its turn comes it gets another number."""


class BegunRecord(msgspec.Struct, frozen=True, gc=False):
    """All jobs up to this number have begun, but for those that are held."""

    number: int


class ResultRecord(msgspec.Struct, frozen=True, gc=False):
    """How a job ended. A store that is read for a start leaves the body out."""

    number: int
    body: bytes
    ended_at: float
    octets: int
    failed: bool
    fault: bool
    """The worker was at fault; see `bodies.Outcome`."""


class DeletedRecord(msgspec.Struct, frozen=True, gc=False):
    """The job was deleted: its body and result can go, its uuid stays known."""

    number: int
    at: float


class ForgottenRecord(msgspec.Struct, frozen=True, gc=False):
    """Nothing of this job needs to be kept: retention is over, or it was given back before it began."""

    number: int


Record = JobRecord | BegunRecord | ResultRecord | DeletedRecord | ForgottenRecord
