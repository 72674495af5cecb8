"""A streaming query that survives failures of Spark: it is started again from its checkpoint.

Queries fail on a machine that is temporarily overloaded. For example, Spark waits only 10 s for the
start of a Python process. A watch that runs for months must not end with such a failure. Failures
in specwire's processing of a batch are raised.
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
"""Folder in the output folder for Spark's checkpoints and the state of a watch."""

ALERTS = "alerts"
"""Name of the alert query, and of its checkpoint in `FOLDER`."""

ALERTS_EVERY_S = 2.0
"""Minimum seconds between two checks of the timers, which cost a small job even without traffic."""

EMPTY_BATCHES = "spark.sql.streaming.noDataMicroBatches.enabled"

POLL_S = 0.1
ENDING_S = 120.0
"""Maximum seconds for a batch to end after a stop request.

After this time the batch is interrupted. The next watch runs it again.
"""

RETRIES = 5
"""Number of failures that a query survives; see `FORGIVEN_S`."""

RETRY_S = 2.0
"""Seconds before the first restart; twice that before the second, and so on."""

FORGIVEN_S = 600.0
"""Seconds without a failure after which earlier failures do not count."""


class Running:
    """A query, and the function that starts it.

    A start that Spark rejects is also a failure. An error in the analysis of the query is raised.
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
        """Whether the query runs, or will be started again."""
        return self._refusal is not None or (self.query is not None and self.query.isActive)

    @property
    def busy(self) -> bool:
        """Whether the query is processing a batch."""
        return self.query is not None and self.query.isActive and bool(self.query.status["isTriggerActive"])

    def stop(self) -> None:
        """Stop the query, if it was started."""
        if self.query is not None:
            self.query.stop()

    def mend(self, tell: Callable[[str], None], stop: threading.Event, now_s: float) -> None:
        """Start the query again if it failed, after a call of `tell` with the reason.

        Raises the last failure after too many. `now_s` is a monotonic clock. If `stop` is set, the
        query is not started again.
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
    """Start the alert query, which continues from its checkpoint."""
    checkpoint = (request.out / FOLDER / ALERTS).resolve()
    writer = writer.queryName(f"specwire {ALERTS}").option("checkpointLocation", local_path(checkpoint))
    if request.once:
        with _without_empty_batches(spark):
            return writer.trigger(availableNow=True).start()
    every_s = max(ALERTS_EVERY_S, request.every_s)
    return writer.trigger(processingTime=f"{int(1000 * every_s)} milliseconds").start()


@contextmanager
def _without_empty_batches(spark: SparkSession) -> Iterator[None]:
    """Let queries that start in the block end with their data.

    Otherwise a query with processing-time timers would never end: Spark starts batch after batch
    because a timer may be due.
    """
    before = spark.conf.get(EMPTY_BATCHES)
    spark.conf.set(EMPTY_BATCHES, "false")
    try:
        yield
    finally:
        spark.conf.set(EMPTY_BATCHES, before or "true")


def end_queries(running: Sequence[Running]) -> None:
    """Wait until no query is processing a batch, for `ENDING_S` at most; stop none of them."""
    deadline = time.monotonic() + ENDING_S
    while any(one.busy for one in running) and time.monotonic() < deadline:
        time.sleep(POLL_S)
