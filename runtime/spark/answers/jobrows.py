"""Rows of the tables `jobs` and `job_parts`, from the state of a job."""

from __future__ import annotations

from typing import Any

from specwire.runtime.spark.answers.jobstate import Job, Part


def job_columns(job: Job, *, closed: bool) -> dict[str, Any]:
    """Return a job's row without its key."""
    results = [part for part in job.parts.values() if part.ended is not None]
    failed = [part for part in results if part.failed]
    ends = [part.ended for part in results if part.ended is not None]
    ended = job.ended if job.end is not None else max(ends, default=None) if job.over else None
    first = min(ends, default=None)
    status = job.status
    if status is None and job.over:
        status = next((part.status for part in failed if part.status != 200), 200)
    return {
        "conversation": job.conversation,
        "client": job.client,
        "service": job.service,
        "target": job.target,
        "task": job.task,
        **{name: getattr(job, name) for name in ("ts", "seq", "mono", "last_mono", "events", "polls")},
        "workers": len(job.parts),
        "results": len(results),
        "failed": len(failed),
        "status": status,
        "outcome": _outcome(job, bool(failed), closed=closed),
        "dispatch_us": _since(job, job.dispatched),
        "first_us": _since(job, first),
        "latency_us": _since(job, ended),
    }


def _outcome(job: Job, failed: bool, *, closed: bool) -> str:
    if not job.over:
        return ("unanswered" if job.asked else "unasked") if closed else "open"
    if not job.asked:
        return "unasked"
    return job.end or ("failed" if failed else "done")


def part_columns(job: Job, part: Part, *, closed: bool) -> dict[str, Any]:
    """Return the row of a worker's part without its key."""
    started, sign = part.started, part.started_by
    if started is None and part.accepted is not None:
        started, sign = part.accepted, "accepted"
    elif started is None and part.sent is not None:
        started, sign = part.sent, "sent"
    over = closed or job.over
    return {
        "worker": part.worker,
        "service": job.service,
        "task": job.task,
        **{name: getattr(job, name) for name in ("ts", "seq", "mono")},
        "sent_mono": part.sent,
        "accepted_mono": part.accepted,
        "started_mono": started,
        "ended_mono": part.ended,
        "started_by": sign,
        "status": part.status,
        "failed": part.failed,
        "outcome": "failed"
        if part.failed
        else "done"
        if part.ended is not None
        else "unanswered"
        if over
        else "open",
        "queue_us": _since(job, started),
        "run_us": (part.ended - started) // 1000 if part.ended is not None and started is not None else None,
        "latency_us": _since(job, part.ended),
        "stated_run_s": part.run_s,
    }


def _since(job: Job, mono: int | None) -> int | None:
    return None if mono is None or not job.asked else (mono - job.mono) // 1000
