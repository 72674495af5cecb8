"""A job from the store, to be looked at."""

from __future__ import annotations

from specwire.runtime.norfab.client.records import Kept
from specwire.runtime.norfab.client.results import JobResult, read_entry
from specwire.runtime.norfab.client.states import State


def result_of(kept: Kept) -> JobResult:
    """Return how a stored job stands."""
    job, state = kept.job, kept.state
    results = {one.worker: read_entry(one.worker, one.code, one.entry) for one in kept.results}
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
