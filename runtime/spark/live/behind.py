"""Alerts of a watch whose Spark is behind a Connect server.

    segments --a query of the server--> OUT/alerts --> emitted by this program

The server keeps the state of conversations, and stores alerts (`StoreAlerts`). Its query would
outlive this program: a server continues the queries of a session that nobody asks for any more. So
this program writes a new word into a file now and then, and the query ends once the word stays the
same.

Alerts are emitted in their order, each once but for a crash. A batch is emitted after Spark has
committed it, because its file for each day is there then, and its number is stored after that: so
after a crash the last alerts may be emitted twice, and none is skipped.
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
"""In the watch's folder: which alerts were emitted."""

WORD = "watched"
"""In the watch's folder: the file that says that somebody watches."""

WORD_S = 5.0
"""Time between two words, in seconds."""

LOOK_S = 0.5
"""Time between two looks at the server's query, and at what it has found, in seconds."""

ABANDONED_S = 120.0
"""Time with one word after which the server's query ends itself, in seconds."""


class StoreAlerts:
    """Stores each batch of alerts.

    Called in a process of the server, one for each beginning of the query.
    """

    def __init__(self, out: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._out = out
        self._clock = clock
        self._word = b""
        self._heard_s: float | None = None

    def __call__(self, found: DataFrame, number: int) -> None:
        """Store a batch; JobError where it cannot be stored, or nobody has watched for long."""
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
    """The id of a query, which Spark writes into its checkpoint before the first batch."""
    found = msgspec.json.decode((checkpoint / "metadata").read_bytes(), type=dict[str, str])
    return found["id"]


@contextmanager
def saying_so(folder: Path) -> Iterator[None]:
    """Let the server's query know, for the time of a block, that somebody watches."""
    done = threading.Event()

    def say() -> None:
        while True:
            # Where the disk is full for a moment, the next word does.
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
    """The server's query, and the alerts that it finds."""

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
        """Begin the query again where it failed, and tell of new alerts."""
        self.running.mend(self._work.tell_failure, stop, now_s)
        self.tell()

    def tell(self) -> None:
        """Tell of the alerts of all batches that were committed."""
        query = self.running.query
        if query is not None:
            self._work.tell_alerts(self._telling.tell(query.id))


@contextmanager
def naming_what_is_missing() -> Iterator[None]:
    """Turn the failure of a server that cannot import what its query is made of into JobError."""
    try:
        yield
    except PySparkException as error:
        if "No module named" not in str(error):
            raise
        raise JobError(
            "the Connect server's Python lacks specwire, which alerts need: install it there, or leave them out "
            "with --no-alerts"
        ) from error


class Told(msgspec.Struct, frozen=True):
    """The last batch of a stream that was told of."""

    stream: str
    number: int


def last_commit(checkpoint: Path) -> int:
    """Return the number of the last batch that Spark has committed, -1 where there is none."""
    numbers = (path.name for path in (checkpoint / "commits").glob("*") if path.name.isdigit())
    return max(map(int, numbers), default=-1)


def forget_told(folder: Path) -> None:
    """Forget what was told, where somebody else tells from now on."""
    (folder / TOLD).unlink(missing_ok=True)


class Telling:
    """Emits new alerts of an output folder; `folder` has the query's checkpoint and the position.

    What was committed before this was made counts as told, unless it is noted that it was not.
    """

    def __init__(self, out: Path, folder: Path, line: Line | None) -> None:
        self._out = out
        self._file = folder / TOLD
        self._checkpoint = folder / TABLE
        self._before = last_commit(self._checkpoint)
        self._line = line
        self._told: Told | None = None

    def tell(self, stream: str) -> int:
        """Give the alerts that the query of this id has found since the last call.

        Return how many.
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
