"""Jobs of a client: added by a caller or restored from the store, and ended.

Of a job that has ended only the uuid is kept. A stale job remains, as its results may still arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from specwire.runtime.norfab.client.events import JobEnded
from specwire.runtime.norfab.client.job import EARLIER, NEVER, Job, Part
from specwire.runtime.norfab.client.records import JobRecord, StoredJob
from specwire.runtime.norfab.client.states import (
    COMPLETED,
    DISPATCHED,
    FAILED,
    NEW,
    STALE,
    STARTED,
    SUBMITTING,
    State,
)

if TYPE_CHECKING:
    from specwire.runtime.norfab.client.engine import ClientEngine


class Table:
    """All jobs of a client.

    Attributes:
        by_uuid: jobs that have not ended, and stale ones.
        ended: final state of the jobs that were removed last.
    """

    __slots__ = ("_changed", "_engine", "_stale", "by_uuid", "ended")

    def __init__(self, engine: ClientEngine) -> None:
        self._engine = engine
        self.by_uuid: dict[str, Job] = {}
        self.ended: dict[str, State] = {}
        self._stale: dict[str, None] = {}
        self._changed: dict[str, None] = {}

    @property
    def open(self) -> int:
        """Number of jobs that have not ended."""
        return len(self.by_uuid) - len(self._stale)

    def add(self, record: JobRecord) -> Job:
        """Add a job."""
        settings = self._engine.settings
        job = self.by_uuid[record.uuid] = Job(record, settings.poll_s, settings.retry_s)
        self._engine.agenda.remind_of_deadline(job)
        self._engine.agenda.remind_of_poll(job)
        return job

    # --- jobs of an earlier process

    def restore(self, stored: StoredJob, deadline: float | None) -> None:
        """Add a stored job. With a `deadline`, wait for it at least until then, even if it is stale."""
        engine, state = self._engine, State(stored.state.state)
        if stored.job.uuid in self.by_uuid or (state.ended and deadline is None):
            return
        job = self._rebuild(stored, state)
        if job.complete:
            self.end_by_parts(job)
        elif deadline is None and job.known_at == NEVER and stored.state.deadline <= engine.now:
            # A job is not posted after its deadline.
            self.end(job, STALE, 408, "its time was over before a broker had it")
        else:
            wanted = deadline or engine.now + engine.settings.settle_s
            self.extend(job, wanted if state.ended else max(wanted, stored.state.deadline))
            engine.ask_again(job)

    def _rebuild(self, stored: StoredJob, state: State) -> Job:
        job = self.add(stored.job)
        job.since = self._engine.now
        for name in stored.state.workers:
            job.parts[name] = Part()
        job.listed = bool(job.parts)
        for result in stored.results:
            job.parts.setdefault(result.worker, Part()).end(result)
        job.asked = True  # it may have been sent
        known = job.listed or state in (DISPATCHED, STARTED) or not job.ours
        job.known_at = EARLIER if known else NEVER
        job.state = STARTED if job.answered else DISPATCHED if known else SUBMITTING
        return job

    def extend(self, job: Job, deadline: float) -> None:
        """Wait for a job until `deadline`."""
        job.deadline, job.grace_until = deadline, 0.0
        self._engine.agenda.remind_of_deadline(job)

    def resume(self, job: Job, deadline: float) -> None:
        """Wait for a stale job again."""
        del self._stale[job.uuid]
        job.state = NEW if job.unstored else DISPATCHED if job.known_at != NEVER else SUBMITTING
        job.since, job.ended_at, job.code, job.error = self._engine.now, 0.0, 200, ""
        self.extend(job, deadline)
        self._engine.agenda.remind_of_poll(job)
        self.changed(job)
        self._engine.ask_again(job)

    # --- the end

    def end_by_parts(self, job: Job, error: str = "") -> None:
        """End a job for which every worker has answered."""
        if not job.failed:
            self.end(job, COMPLETED, 200, "")
            return
        codes = [part.result.code for part in job.parts.values() if part.result is not None]
        self.end(job, FAILED, codes[0] if len(codes) == 1 else 200, error)

    def end(self, job: Job, state: State, code: int, error: str) -> None:
        """End a job, finally or as stale, store its state, and emit `JobEnded`."""
        engine, late = self._engine, job.state is STALE
        job.state, job.code, job.error, job.ended_at = state, code, error, engine.now
        engine.asking.drop(job.uuid)
        self._changed.pop(job.uuid, None)
        if not job.unstored:
            engine.store(job.state_record())
        engine.report(JobEnded(job.result(), late))
        if state is not STALE:
            self._remove(job)
            return
        self._stale[job.uuid] = None
        if len(self._stale) > engine.settings.stale_jobs:
            self._remove(self.by_uuid[next(iter(self._stale))])

    def _remove(self, job: Job) -> None:
        del self.by_uuid[job.uuid]
        self._stale.pop(job.uuid, None)
        self.ended[job.uuid] = job.state
        if len(self.ended) > self._engine.settings.ended_jobs:
            del self.ended[next(iter(self.ended))]

    def give_up(self, job: Job) -> None:
        """End a job as stale, as its time is over."""
        self.end(job, STALE, 408, self._why(job))

    def _why(self, job: Job) -> str:
        way = self._engine.way
        waited = f"within {max(0.0, job.deadline - job.since):.4g} s"
        if job.known_at == NEVER:
            reason = job.refusal or way.loss
            return f"no broker has taken it {waited}" + (f": {reason}" if reason else "")
        where = "" if way.heard_at else f" (there is no connection to a broker: {way.loss or 'no answer'})"
        if job.pending:
            return f"no result {waited} from {listed(job.pending)}{where}"
        return f"no result {waited}: no worker has it yet{where}"

    # --- the store

    def changed(self, job: Job) -> None:
        """Store the state of a job at the next tick, if it has not ended by then."""
        self._changed[job.uuid] = None

    def store_changes(self) -> None:
        """Store the states that have changed."""
        records = [self.by_uuid[uuid].state_record() for uuid in self._changed if uuid in self.by_uuid]
        self._changed.clear()
        if records:
            self._engine.store(*records)


def listed(names: Sequence[str]) -> str:
    """Return the first five names for a message, and the number of the others."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
