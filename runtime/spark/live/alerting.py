"""Alerts on Spark: `transformWithState` watches every conversation of a growing capture.

    segments --notice--> bundles --by tap and conversation--> Watcher --> alerts --> OUT/alerts

The memory of a conversation (`specwire.runtime.spark.live.conversing`) is one value in Spark's
state store, and silence is a processing-time timer. Both survive a restart. The session needs
`STATE_SETTINGS`.

The table has each alert once. The alerts of one day in a batch are one file, named after the stream
and the batch and renamed into place. A batch that runs again after a crash therefore replaces its
own files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    LongType,
    Row,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from specwire.runtime.spark.errors import InputError, JobError
from specwire.runtime.spark.live.conversing import Alert, Conversation, Noticed, Rules, notice, pack, unpack
from specwire.runtime.spark.pipeline.store import ROW_SCHEMA
from specwire.runtime.spark.reading.capture import register_source
from specwire.runtime.spark.reading.stream import FolderStream, SegmentPart, read_stream_options
from specwire.runtime.spark.session.executors import literal_path

FORMAT = "specwire_noticed"

STATE_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
}

PLACE = ("protocol", "tap", "conversation", "peer")
BUNDLES = StructType(
    [
        *(StructField(name, StringType()) for name in PLACE),
        StructField("first_seq", LongType()),
        StructField("messages", BinaryType()),
    ]
)


def _column(name: str, kind: DataType, comment: str) -> StructField:
    return StructField(name, kind, metadata={"comment": comment})


ALERTS = StructType(
    [
        _column("ts", TimestampType(), "when it happened by the tap's clock; for silence, when last heard"),
        _column("raised", TimestampType(), "when it was found, by the clock of the watcher"),
        _column("kind", StringType(), "violation, undecodable or silent"),
        _column("protocol", StringType(), "name of the generated package"),
        _column("tap", StringType(), "id of the tap"),
        _column("conversation", StringType(), "one connection, as the tap names it"),
        _column("peer", StringType(), "the other side's identity, as the tap saw it"),
        _column("sender", StringType(), "role letter of the side that did it"),
        _column("seq", LongType(), "count of the message within its tap; null for silence"),
        _column("message", StringType(), "class name of the message; null where there is none"),
        _column("state", StringType(), "state of the dialog, of each dialog that it may be"),
        _column("expected", ArrayType(StringType()), "what the dialog would have allowed, as ROLE:Message"),
        _column("text", StringType(), "the finding as one sentence"),
        _column("suppressed", LongType(), "earlier findings of the conversation that were not told"),
    ]
)
"""The table of alerts."""

TABLE = "alerts"

DATE = StructField("date", DateType(), metadata={"comment": "of ts, in UTC"})

Line = Callable[[Mapping[str, object]], None]
"""Called with one alert, in JSON types."""


class NoticedSource(DataSource):
    """Data source of bundles of messages; its options are those of a stream, and ``protocol``."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the columns of bundles of messages."""
        return BUNDLES

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of the folder that the options name."""
        given = {name.casefold(): value for name, value in self.options.items()}
        bundles = partial(read_bundles, override=given.get("protocol"))
        return FolderStream(Path(given["path"]), read_stream_options(given), bundles, tasks=4)


def read_bundles(path: Path, part: SegmentPart, *, override: str | None) -> Iterator[tuple[Any, ...]]:
    """Yield the bundles of a segment.

    `part` is not used, because a watcher ignores messages that it has seen.
    """
    for bundle in notice(path, override):
        place = (getattr(bundle, name) for name in PLACE)
        yield (*place, bundle.messages[0].seq, pack(bundle.messages))


class Watcher(StatefulProcessor):
    """Watcher of each conversation, keyed by protocol, tap and conversation."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state value of a conversation."""
        self._handle = handle
        self._memory = handle.getValueState("conversation", "octets BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        """Observe the messages of one conversation in order; return its alerts."""
        bundles = sorted((row.asDict() for row in rows), key=lambda row: cast(int, row["first_seq"]))
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        conversation = self._recall() or Conversation.begin(key[0])
        conversation.peer = bundles[-1]["peer"]
        messages: list[Noticed] = []
        for bundle in bundles:
            messages += unpack(bundle["messages"])
        alerts = list(conversation.observe(messages, now_ms, self._rules))
        self._remember(conversation)
        return (_row(key, conversation, alert, now_ms) for alert in alerts)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Return alerts for silent sides; forget a conversation that is silent for long."""
        conversation = self._recall()
        if conversation is None:
            return iter(())
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        conversation.timer_ms = None
        alerts = list(conversation.find_silent(now_ms, self._rules))
        if not alerts and conversation.next_look_ms(self._rules) <= now_ms:
            self._memory.clear()
        else:
            self._remember(conversation)
        return (_row(key, conversation, alert, now_ms) for alert in alerts)

    def _recall(self) -> Conversation | None:
        stored = self._memory.get()
        return Conversation.load(bytes(stored[0])) if stored else None

    def _remember(self, conversation: Conversation) -> None:
        """Store a conversation and register its timer; clear both if the conversation is over."""
        if conversation.over:
            if conversation.timer_ms is not None:
                self._handle.deleteTimer(conversation.timer_ms)
            self._memory.clear()
            return
        if conversation.timer_ms is None:
            # One timer at a time: when it expires, `find_silent` checks which sides have spoken.
            conversation.timer_ms = conversation.next_look_ms(self._rules)
            self._handle.registerTimer(conversation.timer_ms)
        self._memory.update((conversation.dump(),))


def _row(key: Any, conversation: Conversation, alert: Alert, now_ms: int) -> Row:
    protocol, tap, name = key
    values = {field: getattr(alert, field) for field in alert.__struct_fields__}
    values |= {"ts": _moment(alert.ts), "raised": _moment(1000 * now_ms), "expected": list(alert.expected)}
    values |= {"protocol": protocol, "tap": tap, "conversation": name, "peer": conversation.peer}
    return Row(**{field: values[field] for field in ALERTS.fieldNames()})


def _moment(micros: int) -> datetime:
    """Return the time `micros` after 1970; the maximum if it is beyond the range of `datetime`."""
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def watch_conversations(
    spark: SparkSession, options: Mapping[str, Any], rules: Rules, *, override: str | None = None
) -> DataFrame:
    """Return the alerts of a growing capture as a stream; `options` are those of `NoticedSource`."""
    register_source(spark, NoticedSource)
    reader = spark.readStream.format(FORMAT).options(**options)
    if override is not None:
        reader = reader.option("protocol", override)
    grouped = reader.load().groupBy("protocol", "tap", "conversation")
    return grouped.transformWithState(Watcher(rules), ALERTS, "append", "ProcessingTime")


def store_alerts(out: Path, stream: str, batch: int, found: DataFrame) -> None:
    """Write the alerts of one batch into the table of an output folder.

    Raises JobError if a file cannot be written.
    """
    rows = found.toArrow()
    # Spark reads the columns' comments from here.
    metadata = {**(rows.schema.metadata or {}), ROW_SCHEMA: ALERTS.json().encode()}
    rows = rows.replace_schema_metadata(metadata)
    days = pc.cast(rows["ts"], pa.date32())
    for day in sorted({day for day in days.to_pylist() if day is not None}):
        file = pa.BufferOutputStream()
        pq.write_table(rows.filter(pc.equal(days, pa.scalar(day, pa.date32()))), file)
        path = out / TABLE / f"date={day.isoformat()}" / alert_file(stream, batch)
        write_aside(path, file.getvalue())


def alert_file(stream: str, batch: int) -> str:
    """Return the name of the file with the alerts of one batch and day."""
    return f"alerts-{stream[:8]}-{batch:06d}.parquet"


def read_alerts(spark: SparkSession, out: Path) -> DataFrame:
    """Return the table of alerts, which has no rows if there have been none."""
    schema = StructType([*ALERTS, DATE])
    if not (out / TABLE).is_dir():
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(literal_path(out / TABLE))


def write_aside(file: Path, octets: bytes | pa.Buffer) -> None:
    """Replace a file atomically; JobError if it cannot be written."""
    aside = file.with_name(f".{file.name}.tmp")
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with aside.open("wb") as opened:
            opened.write(octets)
            opened.flush()
            os.fsync(opened.fileno())
        aside.replace(file)
    except OSError as error:
        raise JobError(f"{file}: it cannot be written: {error.strerror or error}") from error


def line_writer(path: Path) -> Line:
    """Return a function that appends each alert to a file as one line of JSON.

    Raises InputError if the file cannot be written.
    """
    try:
        path.open("a").close()
    except OSError as error:
        raise InputError(f"{path}: alerts cannot be written there: {error.strerror}") from error

    def write(alert: Mapping[str, object]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(alert, ensure_ascii=False) + "\n")

    return write
