"""Alerts of a watch whose Spark is behind a Connect server.

    segments --a query of the server--> OUT/alerts --> emitted by this program

The server keeps the state of conversations and stores alerts (`StoreAlerts`). Its query would
outlive this program, because a server continues the queries of an abandoned session. Therefore this
program regularly writes a new random word into a file, and the query ends if the word stays the
same.

Alerts are emitted in order. A batch is emitted after Spark has committed it, when its file for each
day exists. Its number is stored afterwards. After a crash the last alerts may therefore be emitted
twice, and none is skipped.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.live.alert_table import TABLE, Line, alert_file, store_alerts, tell
from specwire.runtime.spark.live.alerting import watch_conversations
from specwire.runtime.spark.live.conversing import Rules
from specwire.runtime.spark.live.rounds import write_aside
from specwire.runtime.spark.live.running import ALERTS, FOLDER, Running, begin_query
from specwire.runtime.spark.live.work import Watch, Work
from specwire.runtime.spark.reading.stream import state_options

TOLD = "told.json"
"""File in the watch's folder: the last batch whose alerts were emitted."""

WORD = "watched"
"""File in the watch's folder: its changes show that a watch is running."""

WORD_S = 5.0
"""Seconds between two words."""

LOOK_S = 0.5
"""Seconds between two checks of the server's query and its alerts."""

ABANDONED_S = 120.0
"""Seconds without a new word after which the server's query ends."""


class StoreAlerts:
    """Callable that stores each batch of alerts.

    It runs in a process of the server. Each start of the query has its own process.
    """

    def __init__(self, out: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._clock = clock
        self._word = b""
        self._heard_s: float | None = None

    def __call__(self, found: DataFrame, number: int) -> None:
        """Store a batch; JobError if it cannot be stored, or no watch has run for `ABANDONED_S`."""
        folder = self._out / FOLDER
        word = _read_word(folder)
        now_s = self._clock()
        if self._heard_s is None or word != self._word:
            self._word, self._heard_s = word, now_s
        if now_s - self._heard_s > ABANDONED_S:
            raise JobError(f"{self._out}: nobody has watched for {ABANDONED_S:g} s")
        store_alerts(self._out, _query_id(folder / ALERTS), number, found)


def _read_word(folder: Path) -> bytes:
    with suppress(OSError):
        return (folder / WORD).read_bytes()
    return b""


def _query_id(checkpoint: Path) -> str:
    """Return the id of a query, which Spark writes into its checkpoint before the first batch."""
    found = msgspec.json.decode((checkpoint / "metadata").read_bytes(), type=dict[str, str])
    return found["id"]


@contextmanager
def saying_so(folder: Path) -> Iterator[None]:
    """Write new words during the block, so that the server's query does not end."""
    done = threading.Event()

    def say() -> None:
        while True:
            # After a temporary failure, such as a full disk, the next word is enough.
            with suppress(JobError):
                write_aside(folder / WORD, secrets.token_hex(8).encode())
            if done.wait(WORD_S):
                return

    saying = threading.Thread(target=say, name="specwire-watched", daemon=True)
    saying.start()
    try:
        yield
    finally:
        done.set()
        saying.join()


class ServerAlerts:
    """Query of alerts on the server, whose alerts this process emits."""

    look_s = LOOK_S

    def __init__(
        self, spark: SparkSession, request: Watch, rules: Rules, work: Work, line: Line | None
    ) -> None:
        options = state_options(request.capture, request.patience)

        def begin() -> StreamingQuery:
            with naming_what_is_missing():
                found = watch_conversations(spark, options, rules, override=request.request.asked.protocol)
                store = StoreAlerts(request.out.resolve())
                return begin_query(spark, found.writeStream.foreachBatch(store), request)

        self._work = work
        self._telling = Telling(request.out, request.out / FOLDER, line)
        self.running = Running(begin)

    def follow(self, stop: threading.Event, now_s: float) -> None:
        """Start the query again if it failed, and emit new alerts."""
        self.running.mend(self._work.tell_failure, stop, now_s)
        self.tell()

    def tell(self) -> None:
        """Emit the alerts of all committed batches."""
        query = self.running.query
        if query is not None:
            self._work.tell_alerts(self._telling.tell(query.id))


@contextmanager
def naming_what_is_missing() -> Iterator[None]:
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


class Told(msgspec.Struct, frozen=True):
    """The last batch of a stream whose alerts were emitted."""

    stream: str
    number: int


def last_commit(checkpoint: Path) -> int:
    """Return the number of the last batch that Spark has committed; -1 if there is none."""
    numbers = (path.name for path in (checkpoint / "commits").glob("*") if path.name.isdigit())
    return max(map(int, numbers), default=-1)


def forget_told(folder: Path) -> None:
    """Delete the record of emitted alerts, because another query emits them from now on."""
    (folder / TOLD).unlink(missing_ok=True)


class Telling:
    """Emitter of new alerts; `folder` has the query's checkpoint and the record of emitted alerts.

    Batches that were committed before this object was created count as emitted, unless the record
    says otherwise.
    """

    def __init__(self, out: Path, folder: Path, line: Line | None) -> None:
        self._out = out
        self._file = folder / TOLD
        self._checkpoint = folder / TABLE
        self._before = last_commit(self._checkpoint)
        self._line = line
        self._told: Told | None = None

    def tell(self, stream: str) -> int:
        """Emit the alerts that the query with this id has found since the last call.

        Return their number.
        """
        told = self._told or self._recall(stream)
        last = last_commit(self._checkpoint)
        count = 0
        for number in range(told.number + 1, last + 1):
            for path in sorted((self._out / TABLE).glob(f"date=*/{alert_file(stream, number)}")):
                with path.open("rb") as file:
                    rows = pq.read_table(file)
                tell(rows, self._line)
                count += rows.num_rows
        self._told = Told(stream, max(told.number, last))
        if self._told != told:
            write_aside(self._file, msgspec.json.encode(self._told))
        return count

    def _recall(self, stream: str) -> Told:
        try:
            told = msgspec.json.decode(self._file.read_bytes(), type=Told)
        except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
            return Told(stream, self._before)
        return told if told.stream == stream else Told(stream, self._before)
