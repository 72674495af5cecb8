"""A job in the worker's memory."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from specwire.runtime.norfab.worker.records import JobRecord


class State(Enum):
    """State of a job."""

    STORING = "its record is not durable yet"
    HELD = "restored after a restart; waits until the broker asks for it"
    QUEUED = "waits for a place"
    BEGINNING = "has a place; its begin record is not durable yet"
    RUNNING = "its task runs"
    ENDING = "its result is not durable yet"
    UNSTORED = "it has ended, and the store takes no result of it"
    DONE = "its result is durable, or it was deleted"


STORING, HELD, QUEUED, BEGINNING, RUNNING, ENDING, UNSTORED, DONE = State
"""Python 3.11 needs ten times as long to look a member up in its class."""

OPEN = (STORING, HELD, QUEUED, BEGINNING, RUNNING)
"""States of a job that has no result."""

WAITING = (STORING, QUEUED, BEGINNING)
"""States in which the worker will start the job without a further message."""


class Assignment:
    """A job that the broker has posted. Attributes that are not listed are those of `JobRecord`.

    Attributes:
        body: as posted; empty when the job is done.
        deadline: when the job ends with a failure, unless it has ended.
        placed: it is being stored together with its begin record, so it has a place.
        began: when its task was started; None before.
        messages: texts of its progress, which are repeated in the result.
        deleted: its deletion is durable. Only the uuid is of interest.
        result_octets: size of the stored result.
        failure: the cause, if it failed.
        fault: it failed because of the worker, not of its task.
    """

    __slots__ = (
        "accepted_at",
        "began",
        "body",
        "client",
        "deadline",
        "deleted",
        "ended_at",
        "failure",
        "fault",
        "messages",
        "number",
        "placed",
        "result_octets",
        "state",
        "task",
        "uuid",
    )

    def __init__(self, record: JobRecord, deadline: float) -> None:
        self.number, self.uuid, self.client = record.number, record.uuid, record.client
        self.task, self.body, self.accepted_at = record.task, record.body, record.accepted_at
        self.deadline = deadline
        self.state = STORING
        self.began: float | None = None
        self.ended_at = 0.0
        self.messages: Sequence[str] = ()
        self.placed = self.deleted = self.fault = False
        self.result_octets = 0
        self.failure = ""

    @property
    def record(self) -> JobRecord:
        """Record of the job as long as it has no result."""
        held = self.state is HELD
        return JobRecord(self.number, self.uuid, self.client, self.task, self.body, self.accepted_at, held)
