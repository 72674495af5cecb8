"""Alerts on Spark: `transformWithState` watches every conversation of a growing capture.

    segments --BundleSource--> bundles --by conversation--> ConversationWatcher --> OUT/alerts

The state of a conversation (`specwire.runtime.spark.live.conversations`) is one value in Spark's
state store, and silence is a processing-time timer. Both survive a restart. The session needs
`STATE_SETTINGS`.

The table has each alert once. The alerts of one day in a batch are one file, named after the stream
and the batch and renamed into place. A batch that runs again after a crash therefore replaces its
own files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
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
    LongType,
    Row,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from specwire.runtime.spark.decoding.options import commented
from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.live.conversations import (
    Alert,
    Conversation,
    Rules,
    pack,
    read_bundles,
    unpack,
)
from specwire.runtime.spark.pipeline.store import ROW_SCHEMA
from specwire.runtime.spark.reading.capture import register_source
from specwire.runtime.spark.reading.stream import FolderStream, SegmentPart, read_stream_options

State = TypeVar("State", bound=msgspec.Struct)

FORMAT = "specwire_watched"

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


ALERTS = StructType(
    [
        commented(
            "ts", TimestampType(), "time of the message by the tap's clock; for silence, of the last one"
        ),
        commented("raised", TimestampType(), "when it was found, by the watcher's clock"),
        commented("kind", StringType(), "violation, undecodable or silent"),
        commented("protocol", StringType(), "name of the generated package"),
        commented("tap", StringType(), "id of the tap"),
        commented("conversation", StringType(), "one connection, as the tap names it"),
        commented("peer", StringType(), "the other side's identity, as the tap saw it"),
        commented("sender", StringType(), "role letter of the side that caused it"),
        commented("seq", LongType(), "count of the message within its tap; null for silence"),
        commented("message", StringType(), "class name of the message; null where there is none"),
        commented("state", StringType(), "state of the dialog, or of each possible dialog"),
        commented(
            "expected",
            ArrayType(StringType()),
            "messages that the dialog would have allowed, as ROLE:Message",
        ),
        commented("text", StringType(), "reason as one sentence"),
        commented("suppressed", LongType(), "earlier alerts of the conversation that were only counted"),
    ]
)
"""The table of alerts."""

TABLE = "alerts"


class BundleSource(DataSource):
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
        rows = partial(_bundle_rows, override=given.get("protocol"))
        return FolderStream(Path(given["path"]), read_stream_options(given), rows, tasks=4)


def _bundle_rows(path: Path, part: SegmentPart, *, override: str | None) -> Iterator[tuple[Any, ...]]:
    """Yield the bundles of all messages of a segment; a watcher ignores repeated ones."""
    for bundle in read_bundles(path, override):
        place = (getattr(bundle, name) for name in PLACE)
        yield (*place, bundle.messages[0].seq, pack(bundle.messages))


class ConversationWatcher(StatefulProcessor):
    """Watcher of each conversation, keyed by protocol, tap and conversation."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state value of a conversation."""
        self._handle = handle
        self._state = handle.getValueState("conversation", "octets BINARY")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: TimerValues) -> Iterator[Row]:
        """Observe the messages of one conversation in order; return its alerts."""
        bundles = sorted((row.asDict() for row in rows), key=lambda row: cast(int, row["first_seq"]))
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        conversation = self._load() or Conversation.begin(key[0])
        conversation.peer = bundles[-1]["peer"]
        messages = [message for bundle in bundles for message in unpack(bundle["messages"])]
        alerts = list(conversation.observe(messages, now_ms, self._rules))
        self._store(conversation)
        return (_row(key, conversation, alert, now_ms) for alert in alerts)

    def handleExpiredTimer(
        self, key: Any, timerValues: TimerValues, expiredTimerInfo: ExpiredTimerInfo
    ) -> Iterator[Row]:
        """Return alerts for silent sides; forget a conversation after `Rules.forget_s`."""
        conversation = self._load()
        if conversation is None:
            return iter(())
        now_ms = timerValues.getCurrentProcessingTimeInMs()
        conversation.timer_ms = None
        alerts = list(conversation.find_silent(now_ms, self._rules))
        if not alerts and conversation.next_timer_ms(self._rules) <= now_ms:
            self._state.clear()
        else:
            self._store(conversation)
        return (_row(key, conversation, alert, now_ms) for alert in alerts)

    def _load(self) -> Conversation | None:
        stored = self._state.get()
        return Conversation.load(bytes(stored[0])) if stored else None

    def _store(self, conversation: Conversation) -> None:
        """Store a conversation and register its timer; clear both if the conversation is over."""
        if conversation.over:
            if conversation.timer_ms is not None:
                self._handle.deleteTimer(conversation.timer_ms)
            self._state.clear()
            return
        if conversation.timer_ms is None:
            # One timer for all sides: when it expires, `find_silent` checks each of them.
            conversation.timer_ms = conversation.next_timer_ms(self._rules)
            self._handle.registerTimer(conversation.timer_ms)
        self._state.update((conversation.dump(),))


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
    """Return the alerts of a growing capture as a stream; `options` are those of `BundleSource`."""
    register_source(spark, BundleSource)
    reader = spark.readStream.format(FORMAT).options(**options)
    if override is not None:
        reader = reader.option("protocol", override)
    grouped = reader.load().groupBy("protocol", "tap", "conversation")
    return grouped.transformWithState(ConversationWatcher(rules), ALERTS, "append", "ProcessingTime")


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
        replace_file(path, file.getvalue())


def alert_file(stream: str, batch: int) -> str:
    """Return the name of the file with the alerts of one batch and day."""
    return f"alerts-{stream[:8]}-{batch:06d}.parquet"


def read_state(file: Path, type: type[State]) -> State | None:
    """Return what a file of JSON holds; None if it does not exist or is damaged.

    Raises JobError if it cannot be read.
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=type)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    except OSError as error:
        raise JobError(f"{file}: it cannot be read: {error.strerror or error}") from error


def replace_file(file: Path, octets: bytes | pa.Buffer) -> None:
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
