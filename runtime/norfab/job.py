"""A job in the broker's memory, and the part of it that each worker has.

A broker keeps very many of these. Python's collector of cycles would look at each again and again, and stop the broker for
that time, so it is not told of them (``gc=False``); who drops a job calls `Job.release`.
"""

from __future__ import annotations

from enum import Enum
from sys import intern

import msgspec

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


WAITING, QUEUED, HELD, SENT, ACCEPTED, ENDING, DONE = State
"""The same by short names: Python 3.11 takes ten times as long to look a member up in its class, which a broker does often."""

OWED = (SENT, ACCEPTED)
"""The worker owes a result."""

OVER = (ENDING, DONE)
"""It has an end."""


class Outcome(msgspec.Struct, gc=False, eq=False):
    """How a part ended. `body` is what the clients are sent, None where only the store has it; `octets` is its size."""

    status: int
    body: bytes | None
    octets: int
    ended_at: float


class Task(msgspec.Struct, gc=False, eq=False):
    """One worker's part of a job; attributes as in `TaskRecord`.

    Attributes:
        registration: that of the worker to which it was last sent; another one has not seen it on this connection.
        sent_at: when it was last sent.
        asked_at: when the worker was last asked for it.
        kept: the attempt that is durable; an attempt is only sent when it is.
        restored: attempts that earlier processes of the broker made.
        result: how it ended, None before.
    """

    job: Job
    slot: str
    worker: str
    attempt: int = 0
    state: State = WAITING
    kept: int = 0
    restored: int = 0
    registration: int = 0
    sent_at: float = 0.0
    asked_at: float = 0.0
    result: Outcome | None = None

    @property
    def tries(self) -> int:
        """Number of attempts of this process of the broker.

        `Settings.attempts` limits these: a job that was lost with the broker did not fail at a worker.
        """
        return self.attempt - self.restored

    @property
    def record(self) -> TaskRecord:
        """What is kept of it."""
        return TaskRecord(self.slot, self.worker, self.attempt)


class Job(msgspec.Struct, gc=False, eq=False):
    """A job and who waits for it.

    Attributes:
        tasks: by slot, the name the client was told; empty while no worker has it.
        told: whether the list of workers is durable, and was sent to the clients.
        durable: whether it was acknowledged.
        queued_until: when it ends with 408 for want of a worker.
        listeners: routing ids of the clients whose POST or GET is outstanding, with the user of each.
        open: how many tasks have not ended.
        octets, parts: of the body, and of workers, as they are counted in all unfinished jobs.
        recorded: records were written after that of the job itself.
        deleted: a client deleted it (it is remembered so that its uuid stays known), or the broker has forgotten it.
    """

    uuid: str
    client: bytes
    user: str
    service: str
    target: str
    body: bytes
    accepted_at: float
    deadline: float
    wanted: Target
    task: str
    resources: tuple[str, ...]
    listeners: dict[bytes, str]
    octets: int
    tasks: dict[str, Task] = {}
    told: bool = False
    durable: bool = False
    recorded: bool = False
    deleted: bool = False
    queued_until: float = 0.0
    ended_at: float = 0.0
    open: int = 0
    events: int = 0
    parts: int = 0
    result_octets: int = 0

    @classmethod
    def of(
        cls,
        uuid: str,
        client: bytes,
        user: str,
        service: str,
        target: str,
        body: bytes,
        accepted_at: float,
        deadline: float,
        wanted: Target,
        task: str,
        resources: tuple[str, ...],
    ) -> Job:
        """Return a job that has no workers yet."""
        return cls(
            uuid,
            client,
            user,
            intern(service),
            intern(target),
            body,
            accepted_at,
            deadline,
            wanted,
            intern(task),
            resources,
            {client: user},
            len(body),
        )

    @classmethod
    def from_record(
        cls, record: JobRecord, wanted: Target, task: str = "", resources: tuple[str, ...] = ()
    ) -> Job:
        """Return a job as it was kept, without its parts."""
        return cls.of(
            record.uuid,
            record.client,
            record.user,
            record.service,
            record.target,
            record.body,
            record.accepted_at,
            record.deadline,
            wanted,
            task,
            resources,
        )

    def add(self, slot: str, worker: str, attempt: int = 0) -> Task:
        """Make a worker's part of it."""
        task = self.tasks[slot] = Task(self, slot, worker, attempt)
        self.open += 1
        return task

    def release(self) -> None:
        """Let go of its parts, which hold it; nothing else would free their memory."""
        self.deleted = True
        self.tasks.clear()

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
            tuple([TaskRecord(task.slot, task.worker, task.attempt) for task in self.tasks.values()]),
        )

    def missing(self) -> list[str]:
        """Return the slots that no worker has."""
        return [task.slot for task in self.tasks.values() if task.state is WAITING]
