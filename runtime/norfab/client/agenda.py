"""What is due for jobs: their deadlines, questions without cause, and questions that were put off."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING, Literal

from specwire.runtime.norfab.client.asking import Kind
from specwire.runtime.norfab.client.job import NEVER, Job

if TYPE_CHECKING:
    from specwire.runtime.norfab.client.engine import ClientEngine

Due = Literal["deadline", "poll", "post", "get"]

SLACK = 4096
"""Reminders that may be for nothing."""


class Agenda:
    """Reminders in the order of time; what they are for may have changed by then."""

    __slots__ = ("_engine", "_entries", "_order")

    def __init__(self, engine: ClientEngine) -> None:
        self._engine = engine
        self._entries: list[tuple[float, int, Due, str]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._entries)

    def tick(self) -> None:
        """Do what is due."""
        engine = self._engine
        while self._entries and self._entries[0][0] <= engine.now:
            _, _, due, uuid = heapq.heappop(self._entries)
            job = engine.table.by_uuid.get(uuid)
            if job is None or job.state.ended:
                continue
            if due == "deadline":
                self._check_deadline(job)
            elif due == "poll":
                self._poll(job)
            elif engine.way.up and not engine.asking.is_open(uuid):
                engine.asking.want(uuid, due)

    def _check_deadline(self, job: Job) -> None:
        engine = self._engine
        if job.deadline > engine.now:  # of an earlier deadline
            return
        if not self._knows_better(job) or 0 < job.grace_until <= engine.now:
            engine.table.give_up(job)
        elif not job.grace_until:
            job.grace_until = engine.now + engine.settings.grace_s
            self._remind(job.grace_until, "deadline", job)

    def _knows_better(self, job: Job) -> bool:
        """Whether the broker can be expected to say why there is no result."""
        way = self._engine.way
        return way.up and job.known_at == way.number

    def _poll(self, job: Job) -> None:
        engine = self._engine
        if engine.now < job.poll_at:
            self._remind(job.poll_at, "poll", job)
            return
        if engine.way.up and job.known_at != NEVER and not engine.asking.is_open(job.uuid):
            engine.asking.want(job.uuid, "get")
        job.poll_s = min(job.poll_s * 2, engine.settings.longest_poll_s)
        self.remind_of_poll(job)

    def remind_of_deadline(self, job: Job) -> None:
        """Look at the job when its time is over."""
        self._remind(job.deadline, "deadline", job)

    def remind_of_poll(self, job: Job) -> None:
        """Ask for the job when there was no news of it for a while."""
        self.await_news(job)
        self._remind(job.poll_at, "poll", job)

    def await_news(self, job: Job) -> None:
        """There was news of a job: ask for the next not before a while is over."""
        job.poll_at = self._engine.now + job.poll_s

    def ask_later(self, job: Job, kind: Kind, delay_s: float) -> None:
        """Ask in a while."""
        self._remind(self._engine.now + delay_s, kind, job)

    def _remind(self, at: float, due: Due, job: Job) -> None:
        open_jobs = self._engine.table.by_uuid
        if len(self._entries) > 4 * len(open_jobs) + SLACK:
            # Most are of jobs that have ended long before their deadlines.
            self._entries = [entry for entry in self._entries if entry[3] in open_jobs]
            heapq.heapify(self._entries)
        heapq.heappush(self._entries, (at, next(self._order), due, job.uuid))
