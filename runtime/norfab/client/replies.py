"""What the broker says of a job, and what follows from it.

A job is known to the broker from its first good word on. Where the broker does not know it any more, things depend: a
broker that was restarted or moved to may hear of it from its workers in a moment; jobs for named workers can be posted
again at once, as a worker does nothing twice under one uuid; a job for any worker only after a while, in which the
worker that has it may come back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from specwire.runtime.norfab.client.asking import Kind
from specwire.runtime.norfab.client.events import (
    JobAccepted,
    JobChanged,
    JobPostedAgain,
    JobPostponed,
    JobWaits,
)
from specwire.runtime.norfab.client.job import NEVER, Job, Part
from specwire.runtime.norfab.client.reading import Said, read_progress, read_response
from specwire.runtime.norfab.client.records import EventRecord, ResultRecord
from specwire.runtime.norfab.client.states import DISPATCHED, FAILED, STARTED, SUBMITTING, State
from specwire.runtime.norfab.commands import Event, Response

if TYPE_CHECKING:
    from specwire.runtime.norfab.client.engine import ClientEngine

UNKNOWN = (400, 404)
DENIALS = 2
"""How often a worker says that it does not know a job before it is believed: it may not have looked at it yet."""


class Replies:
    """Takes responses about jobs."""

    __slots__ = ("_engine",)

    def __init__(self, engine: ClientEngine) -> None:
        self._engine = engine

    def event(self, job: Job, command: Event) -> None:
        """Take progress of a job of the table; a result that is ready is asked for."""
        engine = self._engine
        progress = read_progress(job.uuid, job.service, command.body, engine.now)
        if progress is None:
            engine.drop(job.uuid, "malformed", "the body of an EVENT is no JSON object")
            return
        engine.agenda.await_news(job)
        if job.events < engine.settings.events_per_job:
            job.events += 1
            engine.store(EventRecord(job.uuid, engine.now, bytes(command.body)))
        engine.report(progress)
        part = job.parts.get(progress.worker)
        if progress.event_type == "result_ready" and (part is None or part.result is None):
            engine.asking.want(job.uuid, "get")
            engine.pump()

    def response(self, job: Job, command: Response) -> bool:
        """Take a response about a job of the table; return whether it says that the job is deleted."""
        said = read_response(command.body, command.status)
        kind = self._engine.asking.answered(job.uuid)
        deleted = command.status == 200 and said.status == "DELETED" and not said.entries
        if deleted:
            self._engine.table.end(job, FAILED, 400, "it was deleted")
        elif said.entries and (command.status == 200 or command.status >= 400):
            self._results(job, command.status, said, kind)
        elif job.state.ended:
            self._engine.drop(job.uuid, "late", f"{command.status} for a job that has ended")
        else:
            self._word(job, command, said, kind)
        self._engine.pump()
        return deleted

    def _word(self, job: Job, command: Response, said: Said, kind: Kind | None) -> None:
        """Take what is no result."""
        match command.status:
            case 202:
                # To a GET a broker says so too where it only asks the workers whether they know the job.
                if kind != "get" or not job.listed:
                    self._known(job)
                self._dispatched(job, said, kind)
            case 102 | 201 | 300:
                self._known(job)
                self._under_way(job, said)
            case 200:
                what = "JSON" if said.readable else "UTF-8 with JSON in it"
                self._engine.table.end(job, FAILED, 417, f"the broker sent a result that is no {what}")
            case 400 | 404:
                self._unknown(job, command.status, said, kind)
            case 500:
                self._postpone(job, said, kind)
            case 408 | 417:
                cause = said.error or f"the broker says {command.status}"
                self._engine.table.end(job, FAILED, command.status, cause)
            case _:
                self._engine.drop(job.uuid, "malformed", f"status {command.status} means nothing")

    def _known(self, job: Job) -> None:
        """The broker knows the job."""
        engine = self._engine
        if job.known_at == NEVER:
            engine.report(JobAccepted(job.uuid))
        job.known_at = engine.way.number
        job.unknown_since = None
        job.refusal = ""
        job.retry_s = engine.settings.retry_s
        engine.agenda.await_news(job)

    # --- good words

    def _dispatched(self, job: Job, said: Said, kind: Kind | None) -> None:
        if said.workers is None:
            self._engine.drop(job.uuid, "malformed", "202 without a list of workers")
            return
        before = list(job.parts)
        if kind == "post" or not job.listed:
            if job.target == "any":
                for name in [name for name in job.pending if name not in said.workers]:
                    del job.parts[name]  # it went to another one
            for name in said.workers:
                job.parts.setdefault(name, Part())
            job.listed = bool(job.parts)
        if job.complete:
            self._engine.table.end_by_parts(job)
        elif job.state is SUBMITTING and job.listed:
            self._change(job, DISPATCHED)
        elif list(job.parts) != before:
            self._change(job, job.state)

    def _under_way(self, job: Job, said: Said) -> None:
        part = self._part_of(job, said.worker) if said.worker and job.listed else None
        if part is not None:
            part.denials = 0
        if not said.worker:
            self._engine.report(JobWaits(job.uuid))
        elif job.state is not STARTED:
            self._change(job, STARTED)

    def _change(self, job: Job, state: State) -> None:
        job.state = state
        self._engine.table.changed(job)
        self._tell_change(job)

    def _tell_change(self, job: Job) -> None:
        if not self._engine.observed:
            return
        answered = [(name, part.failed) for name, part in job.parts.items() if part.result is not None]
        self._engine.report(
            JobChanged(
                job.uuid,
                job.state,
                tuple(job.parts),
                tuple([name for name, _ in answered]),
                tuple([name for name, failed in answered if failed]),
            )
        )

    # --- results

    def _results(self, job: Job, status: int, said: Said, kind: Kind | None) -> None:
        fresh: list[ResultRecord] = []
        for worker, entry in said.entries.items():
            part = self._part_of(job, worker)
            if part is None:
                self._engine.drop(
                    job.uuid, "unknown", f"a result of {worker[:80]!r}, which does not have the job"
                )
            elif part.result is not None:
                self._engine.drop(job.uuid, "double", f"a second result of {worker[:80]}")
            else:
                fresh.append(self._record(job, worker, status, entry))
                part.end(fresh[-1])
        if not job.state.ended:
            self._known(job)
        if not fresh:
            return
        if status >= 400 and not job.listed:
            job.listed = True  # that was all of the job: the broker never had more workers for it
            self._engine.table.changed(job)
        self._engine.store(*fresh)
        if job.complete:
            self._engine.table.end_by_parts(job, error=said.error if said.status == "FAILED" else "")
        elif not job.state.ended:
            if not job.listed:
                self._engine.asking.want(job.uuid, "get")
            if job.state is STARTED:
                self._tell_change(job)  # nothing of the job itself is to be stored
            else:
                self._change(job, STARTED)

    def _part_of(self, job: Job, worker: str) -> Part | None:
        """Return the part that a worker's entry is for; None where the job is not with this worker."""
        if worker in job.parts:
            return job.parts[worker]
        if not job.listed:
            self._engine.table.changed(job)
            return job.parts.setdefault(worker, Part())
        if job.target == "any" and (pending := job.pending):
            # Another worker has it now, and the broker that knew so is gone.
            job.parts[worker] = part = job.parts.pop(pending[0])
            self._engine.table.changed(job)
            return part
        return None

    def _record(self, job: Job, worker: str, status: int, entry: bytes) -> ResultRecord:
        return ResultRecord(job.uuid, worker, status, entry, self._engine.now)

    # --- bad words

    def _unknown(self, job: Job, status: int, said: Said, kind: Kind | None) -> None:
        """The broker, or a worker, does not know the job, or will not have it."""
        engine = self._engine
        job.refusal = said.error or f"the broker says {status}"
        if (part := job.parts.get(said.worker)) is not None:
            self._denied(job, said.worker, part)
            return
        if job.known_at == NEVER or not job.ours:
            engine.table.end(job, FAILED, status, job.refusal)
            return
        if job.unknown_since is None:
            job.unknown_since = engine.now
        moved = job.posted_at != engine.way.number
        settled = engine.now - engine.way.made_at >= engine.settings.settle_s
        if moved and job.ours and kind != "post" and (job.target != "any" or settled):
            engine.report(JobPostedAgain(job.uuid, job.target_of_post(), job.refusal))
            engine.asking.want(job.uuid, "post")
        elif engine.now - job.unknown_since >= engine.settings.settle_s:
            engine.table.end(job, FAILED, status, job.refusal)
        else:
            self._again(job, "post" if kind == "post" else "get")

    def _denied(self, job: Job, worker: str, part: Part) -> None:
        """A worker says that it does not have the job."""
        if part.result is not None:
            return
        part.denials += 1
        if part.denials < DENIALS:
            self._again(job, "get")
            return
        why = f"worker {worker} does not know the job (any more)"
        entry = {"result": None, "failed": True, "errors": [why], "messages": [], "status": "failed"}
        record = self._record(job, worker, 404, msgspec.json.encode(entry))
        part.end(record)
        self._engine.store(record)
        if job.complete:
            self._engine.table.end_by_parts(job)
        else:
            self._change(job, job.state)

    def _postpone(self, job: Job, said: Said, kind: Kind | None) -> None:
        """The broker cannot do it now, and may later."""
        job.refusal = said.error or "the broker cannot do it now"
        self._engine.report(JobPostponed(job.uuid, job.refusal))
        self._again(job, kind or ("get" if job.known_at != NEVER else "post"))

    def _again(self, job: Job, kind: Kind) -> None:
        self._engine.agenda.ask_later(job, kind, job.retry_s)
        job.retry_s = min(job.retry_s * 2, self._engine.settings.longest_retry_s)
