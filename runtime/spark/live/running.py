"""A streaming query that outlives a failure of Spark's: it is begun again, and goes on where its checkpoint says.

A machine that is too busy for a moment lets queries fail; Spark gives a Python process 10 s to
start, for one. What is to run for months must not end with that. What goes wrong in a batch of ours
is another matter: that is raised.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from specwire.runtime.spark.live.work import Watch
from specwire.runtime.spark.reading.capture import local_path
from specwire.runtime.spark.session.failures import describe_failure

FOLDER = "live"
"""In the output folder: Spark's checkpoints, and what a watch keeps of its own."""

ALERTS = "alerts"
"""Name of the query of alerts, and of its checkpoint in `FOLDER`."""

ALERTS_EVERY_S = 2.0
"""The least time between two looks at the timers of conversations, which cost a small job even without traffic."""

EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"

POLL_S = 0.1
ENDING_S = 120.0
"""Time for a batch to end after a stop was asked for.

Then it is cut off, and runs again next time.
"""

RETRIES = 5
"""Failures within `FORGIVEN_S` that a query outlives."""

RETRY_S = 2.0
"""Time before the first new beginning, in seconds; twice that before the second, and so on."""

FORGIVEN_S = 600.0
"""After so many seconds without a failure, those before do not count."""


class Running:
    """A query, and what begins it.

    A beginning that Spark refuses is a failure too, but for what it cannot analyse.
    """

    def __init__(self, begin: Callable[[], StreamingQuery], *, retry_s: float = RETRY_S) -> None:
        self.query: StreamingQuery | None = None
        self._begin = begin
        self._retry_s = retry_s
        self._refusal: PySparkException | None = None
        self._failures = 0
        self._failed = 0.0
        self._try()

    @property
    def active(self) -> bool:
        """Whether the query runs, or is to be begun again."""
        return self._refusal is not None or (self.query is not None and self.query.isActive)

    @property
    def busy(self) -> bool:
        """Whether the query is at work in a batch."""
        return self.query is not None and self.query.isActive and bool(self.query.status["isTriggerActive"])

    def stop(self) -> None:
        """End the query, if it was begun."""
        if self.query is not None:
            self.query.stop()

    def mend(self, tell: Callable[[str], None], stop: threading.Event, now_s: float) -> None:
        """Begin the query again where Spark let it fail, after telling why; raise the last failure of too many.

        `now_s` is a clock that only goes forward. Once `stop` is set, nothing is begun again.
        """
        error = self._failure()
        if error is None or stop.is_set():
            return
        if now_s - self._failed > FORGIVEN_S:
            self._failures = 0
        if self._failures == RETRIES:
            raise error
        self._failures += 1
        self._failed = now_s
        tell(describe_failure(error))
        if not stop.wait(self._retry_s * self._failures):
            self._try()

    def _failure(self) -> PySparkException | None:
        if self._refusal is not None or self.query is None or self.query.isActive:
            return self._refusal
        return self.query.exception()

    def _try(self) -> None:
        try:
            self.query = self._begin()
            self._refusal = None
        except AnalysisException:
            raise
        except PySparkException as refusal:
            self._refusal = refusal


def begin_query(spark: SparkSession, writer: DataStreamWriter, request: Watch) -> StreamingQuery:
    """Begin the query of alerts, which continues from its checkpoint."""
    checkpoint = (request.out / FOLDER / ALERTS).resolve()
    writer = writer.queryName(f"specwire {ALERTS}").option("checkpointLocation", local_path(checkpoint))
    if request.once:
        with _without_empty_batches(spark):
            return writer.trigger(availableNow=True).start()
    every_s = max(ALERTS_EVERY_S, request.every_s)
    return writer.trigger(processingTime=f"{int(1000 * every_s)} milliseconds").start()


@contextmanager
def _without_empty_batches(spark: SparkSession) -> Iterator[None]:
    """Have the queries that are begun in the block end with their data.

    A query with timers on the clock would never end: Spark has one batch follow another in case a
    timer is due.
    """
    before = spark.conf.get(EMPTY_BATCHES)
    spark.conf.set(EMPTY_BATCHES, "false")
    try:
        yield
    finally:
        spark.conf.set(EMPTY_BATCHES, before or "true")


def end_queries(running: Sequence[Running]) -> None:
    """Wait until no query is at work in a batch, for as long as that may take; none is stopped."""
    deadline = time.monotonic() + ENDING_S
    while any(one.busy for one in running) and time.monotonic() < deadline:
        time.sleep(POLL_S)
