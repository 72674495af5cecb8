"""Table of a worker's jobs: open ones, and ended ones until their retention is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specwire.runtime.norfab.worker.assignment import DONE, Assignment
from specwire.runtime.norfab.worker.records import ForgottenRecord

if TYPE_CHECKING:
    from specwire.runtime.norfab.worker.engine import WorkerEngine


class Jobs:
    """Jobs of one worker.

    Attributes:
        by_uuid: all jobs.
        kept: ended jobs, in the order in which they ended.
        octets: total size of the bodies of open jobs.
        kept_octets: total size of the results of ended jobs.
        numbered: the highest number that was used.
        completed, failed: number of jobs that have ended so.
    """

    __slots__ = ("_engine", "by_uuid", "completed", "failed", "kept", "kept_octets", "numbered", "octets")

    def __init__(self, engine: WorkerEngine) -> None:
        self._engine = engine
        self.by_uuid: dict[str, Assignment] = {}
        self.kept: dict[str, Assignment] = {}
        self.octets = self.kept_octets = self.numbered = self.completed = self.failed = 0

    @property
    def open(self) -> int:
        """Number of jobs that have not ended."""
        return len(self.by_uuid) - len(self.kept)

    def number(self) -> int:
        """Return the number of a new job."""
        self.numbered += 1
        return self.numbered

    def add(self, job: Assignment) -> None:
        """Add a job."""
        self.by_uuid[job.uuid] = job
        self.octets += len(job.body)

    def settle(self, job: Assignment) -> None:
        """Move a job that has ended, or was deleted, to the ended ones."""
        self.octets -= len(job.body)
        job.body = b""
        job.messages = ()
        if job.state is not DONE:
            job.state, job.ended_at = DONE, self._engine.now
        self.kept[job.uuid] = job
        self.kept_octets += job.result_octets
        self._forget_surplus()

    def bury(self, job: Assignment) -> None:
        """Handle that a job is deleted. Its uuid is remembered until its retention is over."""
        if job.uuid in self.kept:
            self.kept_octets -= job.result_octets
            job.result_octets = 0
        else:
            job.result_octets = 0
            self.settle(job)

    def remove(self, job: Assignment) -> None:
        """Remove an open job."""
        self.octets -= len(job.body)
        del self.by_uuid[job.uuid]

    def _forget_surplus(self) -> None:
        settings = self._engine.settings
        while len(self.kept) > settings.kept_jobs or (
            self.kept_octets > settings.kept_octets and len(self.kept) > 1
        ):
            self._forget(next(iter(self.kept.values())))

    def forget_aged(self) -> None:
        """Forget jobs that ended too long ago."""
        while self.kept:
            job = next(iter(self.kept.values()))
            if self._engine.now - job.ended_at < self._engine.settings.kept_s:
                return
            self._forget(job)

    def _forget(self, job: Assignment) -> None:
        del self.kept[job.uuid], self.by_uuid[job.uuid]
        self.kept_octets -= job.result_octets
        self._engine.commits.commit(ForgottenRecord(job.number), otherwise=self._engine.store_failed)
