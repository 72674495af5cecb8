"""Records of a worker's store. Times are seconds since the epoch.

The key of a job is its number. Jobs begin in the order of their numbers, so that one number says which
have begun. Jobs that were restored, and wait until the broker asks for them, are an exception (`held`).
A record replaces an earlier one of the same kind and number, but a deletion is final.
"""

from __future__ import annotations

import msgspec


class JobRecord(msgspec.Struct, frozen=True, gc=False):
    """An accepted job. `client` is the address that came with it. The body is deleted when the job ends."""

    number: int
    uuid: str
    client: bytes
    task: str
    body: bytes
    accepted_at: float
    held: bool = False
    """It has not begun, whatever `BegunRecord` says. It gets another number before it begins."""


class BegunRecord(msgspec.Struct, frozen=True, gc=False):
    """All jobs up to this number have begun, except those that are held."""

    number: int


class ResultRecord(msgspec.Struct, frozen=True, gc=False):
    """Result of a job. The body is empty when it is loaded for a start."""

    number: int
    body: bytes
    ended_at: float
    octets: int
    failed: bool
    fault: bool
    """See `bodies.Outcome`."""


class DeletedRecord(msgspec.Struct, frozen=True, gc=False):
    """The job was deleted. Its uuid is remembered."""

    number: int
    at: float


class ForgottenRecord(msgspec.Struct, frozen=True, gc=False):
    """Delete everything about a job: its retention is over, or it was given back."""

    number: int


Record = JobRecord | BegunRecord | ResultRecord | DeletedRecord | ForgottenRecord
