"""Watch a capture as it grows: each batch of segments goes into the same output folder, by the same code, as a run.

    segments --foreachBatch--> advance --> OUT/typed, OUT/answers, OUT/late, OUT/segments
    segments --noticed, transformWithState--> OUT/alerts

Exactly once, whatever is killed when: Spark's checkpoint in OUT/live says which segments make up which batch,
and a batch that runs again finds its number, or its segments, in what the output folder has committed. What is
killed in between leaves nothing (`specwire.runtime.spark.pipeline.commit`). A checkpoint that is lost costs
time alone, and alerts that are told again: all segments are given anew, and found to be known.

The tables of typed messages follow at once. Answers cost more, so they follow every `Watch.answers_s`, when
traffic pauses, and at the end.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.live.alert_table import Line
from specwire.runtime.spark.live.alerting import STATE_SETTINGS, watch_conversations
from specwire.runtime.spark.live.source import FORMAT, SegmentSource, source_options
from specwire.runtime.spark.live.work import Listener, Stopped, Watch, Work
from specwire.runtime.spark.pipeline.commit import check_own
from specwire.runtime.spark.pipeline.request import check_request

FOLDER = "live"
"""In the output folder: Spark's checkpoints."""

LOCK = ".lock"

SETTINGS = {
    **STATE_SETTINGS,
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.streaming.minBatchesToRetain": "10",
}
"""What the session needs beside its own settings."""

ALERTS_EVERY_S = 2.0
"""The least time between two looks at the timers of conversations, which cost a small job even without traffic."""

POLL_S = 0.1
ENDING_S = 120.0
"""Time for a batch to end after a stop was asked for; then it is cut off, and runs again next time."""


def watch(
    spark: SparkSession,
    request: Watch,
    stop: threading.Event,
    *,
    listener: Listener | None = None,
    line: Line | None = None,
) -> None:
    """Watch until `stop` is set, or with `Watch.once` until what is there has been taken in.

    The batch that runs when a stop is asked for is finished first, and the answers follow. `line` takes each
    alert. The session needs `SETTINGS`. Raises InputError for an output folder that is not ours or is being
    written to, CaptureError where the capture folder cannot be read, JobError where a job of Spark fails.
    """
    check(request)
    work = Work(spark, request, listener or Listener(), stop)
    work.begin()
    with _alone(request.out):
        queries: list[StreamingQuery] = []
        try:
            queries += _start(spark, request, work, line)
            _follow(queries, request, work, stop)
        finally:
            for query in queries:
                query.stop()
        work.catch_up(idle_s=0.0)


def check(request: Watch) -> None:
    """Raise InputError or CaptureError for what can be seen to be wrong without Spark."""
    check_request(request.request, request.out)
    check_own(request.out)
    if not request.capture.is_dir():
        raise CaptureError(f"{request.capture}: there is no such capture folder")


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Hold the folder against other watches for the time of a block; InputError where there is one."""
    folder = out / FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"{out}: another watch is at work there; end it or name another folder"
            ) from None
        yield
    finally:
        os.close(lock)


def _start(spark: SparkSession, request: Watch, work: Work, line: Line | None) -> Iterator[StreamingQuery]:
    spark.dataSource.register(SegmentSource)
    options = source_options(request.capture, request.patience)
    names = spark.readStream.format(FORMAT).options(**options).load()
    yield _begin_query(
        names.writeStream.foreachBatch(work.take_batch), request, "tables", request.every_s, work
    )
    if request.rules is None:
        return
    override = request.request.asked.protocol
    alerts = watch_conversations(spark, options, request.rules, override=override)
    every_s = max(ALERTS_EVERY_S, request.every_s)
    taking = alerts.writeStream.foreachBatch(lambda found, number: work.take_alerts(found, number, line))
    yield _begin_query(taking, request, "alerts", every_s, work)


def _begin_query(
    writer: DataStreamWriter, request: Watch, name: str, every_s: float, work: Work
) -> StreamingQuery:
    checkpoint = (request.out / FOLDER / name).resolve()
    writer = writer.queryName(f"specwire {name}").option("checkpointLocation", str(checkpoint))
    if request.once:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{int(1000 * every_s)} milliseconds")
    query = writer.start()
    work.name_stream(name, query.id)
    return query


def _follow(queries: Sequence[StreamingQuery], request: Watch, work: Work, stop: threading.Event) -> None:
    """Wait for the end of all queries, or for a stop; raise what ended one of them."""
    while not stop.wait(POLL_S):
        _check(queries, work)
        if not any(query.isActive for query in queries):
            return
        work.catch_up(idle_s=request.answers_s)
    deadline = time.monotonic() + ENDING_S
    while any(_is_busy(query) for query in queries) and time.monotonic() < deadline:
        time.sleep(POLL_S)
    _check(queries, work)


def _is_busy(query: StreamingQuery) -> bool:
    return query.isActive and bool(query.status["isTriggerActive"])


def _check(queries: Sequence[StreamingQuery], work: Work) -> None:
    """Raise what went wrong in one of our batches as it was, and what went wrong in Spark as it says."""
    if work.failure is not None and not isinstance(work.failure, Stopped):
        raise work.failure
    for query in queries:
        error = None if query.isActive else query.exception()
        if error is not None and work.failure is None:
            raise error
