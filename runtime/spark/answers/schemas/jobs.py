"""The tables of NORFAB jobs: one row for each job, and one for each worker's part in it."""

from __future__ import annotations

from pyspark.sql.types import BooleanType, StructType

from specwire.runtime.spark.answers.schemas.shared import (
    LONG,
    MOMENT,
    STORED,
    TAP,
    TEXT,
    column,
    micros,
)

_JOB = (
    *STORED,
    TAP,
    column("uuid", TEXT, "id of the job, as its client chose it"),
)

JOBS = StructType(
    [
        *_JOB,
        column("conversation", TEXT, "the client's connection; null at a worker's tap"),
        column("client", TEXT, "name of the client; null where the tap does not see it"),
        column("service", TEXT, "the service that was asked for"),
        column("target", TEXT, "all, any, a name or a list, as the client wrote it"),
        column("task", TEXT, "the task, from the body"),
        *MOMENT,
        column("last_mono", LONG, "when the latest word on it came, the tap's clock", "nanoseconds"),
        column("workers", LONG, "workers that the broker said it went to, or that were seen with it"),
        column("results", LONG, "workers of which a result came"),
        column("failed", LONG, "results that say the task failed, and refusals of a worker"),
        column("events", LONG, "EVENT messages about it, each leg by itself"),
        column("polls", LONG, "GET messages of the client"),
        column("status", LONG, "the status that ended it: 200, or the first that says why not"),
        column(
            "outcome",
            TEXT,
            "done (a result of every worker, none failed), failed (a worker's task failed), refused (by the "
            "broker), open (not over yet), unanswered (too long ago), unasked (the tap did not see its POST)",
        ),
        micros("dispatch_us", "from the POST to the broker's word that it went to workers (202)"),
        micros("first_us", "from the POST to the first worker's result"),
        micros("latency_us", "from the POST to the last result, or to the refusal"),
    ]
)

JOB_PARTS = StructType(
    [
        *_JOB,
        column("worker", TEXT, "name of the worker; its connection's name where the tap does not learn it"),
        column("service", TEXT, "the service that was asked for"),
        column("task", TEXT, "the task, from the body"),
        *MOMENT,
        column(
            "sent_mono", LONG, "when the broker gave it to the worker; null at a client's tap", "nanoseconds"
        ),
        column("accepted_mono", LONG, "when the worker's acceptance came", "nanoseconds"),
        column("started_mono", LONG, "when the first sign came that the task runs", "nanoseconds"),
        column("ended_mono", LONG, "when the worker's result came", "nanoseconds"),
        column(
            "started_by", TEXT, "that sign: event, status (102 or 300), else accepted or sent; null before"
        ),
        column("status", LONG, "the status of the result"),
        column("failed", BooleanType(), "whether the result says that the task failed"),
        column("outcome", TEXT, "done, failed, open, unanswered"),
        micros(
            "queue_us", "from the client's POST (at a worker's tap the broker's) to the sign that it runs"
        ),
        micros("run_us", "from that sign to the result"),
        micros("latency_us", "from the POST to the result"),
        column("stated_run_s", LONG, "task_completed less task_started as the worker states them", "seconds"),
    ]
)
