"""Result of a job as the store has it."""

from __future__ import annotations

from specwire.runtime.norfab.client.records import StoredJob
from specwire.runtime.norfab.client.results import JobResult, read_entry
from specwire.runtime.norfab.client.states import State


def result_of(stored: StoredJob) -> JobResult:
    """Return the state and the results of a stored job."""
    job, state = stored.job, stored.state
    results = {one.worker: read_entry(one.worker, one.code, one.entry) for one in stored.results}
    return JobResult(
        job.uuid,
        job.service,
        job.task,
        job.target,
        State(state.state),
        results,
        tuple(worker for worker in state.workers if worker not in results),
        state.code or 200,
        state.error,
        job.created_at,
        state.ended_at,
    )
