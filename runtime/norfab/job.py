"""A job in the broker's memory, and the part of it that each worker has."""

from __future__ import annotations

from enum import Enum

from specwire.runtime.norfab.names import Target
from specwire.runtime.norfab.records import JobRecord, TaskRecord


class State(Enum):
    """Where a worker's part of a job is."""

    WAITING = "no worker has it"
    QUEUED = "its worker has enough to do"
    HELD = "goes to the worker when it is durable which worker has it"
    SENT = "was sent"
    ACCEPTED = "the worker said that it has it"
    ENDING = "its end waits for the disk"
    DONE = "its end is durable"


OWED = (State.SENT, State.ACCEPTED)
"""The worker owes a result."""


class Outcome:
    """How a part ended. `body` is what the clients are sent, None where only the store has it; `octets` is its size."""

    __slots__ = ("body", "ended_at", "octets", "status")

    def __init__(self, status: int, body: bytes | None, octets: int, ended_at: float) -> None:
        self.status, self.body, self.octets, self.ended_at = status, body, octets, ended_at


class Task:
    """One worker's part of a job; attributes as in `TaskRecord`.

    Attributes:
        registration: that of the worker to which it was last sent; another one has not seen it on this connection.
        sent_at: when it was last sent.
        asked_at: when the worker was last asked for it.
        kept: the attempt that is durable; an attempt is only sent when it is.
        result: how it ended, None before.
    """

    __slots__ = (
        "asked_at",
        "attempt",
        "job",
        "kept",
        "registration",
        "result",
        "sent_at",
        "slot",
        "state",
        "worker",
    )

    def __init__(self, job: Job, slot: str, worker: str, attempt: int = 0) -> None:
        self.job, self.slot, self.worker, self.attempt = job, slot, worker, attempt
        self.state = State.WAITING
        self.kept = self.registration = 0
        self.sent_at = self.asked_at = 0.0
        self.result: Outcome | None = None

    @property
    def record(self) -> TaskRecord:
        """What is kept of it."""
        return TaskRecord(self.slot, self.worker, self.attempt)


class Job:
    """A job and who waits for it.

    Attributes:
        tasks: by slot, the name the client was told; empty while no worker has it.
        told: whether the list of workers is durable, and was sent to the clients.
        durable: whether it was acknowledged.
        queued_until: when it ends with 408 for want of a worker.
        listeners: routing ids of the clients whose POST or GET is outstanding, with the user of each.
        open: how many tasks have not ended.
        octets, parts: of the body, and of workers, as they are counted in all unfinished jobs.
        deleted: a client deleted it; it is remembered so that its uuid stays known.
    """

    __slots__ = (
        "accepted_at",
        "body",
        "client",
        "deadline",
        "deleted",
        "durable",
        "ended_at",
        "events",
        "listeners",
        "octets",
        "open",
        "parts",
        "queued_until",
        "resources",
        "result_octets",
        "service",
        "target",
        "task",
        "tasks",
        "told",
        "user",
        "uuid",
        "wanted",
    )

    def __init__(self, record: JobRecord, wanted: Target, task: str, resources: tuple[str, ...]) -> None:
        self.uuid, self.client, self.user = record.uuid, record.client, record.user
        self.service, self.target, self.body = record.service, record.target, record.body
        self.accepted_at, self.deadline = record.accepted_at, record.deadline
        self.wanted, self.task, self.resources = wanted, task, resources
        self.tasks: dict[str, Task] = {}
        self.listeners: dict[bytes, str] = {record.client: record.user}
        self.told = self.durable = self.deleted = False
        self.queued_until = self.ended_at = 0.0
        self.open = self.events = self.parts = self.result_octets = 0
        self.octets = len(record.body)

    def add(self, slot: str, worker: str, attempt: int = 0) -> Task:
        """Make a worker's part of it."""
        task = self.tasks[slot] = Task(self, slot, worker, attempt)
        self.open += 1
        return task

    @property
    def owner(self) -> bytes:
        """Who takes turns with others and has a limit: the user, or without security the connection."""
        return self.user.encode() or self.client

    @property
    def ended(self) -> bool:
        """Whether every part has ended, durably."""
        return bool(self.tasks) and not self.open

    @property
    def record(self) -> JobRecord:
        """What is kept of it."""
        return JobRecord(
            self.uuid,
            self.client,
            self.user,
            self.service,
            self.target,
            self.body,
            self.accepted_at,
            self.deadline,
            tuple(task.record for task in self.tasks.values()),
        )

    def missing(self) -> list[str]:
        """Return the slots that no worker has."""
        return [task.slot for task in self.tasks.values() if task.state is State.WAITING]
