"""A job in the worker's memory."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from specwire.runtime.norfab.worker.bodies import Outcome
from specwire.runtime.norfab.worker.records import JobRecord


class State(Enum):
    """Where a job is."""

    STORING = "waits for the disk"
    HELD = "was kept through a restart, and waits for the broker to ask for it"
    QUEUED = "waits for its turn"
    MARKING = "that it begins waits for the disk"
    RUNNING = "runs"
    ENDING = "its end waits for the disk"
    DONE = "its end is durable"


STORING, HELD, QUEUED, MARKING, RUNNING, ENDING, DONE = State
"""The same by short names: Python 3.11 takes ten times as long to look a member up in its class."""

OPEN = (STORING, HELD, QUEUED, MARKING, RUNNING)
"""It has no end yet."""

WAITING = (STORING, QUEUED, MARKING)
"""It will begin without a further word of the broker's."""


class Assignment:
    """A job and what has become of it; what is not told here is as in `JobRecord`.

    Attributes:
        body: as posted; empty when it has ended.
        deadline: when it ends without a result.
        began: when it began, None before.
        messages: the progress that it told.
        deleting: a client wants it deleted, which is not durable yet.
        deleted: it is deleted, durably; only the uuid is remembered.
        outcome: how it ended while it was being deleted.
        result_octets: size of the stored result.
        failure: why it failed; empty where it did not.
        fault: the worker was at fault and not the task.
    """

    __slots__ = (
        "accepted_at",
        "began",
        "body",
        "client",
        "deadline",
        "deleted",
        "deleting",
        "ended_at",
        "failure",
        "fault",
        "messages",
        "number",
        "outcome",
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
        self.deleting = self.deleted = self.fault = False
        self.outcome: Outcome | None = None
        self.result_octets = 0
        self.failure = ""

    @property
    def record(self) -> JobRecord:
        """What is kept of it while it has no end."""
        held = self.state is HELD
        return JobRecord(self.number, self.uuid, self.client, self.task, self.body, self.accepted_at, held)
