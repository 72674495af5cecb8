"""The client's jobs: how they come, from a caller or from the store, and how they end.

A job that has ended is forgotten but for its uuid. A stale one stays, as its result may still come.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from specwire.runtime.norfab.client.events import JobEnded
from specwire.runtime.norfab.client.job import EARLIER, NEVER, Job, Part
from specwire.runtime.norfab.client.records import JobRecord, Kept
from specwire.runtime.norfab.client.states import (
    COMPLETED,
    DISPATCHED,
    FAILED,
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
        by_uuid: those that have not ended and those that are stale.
        ended: how those ended that are not in the table any more.
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
        """How many jobs have not ended."""
        return len(self.by_uuid) - len(self._stale)

    def add(self, record: JobRecord) -> Job:
        """Take a job in."""
        settings = self._engine.settings
        job = self.by_uuid[record.uuid] = Job(record, settings.poll_s, settings.retry_s)
        self._engine.agenda.remind_of_deadline(job)
        self._engine.agenda.remind_of_poll(job)
        return job

    # --- jobs of an earlier process

    def take_back(self, kept: Kept, deadline: float | None) -> None:
        """Make a job of what was stored; with a `deadline` it is wanted until then at least, though it is stale."""
        engine, state = self._engine, State(kept.state.state)
        if kept.job.uuid in self.by_uuid or (state.ended and deadline is None):
            return
        job = self._rebuild(kept, state)
        if job.complete:
            self.end_by_parts(job)
        elif deadline is None and job.known_at == NEVER and kept.state.deadline <= engine.now:
            # Nothing that is out of date is posted.
            self.end(job, STALE, 408, "its time was over before a broker had it")
        else:
            wanted = deadline or engine.now + engine.settings.settle_s
            self.extend(job, wanted if state.ended else max(wanted, kept.state.deadline))
            engine.ask_again(job)

    def _rebuild(self, kept: Kept, state: State) -> Job:
        job = self.add(kept.job)
        job.since = self._engine.now
        for name in kept.state.workers:
            job.parts[name] = Part()
        job.listed = bool(job.parts)
        for result in kept.results:
            job.parts.setdefault(result.worker, Part()).end(result)
        job.asked = True  # what was on disk may have been sent
        known = job.listed or state in (DISPATCHED, STARTED) or not job.ours
        job.known_at = EARLIER if known else NEVER
        job.state = STARTED if job.answered else DISPATCHED if known else SUBMITTING
        return job

    def extend(self, job: Job, deadline: float) -> None:
        """Wait for a job until `deadline`."""
        job.deadline, job.grace_until = deadline, 0.0
        self._engine.agenda.remind_of_deadline(job)

    def resume(self, job: Job, deadline: float) -> None:
        """Wait again for a job that is stale."""
        del self._stale[job.uuid]
        job.state = DISPATCHED if job.known_at != NEVER else SUBMITTING
        job.since, job.ended_at, job.code, job.error = self._engine.now, 0.0, 200, ""
        self.extend(job, deadline)
        self._engine.agenda.remind_of_poll(job)
        self.changed(job)
        self._engine.ask_again(job)

    # --- the end

    def end_by_parts(self, job: Job, error: str = "") -> None:
        """Every worker has answered."""
        if not job.failed:
            self.end(job, COMPLETED, 200, "")
            return
        codes = [part.result.code for part in job.parts.values() if part.result is not None]
        self.end(job, FAILED, codes[0] if len(codes) == 1 else 200, error)

    def end(self, job: Job, state: State, code: int, error: str) -> None:
        """End a job, for good or as stale, and say so."""
        engine, late = self._engine, job.state is STALE
        job.state, job.code, job.error, job.ended_at = state, code, error, engine.now
        engine.asking.drop(job.uuid)
        self._changed.pop(job.uuid, None)
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
        """The time of a job is over."""
        self.end(job, STALE, 408, self._why(job))

    def _why(self, job: Job) -> str:
        way = self._engine.way
        waited = f"within {max(0.0, job.deadline - job.since):.4g} s"
        if job.known_at == NEVER:
            reason = job.refusal or way.loss
            return f"no broker has taken it {waited}" + (f": {reason}" if reason else "")
        where = "" if way.heard_at else f" (there is no connection to a broker: {way.loss or 'no answer'})"
        if job.pending:
            return f"no result {waited} from {_listed(job.pending)}{where}"
        return f"no result {waited}: no worker has it yet{where}"

    # --- the disk

    def changed(self, job: Job) -> None:
        """Have the state of a job stored at the next tick, if it has not ended by then."""
        self._changed[job.uuid] = None

    def keep_changes(self) -> None:
        """Store the states that have changed."""
        records = [self.by_uuid[uuid].state_record() for uuid in self._changed if uuid in self.by_uuid]
        self._changed.clear()
        if records:
            self._engine.store(*records)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
