"""Query of alerts: Spark finds and stores them, and this program emits them.

    segments --streaming query--> OUT/alerts --AlertEmitter--> Listener.on_alert, Watch.alert_lines

The query keeps the state of conversations and stores each batch of alerts (`StoreAlerts`). On an
overloaded machine Spark may fail; for example, it waits only 10 s for the start of a Python
process. A watch that runs for months must survive this, so `RestartingQuery` starts the query again
from its checkpoint.

A Connect server continues the queries of an abandoned session. So this program regularly writes a
new random word into a file, the heartbeat, and the query ends if the word does not change.

Alerts are emitted in order. A batch is emitted after Spark has committed it, when its file for each
day exists. Its number is stored afterwards. So after a crash the last alerts may be emitted twice,
and none is skipped.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from datetime import date
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException, PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.live.alerting import (
    TABLE,
    alert_file,
    read_state,
    replace_file,
    store_alerts,
    watch_conversations,
)
from specwire.runtime.spark.live.work import FOLDER, Listener, Watch
from specwire.runtime.spark.session.executors import local_path
from specwire.runtime.spark.session.java import describe_failure
from specwire.runtime.spark.session.opening import changed_settings

ALERTS = "alerts"
"""Name of the query, and of its checkpoint in `FOLDER`."""

EMITTED_FILE = "told.json"
"""File in `FOLDER`: the last batch whose alerts were emitted. Version 0.1 gave it this name."""

HEARTBEAT = "heartbeat"
"""File in `FOLDER`: its changes show that a watch is running."""

HEARTBEAT_S = 5.0  # Between two heartbeats.
ABANDONED_S = 120.0  # Without a heartbeat, until the query ends.
ALERTS_EVERY_S = 2.0  # At least between two checks of the timers; each check is a small job.
POLL_S = 0.1  # Between two checks of a local query and its alerts.
REMOTE_POLL_S = 0.5  # Between two checks of a server's query and its alerts.
ENDING_S = 120.0  # At most, for a batch to end after a stop. The next watch runs it again.

RETRIES = 5
"""Number of failures that a query survives, if each is within `FORGIVEN_S` of the one before."""

RETRY_S = 2.0  # Before the first restart; twice that before the second, and so on.
FORGIVEN_S = 600.0  # Without a failure, until earlier failures do not count.


class AlertQuery:
    """Query of alerts, and the emission of what it finds."""

    def __init__(self, spark: SparkSession, request: Watch, listener: Listener) -> None:
        # A session behind a Connect server has another class.
        self.poll_s = POLL_S if isinstance(spark, SparkSession) else REMOTE_POLL_S
        self._listener = listener
        self._emitter = AlertEmitter(request.out, listener.on_alert, request.alert_lines)
        self._store = StoreAlerts(request.out.resolve())
        self.running = RestartingQuery(lambda: begin_query(spark, request, self._store), ends=request.once)

    def follow(self, stop: threading.Event, now_s: float) -> None:
        """Emit new alerts, and start the query again if it failed; see `raise_failure`."""
        self.raise_failure()
        self.running.restart(self._listener.on_failure, stop, now_s)
        self.emit()

    def raise_failure(self) -> None:
        """Raise the failure to store a batch in this process, if there was one."""
        if self._store.failure is not None:
            raise self._store.failure

    def emit(self) -> None:
        """Emit the alerts of all committed batches."""
        if self.running.query is not None:
            self._emitter.emit(self.running.query.id)


@contextmanager
def alert_query(spark: SparkSession, request: Watch, listener: Listener) -> Iterator[AlertQuery | None]:
    """Run the query of alerts for the block, if alerts are requested."""
    if request.rules is None:
        yield None
        return
    with write_heartbeats(request.out / FOLDER):
        alerts = AlertQuery(spark, request, listener)
        try:
            yield alerts
        finally:
            alerts.running.stop()
        alerts.emit()


def begin_query(spark: SparkSession, request: Watch, store: StoreAlerts) -> StreamingQuery:
    """Start the query of alerts, which continues from its checkpoint."""
    assert request.rules is not None
    options = {"path": str(request.capture.resolve()), **msgspec.structs.asdict(request.stream)}
    checkpoint = (request.out / FOLDER / ALERTS).resolve()
    # Otherwise a query with processing-time timers would never end: Spark starts batch after batch
    # because a timer may be due.
    ending = changed_settings(spark, {"spark.sql.streaming.noDataMicroBatches.enabled": "false"})
    every_s = max(ALERTS_EVERY_S, request.every_s)
    with explain_missing_package(), ending if request.once else nullcontext():
        protocol = request.request.asked.protocol
        found = watch_conversations(spark, options, request.rules, override=protocol)
        writer = found.writeStream.foreachBatch(store).queryName(f"specwire {ALERTS}")
        writer = writer.option("checkpointLocation", local_path(checkpoint))
        if request.once:
            return writer.trigger(availableNow=True).start()
        return writer.trigger(processingTime=f"{int(1000 * every_s)} milliseconds").start()


@contextmanager
def explain_missing_package() -> Iterator[None]:
    """Raise JobError in place of the import error of a server that lacks specwire."""
    try:
        yield
    except PySparkException as error:
        if "No module named" not in str(error):
            raise
        raise JobError(
            "the Connect server's Python lacks specwire, which alerts need: install it there, or turn alerts off "
            "with --no-alerts"
        ) from error


class RestartingQuery:
    """Streaming query that is started again after failures.

    A failure is an error of the query, a start that Spark refuses, or an end without an error, such
    as a stop by another client of the server, unless the query `ends`. An error in the analysis of
    the query is raised.
    """

    def __init__(
        self, begin: Callable[[], StreamingQuery], *, ends: bool = False, retry_s: float = RETRY_S
    ) -> None:
        self.query: StreamingQuery | None = None
        self._begin = begin
        self._ends = ends
        self._retry_s = retry_s
        self._refusal: PySparkException | None = None
        self._failures = 0
        self._failed_s = 0.0
        self._try()

    @property
    def active(self) -> bool:
        """Whether the query runs, or will be started again."""
        return self._refusal is not None or (self.query is not None and self.query.isActive)

    @property
    def busy(self) -> bool:
        """Whether the query is processing a batch."""
        return self.query is not None and self.query.isActive and bool(self.query.status["isTriggerActive"])

    def wait_idle(self) -> None:
        """Wait until the query is not processing a batch, for `ENDING_S` at most."""
        deadline = time.monotonic() + ENDING_S
        while self.busy and time.monotonic() < deadline:
            time.sleep(POLL_S)

    def stop(self) -> None:
        """Stop the query, if it was started."""
        if self.query is not None:
            self.query.stop()

    def restart(self, report: Callable[[str], None], stop: threading.Event, now_s: float) -> None:
        """Start the query again if it failed and `stop` is not set; call `report` with the reason.

        Raises the failure if there were `RETRIES` before it. `now_s` is a monotonic clock.
        """
        error = self._failure()
        if error is None or stop.is_set():
            return
        if now_s - self._failed_s > FORGIVEN_S:
            self._failures = 0
        if self._failures == RETRIES:
            raise error
        self._failures += 1
        self._failed_s = now_s
        report(describe_failure(error))
        if not stop.wait(self._retry_s * self._failures):
            self._try()

    def _failure(self) -> PySparkException | None:
        if self._refusal is not None or self.query is None or self.query.isActive:
            return self._refusal
        error = self.query.exception()
        return error if error or self._ends else StreamingQueryException("the query was stopped")

    def _try(self) -> None:
        try:
            self.query = self._begin()
            self._refusal = None
        except AnalysisException:
            raise
        except PySparkException as refusal:
            self._refusal = refusal


class StoreAlerts:
    """Callable that stores each batch of alerts.

    Behind a Connect server it runs in a process of the server, a separate one for each start of the
    query. In this process `failure` is the error that ended the query.
    """

    def __init__(self, out: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.failure: JobError | None = None
        self._out = out
        self._clock = clock
        self._word = b""
        self._changed_s: float | None = None

    def __call__(self, found: DataFrame, number: int) -> None:
        """Store a batch; JobError if that fails, or if there was no heartbeat for `ABANDONED_S`."""
        folder = self._out / FOLDER
        word = b""
        with suppress(OSError):
            word = (folder / HEARTBEAT).read_bytes()
        now_s = self._clock()
        if self._changed_s is None or word != self._word:
            self._word, self._changed_s = word, now_s
        if now_s - self._changed_s > ABANDONED_S:
            raise JobError(f"{self._out}: no watch has run for {ABANDONED_S:g} s")
        # Spark writes the query's id into its checkpoint before the first batch.
        metadata = (folder / ALERTS / "metadata").read_bytes()
        try:
            store_alerts(self._out, msgspec.json.decode(metadata, type=dict[str, str])["id"], number, found)
        except JobError as error:
            self.failure = error
            raise


@contextmanager
def write_heartbeats(folder: Path) -> Iterator[None]:
    """Write heartbeats during the block."""
    done = threading.Event()

    def write() -> None:
        while True:
            # After a temporary failure, such as a full disk, the next heartbeat is enough.
            with suppress(JobError):
                replace_file(folder / HEARTBEAT, secrets.token_hex(8).encode())
            if done.wait(HEARTBEAT_S):
                return

    writing = threading.Thread(target=write, name="specwire-heartbeat", daemon=True)
    writing.start()
    try:
        yield
    finally:
        done.set()
        writing.join()


class Emitted(msgspec.Struct, frozen=True):
    """The last batch of a stream whose alerts were emitted."""

    stream: str
    number: int


class AlertEmitter:
    """Emitter of the alerts in the table of an output folder.

    It calls `on_alert` with each alert, in JSON types, and appends it to the file `lines`, if there
    is one. Batches that were committed before this object was created count as emitted, unless the
    file `EMITTED_FILE` says otherwise.
    """

    def __init__(
        self, out: Path, on_alert: Callable[[Mapping[str, object]], None], lines: Path | None = None
    ) -> None:
        self._table = out / TABLE
        self._file = out / FOLDER / EMITTED_FILE
        self._checkpoint = out / FOLDER / ALERTS
        self._before = last_commit(self._checkpoint)
        self._on_alert = on_alert
        self._lines = lines
        self._emitted: Emitted | None = None

    def emit(self, stream: str) -> None:
        """Emit the alerts that the query with this id has found since the last call.

        Raises JobError if a file cannot be written.
        """
        emitted = self._emitted or self._load(stream)
        last = last_commit(self._checkpoint)
        for number in range(emitted.number + 1, last + 1):
            for path in sorted(self._table.glob(f"date=*/{alert_file(stream, number)}")):
                with path.open("rb") as file:
                    rows = pq.read_table(file).to_pylist()
                for row in rows:
                    alert = {k: v.isoformat() if isinstance(v, date) else v for k, v in row.items()}
                    self._on_alert(alert)
                    self._append(alert)
        self._emitted = Emitted(stream, max(emitted.number, last))
        if self._emitted != emitted:
            replace_file(self._file, msgspec.json.encode(self._emitted))

    def _append(self, alert: Mapping[str, object]) -> None:
        if self._lines is None:
            return
        try:
            with self._lines.open("a", encoding="utf-8") as file:
                file.write(json.dumps(alert, ensure_ascii=False) + "\n")
        except OSError as error:
            raise JobError(f"{self._lines}: alerts cannot be written: {error.strerror}") from error

    def _load(self, stream: str) -> Emitted:
        emitted = read_state(self._file, Emitted)
        return emitted if emitted and emitted.stream == stream else Emitted(stream, self._before)


def last_commit(checkpoint: Path) -> int:
    """Return the number of the last batch that Spark has committed; -1 if there is none."""
    numbers = (path.name for path in (checkpoint / "commits").glob("*") if path.name.isdigit())
    return max(map(int, numbers), default=-1)
