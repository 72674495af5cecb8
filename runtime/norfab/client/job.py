"""A job in the client's memory, and the part of it that each worker has."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from specwire.runtime.norfab.client.reading import says_failed
from specwire.runtime.norfab.client.records import JobRecord, ResultRecord, StateRecord
from specwire.runtime.norfab.client.results import JobResult, read_entry
from specwire.runtime.norfab.client.states import NEW, State

NEVER = -1
EARLIER = 0
"""The number of a connection that an earlier process had; this one's begin with 1."""


class Part:
    """One worker's part.

    Attributes:
        result: None while there is none.
        failed: the worker has answered that it failed, or its loss was told.
        denials: how often the worker did not know the job.
    """

    __slots__ = ("denials", "failed", "result")

    def __init__(self) -> None:
        self.result: ResultRecord | None = None
        self.failed = False
        self.denials = 0

    def end(self, result: ResultRecord) -> None:
        """Take the worker's answer."""
        self.result = result
        self.failed = result.code >= 400 or says_failed(result.entry)


class Job:
    """A job that was submitted here, or is only asked for (`body` is empty then).

    Attributes:
        parts: by worker, as the broker named them; empty while it has not.
        since: when its present time began to run, `deadline` is its end.
        known_at: number of the connection on which the broker last showed that it knows the job.
        posted_at: number of the connection on which it was posted last.
        listed: whether the broker has said who the workers are: the parts are all that there are.
        asked: whether it was ever sent to a broker.
        poll_at, poll_s: when it is asked for without cause, and how long after that again.
        retry_s: how long to wait where the broker puts it off.
        unknown_since: since when the broker says that it does not know it; None where it does.
        refusal: why the broker did not take it, or does not answer.
        events: of its progress, that were kept.
        grace_until: its time is over, and the broker has until then to say why; 0 before.
        unstored: it was submitted, and is not durable yet, so it must not be sent.
    """

    __slots__ = (
        "asked",
        "body",
        "code",
        "created_at",
        "deadline",
        "ended_at",
        "error",
        "events",
        "grace_until",
        "known_at",
        "listed",
        "parts",
        "poll_at",
        "poll_s",
        "posted_at",
        "refusal",
        "retry_s",
        "service",
        "since",
        "state",
        "target",
        "task",
        "unknown_since",
        "unstored",
        "uuid",
    )

    def __init__(self, record: JobRecord, poll_s: float, retry_s: float) -> None:
        self.uuid, self.service, self.task, self.target = (
            record.uuid,
            record.service,
            record.task,
            record.target,
        )
        self.body, self.created_at, self.deadline = record.body, record.created_at, record.deadline
        self.since = record.created_at
        self.state: State = NEW
        self.parts: dict[str, Part] = {}
        self.known_at = self.posted_at = NEVER
        self.listed = self.asked = self.unstored = False
        self.grace_until = 0.0
        self.poll_at, self.poll_s, self.retry_s = 0.0, poll_s, retry_s
        self.unknown_since: float | None = None
        self.refusal = self.error = ""
        self.code, self.ended_at, self.events = 200, 0.0, 0

    @property
    def ours(self) -> bool:
        """Whether it can be posted again."""
        return bool(self.body)

    @property
    def pending(self) -> list[str]:
        """The workers that have not answered."""
        return [name for name, part in self.parts.items() if part.result is None]

    @property
    def answered(self) -> list[str]:
        """The workers that have answered."""
        return [name for name, part in self.parts.items() if part.result is not None]

    @property
    def failed(self) -> list[str]:
        """The workers that have answered that they failed, or whose loss was told."""
        return [name for name, part in self.parts.items() if part.failed]

    @property
    def complete(self) -> bool:
        """Whether every worker has answered."""
        if not self.listed:
            return False
        for part in self.parts.values():  # noqa: SIM110 - without a generator for each answer
            if part.result is None:
                return False
        return True

    def target_of_question(self, connection: int) -> str:
        """Return whom a GET on this connection means.

        A job for any worker may be with another one than was told, where the broker is not the one that told it.
        """
        pending = self.pending
        if not pending:
            return self.target if self.target != "any" else "all"
        if self.target == "any" and self.known_at != connection:
            return "all"
        return write_target(pending)

    def target_of_post(self) -> str:
        """Return whom a POST means: once the workers are known, those of them that have not answered."""
        pending = self.pending
        return self.target if self.target == "any" or not pending else write_target(pending)

    def state_record(self) -> StateRecord:
        """Return how it stands, to be kept."""
        return StateRecord(
            self.uuid,
            str(self.state),
            tuple(self.parts) if self.listed else (),
            self.deadline,
            self.code,
            self.error,
            self.ended_at,
            sum(len(part.result.entry) for part in self.parts.values() if part.result is not None),
        )

    def result(self) -> JobResult:
        """Return how it stands, to be looked at."""
        results = {
            name: read_entry(name, part.result.code, part.result.entry)
            for name, part in self.parts.items()
            if part.result is not None
        }
        return JobResult(
            self.uuid,
            self.service,
            self.task,
            self.target,
            self.state,
            results,
            tuple(self.pending),
            self.code,
            self.error,
            self.created_at,
            self.ended_at,
        )


def write_target(names: Iterable[str]) -> str:
    """Return the target that means these workers: a name, or the JSON list that every broker reads."""
    listed = list(names)
    return listed[0] if len(listed) == 1 else msgspec.json.encode(listed).decode()
