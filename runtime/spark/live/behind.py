"""A watch whose Spark is behind a Connect server.

    segments --rounds of this program--> advance --> OUT/typed, OUT/answers, OUT/late, OUT/segments
    segments --a query of the server--> OUT/alerts --> told by this program

The server keeps what is remembered of conversations, and stores alerts (`StoreAlerts`). Its query would outlive this program: a
server goes on with the queries of a session that nobody asks for any more. So this program writes a new word into a
file now and then, and the query ends itself once the word stays the same.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.live.alert_table import Line, store_alerts
from specwire.runtime.spark.live.alerting import watch_conversations
from specwire.runtime.spark.live.conversing import Rules
from specwire.runtime.spark.live.rounds import Rounds, write_aside
from specwire.runtime.spark.live.running import ALERTS, FOLDER, Running, begin_query, end_queries
from specwire.runtime.spark.live.source import source_options
from specwire.runtime.spark.live.telling import Telling
from specwire.runtime.spark.live.work import PAUSE, Watch, Work

WORD = "watched"
"""In the watch's folder: the file that says that somebody watches."""

WORD_S = 5.0
"""Time between two words, in seconds."""

LOOK_S = 0.5
"""Time between two looks at the server's query, and at what it has found, in seconds."""

ABANDONED_S = 120.0
"""Time with one word after which the server's query ends itself, in seconds."""


class StoreAlerts:
    """Stores each batch of alerts; called in a process of the server, one for each beginning of the query."""

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


class Alerts:
    """The server's query, and telling of what it finds."""

    def __init__(
        self, spark: SparkSession, request: Watch, rules: Rules, work: Work, line: Line | None
    ) -> None:
        options = source_options(request.capture, request.patience)

        def begin() -> StreamingQuery:
            with naming_what_is_missing():
                found = watch_conversations(spark, options, rules, override=request.request.asked.protocol)
                store = StoreAlerts(request.out.resolve())
                return begin_query(spark, found.writeStream.foreachBatch(store), request, ALERTS)

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


def watch_behind(
    spark: SparkSession, request: Watch, work: Work, stop: threading.Event, line: Line | None
) -> None:
    """Watch until `stop` is set, or with `Watch.once` until what is there has been taken in.

    The caller holds the folder. Raises as `specwire.runtime.spark.live.watch.watch` does.
    """
    folder = request.out / FOLDER
    with saying_so(folder):
        alerts = Alerts(spark, request, request.rules, work, line) if request.rules is not None else None
        try:
            go_round(Rounds(request, folder, work), alerts, request, work, stop)
        finally:
            if alerts is not None:
                alerts.running.stop()
        if alerts is not None:
            alerts.tell()


def go_round(
    rounds: Rounds, alerts: Alerts | None, request: Watch, work: Work, stop: threading.Event
) -> None:
    """Take batches and follow the alerts until `stop` is set, or with `Watch.once` until both are at their end."""
    while not stop.is_set():
        taken = rounds.take(time.monotonic())
        if alerts is not None:
            alerts.follow(stop, time.monotonic())
        if request.once and not (taken or (alerts is not None and alerts.running.active)):
            return
        work.catch_up(idle_s=request.answers_s * PAUSE)
        if not taken:
            stop.wait(LOOK_S)
    if alerts is not None:
        end_queries([alerts.running])
