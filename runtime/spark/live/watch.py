"""Watch a capture as it grows: each batch of segments goes into the same output folder, by the same code, as a run.

    segments --foreachBatch--> advance --> OUT/typed, OUT/answers, OUT/late, OUT/segments
    segments --noticed, transformWithState--> OUT/alerts

Exactly once, whatever is killed when: Spark's checkpoint in OUT/live says which segments make up which batch,
and a batch that runs again finds its number, or its segments, in what the output folder has committed. What is
killed in between leaves nothing (`specwire.runtime.spark.pipeline.commit`). A checkpoint that is lost costs
time alone, and alerts that are told again: all segments are given anew, and found to be known.

The tables of typed messages follow at once. Answers cost more, and hold up the batch that comes meanwhile, so they
follow every `Watch.answers_s`, when traffic pauses, and at the end.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.live.alert_table import Line
from specwire.runtime.spark.live.alerting import STATE_SETTINGS, watch_conversations
from specwire.runtime.spark.live.behind import watch_behind
from specwire.runtime.spark.live.running import (
    ALERTS,
    FOLDER,
    POLL_S,
    TABLES,
    Running,
    begin_query,
    end_queries,
)
from specwire.runtime.spark.live.source import FORMAT, SegmentSource, source_options
from specwire.runtime.spark.live.telling import forget_told
from specwire.runtime.spark.live.work import PAUSE, Listener, Watch, Work
from specwire.runtime.spark.pipeline.commit import begin, check_own
from specwire.runtime.spark.pipeline.manifest import read_manifest
from specwire.runtime.spark.pipeline.request import check_request, check_same

LOCK = ".lock"

SETTINGS = {
    **STATE_SETTINGS,
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.streaming.minBatchesToRetain": "10",
}
"""What the session needs beside its own settings."""


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
    # A folder is made ours before there is anything in it; one that is ours may have a watch, which is left alone.
    if not (request.out / FOLDER).is_dir():
        work.begin()
    with _alone(request.out):
        # A session behind a Connect server is of another class.
        if isinstance(spark, SparkSession):
            _watch_here(spark, request, work, stop, line)
        else:
            watch_behind(spark, request, work, stop, line)
        work.catch_up(idle_s=0.0)


def check(request: Watch) -> None:
    """Raise InputError, CaptureError or JobError for what can be seen to be wrong without Spark."""
    check_request(request.request, request.out)
    check_own(request.out)
    check_same(request.request.asked, read_manifest(request.out), request.out)
    if not request.capture.is_dir():
        raise CaptureError(f"{request.capture}: there is no such capture folder")
    if not (request.out / FOLDER).is_dir():
        with begin(request.out):
            pass  # It can be made and written; a folder that has a watch already is left alone.


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Hold the folder against other watches for the time of a block; InputError where there is one."""
    folder = out / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise InputError(f"{folder}: a watch cannot write there: {error.strerror}") from error
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


def _watch_here(
    spark: SparkSession, request: Watch, work: Work, stop: threading.Event, line: Line | None
) -> None:
    forget_told(request.out / FOLDER)
    running: list[Running] = []
    try:
        for begin in _queries(spark, request, work, line):
            running.append(Running(begin))
        _follow(running, request, work, stop)
    finally:
        for one in running:
            one.stop()


def _queries(
    spark: SparkSession, request: Watch, work: Work, line: Line | None
) -> Iterator[Callable[[], StreamingQuery]]:
    """Yield what begins each of the queries."""
    spark.dataSource.register(SegmentSource)
    options = source_options(request.capture, request.patience)

    def begin_tables() -> StreamingQuery:
        names = spark.readStream.format(FORMAT).options(**options).load()
        query = begin_query(spark, names.writeStream.foreachBatch(work.take_batch), request, TABLES)
        work.name_stream(TABLES, query.id)
        return query

    yield begin_tables
    rules = request.rules
    if rules is None:
        return

    def begin_alerts() -> StreamingQuery:
        override = request.request.asked.protocol
        alerts = watch_conversations(spark, options, rules, override=override)
        taking = alerts.writeStream.foreachBatch(lambda found, number: work.take_alerts(found, number, line))
        query = begin_query(spark, taking, request, ALERTS)
        work.name_stream(ALERTS, query.id)
        return query

    yield begin_alerts


def _follow(running: Sequence[Running], request: Watch, work: Work, stop: threading.Event) -> None:
    """Wait for the end of all queries, or for a stop; raise what ended one of them for good."""
    while not stop.wait(POLL_S):
        work.raise_failure()
        for one in running:
            one.mend(work.tell_failure, stop, time.monotonic())
        if not any(one.active for one in running):
            return
        work.catch_up(idle_s=request.answers_s * PAUSE)
    end_queries(running)
    work.raise_failure()
