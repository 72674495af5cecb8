"""Watch of a growing capture: tables, answers and alerts until a stop request.

    segments --rounds of this program--> advance --> OUT/typed, OUT/answers, OUT/late, OUT/segments
    segments --a query of Spark--> OUT/alerts

Each batch of segments is one run of the pipeline (`specwire.runtime.spark.live.rounds`). Alerts are
a streaming query, because Spark stores the state of each conversation. Both read the folder in the
same order.

Typed tables are updated with every batch. Answers cost more and delay the next batch. They are
therefore updated every `Watch.answers_s`, when traffic pauses, and at the end.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.live.alert_table import Line
from specwire.runtime.spark.live.alerting import STATE_SETTINGS, watch_conversations
from specwire.runtime.spark.live.behind import ServerAlerts, forget_told, saying_so
from specwire.runtime.spark.live.conversing import Rules
from specwire.runtime.spark.live.rounds import Rounds
from specwire.runtime.spark.live.running import ALERTS, FOLDER, POLL_S, Running, begin_query, end_queries
from specwire.runtime.spark.live.work import PAUSE, Listener, Watch, Work
from specwire.runtime.spark.pipeline.commit import begin, check_own
from specwire.runtime.spark.pipeline.manifest import read_manifest
from specwire.runtime.spark.pipeline.request import check_request, check_same
from specwire.runtime.spark.reading.paths import holds_packet_captures
from specwire.runtime.spark.reading.stream import state_options

LOCK = ".lock"

SETTINGS = {
    **STATE_SETTINGS,
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.sql.streaming.minBatchesToRetain": "10",
}
"""Additional settings that the session needs."""


def watch(
    spark: SparkSession,
    request: Watch,
    stop: threading.Event,
    *,
    listener: Listener | None = None,
    line: Line | None = None,
) -> None:
    """Watch until `stop` is set, or with `Watch.once` until the existing segments are processed.

    After a stop request, the current batch is completed and the answers are updated. `line` is
    called with each alert. The session needs `SETTINGS`. Raises InputError if the output folder is
    not a pipeline output or another watch uses it, CaptureError if the capture folder cannot be
    read, and JobError if a job of Spark fails.
    """
    check(request)
    work = Work(spark, request, listener or Listener(), stop)
    # The first run creates the manifest of a new folder. Another watch may use an existing one, so
    # this is skipped there.
    if not (request.out / FOLDER).is_dir():
        work.begin()
    with _alone(request.out), _alerts(spark, request, work, line) as alerts:
        go_round(Rounds(request, request.out / FOLDER, work), alerts, request, work, stop)
        work.catch_up(idle_s=0.0)


def check(request: Watch) -> None:
    """Raise InputError, CaptureError or JobError for errors that can be found without Spark."""
    check_request(request.request, request.out)
    check_own(request.out)
    check_same(request.request.asked, read_manifest(request.out), request.out)
    if not request.capture.is_dir():
        raise CaptureError(f"{request.capture}: there is no such capture folder")
    if holds_packet_captures(request.capture):
        raise CaptureError(
            f"{request.capture}: a folder of packet captures cannot be watched; read the complete files with "
            "`specwire pipeline run`"
        )
    if not (request.out / FOLDER).is_dir():
        with begin(request.out):
            pass  # Checks that the folder can be created and written.


@contextmanager
def _alone(out: Path) -> Iterator[None]:
    """Lock the folder against other watches for the block.

    Raises InputError if another watch uses it.
    """
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


class LocalAlerts:
    """Query of alerts in a session of this process, which stores and emits each batch."""

    look_s = POLL_S

    def __init__(
        self, spark: SparkSession, request: Watch, rules: Rules, work: Work, line: Line | None
    ) -> None:
        options = state_options(request.capture, request.patience)

        def begin() -> StreamingQuery:
            found = watch_conversations(spark, options, rules, override=request.request.asked.protocol)
            taking = found.writeStream.foreachBatch(
                lambda alerts, number: work.take_alerts(alerts, number, line)
            )
            query = begin_query(spark, taking, request)
            work.name_stream(ALERTS, query.id)
            return query

        forget_told(request.out / FOLDER)
        self._work = work
        self.running = Running(begin)

    def follow(self, stop: threading.Event, now_s: float) -> None:
        """Start the query again if it failed; raise the failure of a batch."""
        self._work.raise_failure()
        self.running.mend(self._work.tell_failure, stop, now_s)

    def tell(self) -> None:
        """Emit nothing, because each batch has emitted its alerts."""


@contextmanager
def _alerts(
    spark: SparkSession, request: Watch, work: Work, line: Line | None
) -> Iterator[LocalAlerts | ServerAlerts | None]:
    """Run the alert query for the block, if alerts are requested."""
    if request.rules is None:
        yield None
        return
    # A session behind a Connect server has another class.
    local = isinstance(spark, SparkSession)
    with nullcontext() if local else saying_so(request.out / FOLDER):
        alerts = (LocalAlerts if local else ServerAlerts)(spark, request, request.rules, work, line)
        try:
            yield alerts
        finally:
            alerts.running.stop()
        alerts.tell()


def go_round(
    rounds: Rounds,
    alerts: LocalAlerts | ServerAlerts | None,
    request: Watch,
    work: Work,
    stop: threading.Event,
) -> None:
    """Process batches and alerts until `stop` is set, or with `Watch.once` until both end."""
    while not stop.is_set():
        taken = rounds.take(time.monotonic())
        if alerts is not None:
            alerts.follow(stop, time.monotonic())
        if request.once and not (taken or (alerts is not None and alerts.running.active)):
            break
        work.catch_up(idle_s=request.answers_s * PAUSE)
        if not taken:
            stop.wait(POLL_S if alerts is None else alerts.look_s)
    if alerts is not None:
        end_queries([alerts.running])
    work.raise_failure()
