"""Alerts of a growing capture: this program follows every conversation, and emits what it finds.

    segments --read_bundles--> messages --by conversation--> Conversation
        --> OUT/alerts, Listener.on_alert, Watch.alert_lines

One SQLite file has the position in the capture folder and the state of each conversation
(`specwire.runtime.spark.live.conversations`). A batch of segments is one transaction, so a message is
observed once, whatever is killed and when. A conversation is checked for silence at the time that is
stored with its state.

The table has each alert once. The alerts of one day in a batch are one Parquet file, written before
the transaction ends. After a crash the batch runs again and replaces its files. Alerts are emitted in
order after the transaction, and then deleted from the SQLite file. So after a crash the last alerts
may be emitted twice, and none is skipped.
"""

from __future__ import annotations

import json
import math
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import ArrayType, LongType, StringType, StructType, TimestampType

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.names import read_name
from specwire.runtime.spark.decoding.options import commented
from specwire.runtime.spark.errors import JobError
from specwire.runtime.spark.live.conversations import Alert, Bundle, Conversation, Rules, read_bundles
from specwire.runtime.spark.live.work import FOLDER, Listener, Watch, replace_file
from specwire.runtime.spark.pipeline.store import ROW_SCHEMA
from specwire.runtime.spark.reading.position import Position
from specwire.runtime.spark.reading.stream import FolderStream

TABLE = "alerts"

FILE = "alerts.sqlite"
"""File in `FOLDER`."""

SEGMENTS, OCTETS = 32, 32 << 20
"""Maximum number and size of the segments in a batch, so that a stop is soon heeded."""

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

_SCHEMA = """
    CREATE TABLE IF NOT EXISTS batch (stream TEXT, number INTEGER, position TEXT);
    CREATE TABLE IF NOT EXISTS conversations (
        protocol TEXT, tap TEXT, name TEXT, due_ms INTEGER, state BLOB, PRIMARY KEY (protocol, tap, name)
    ) WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS due ON conversations (due_ms);
    CREATE TABLE IF NOT EXISTS pending (alert TEXT);
"""

Key = tuple[str, str, str]
"""Protocol, tap and name of a conversation."""
Row = dict[str, Any]
"""Row of the table of alerts."""


def follow_alerts(request: Watch, listener: Listener, stop: threading.Event) -> None:
    """Find and emit alerts until `stop` is set, or with `Watch.once` until the existing segments are read.

    Returns at once if the watch has no rules. Raises JobError if a file cannot be read or written.
    """
    if request.rules is None:
        return
    with open_finder(request, listener) as finder:
        while not stop.is_set():
            if not finder.run(time.time_ns() // 1_000_000):
                if request.once:
                    return
                stop.wait(request.every_s)


@contextmanager
def open_finder(request: Watch, listener: Listener) -> Iterator[AlertFinder]:
    """Yield the finder of a watch, which continues where an earlier one ended; JobError as it raises."""
    file = request.out / FOLDER / FILE
    try:
        with closing(sqlite3.connect(file)) as database:
            # No other program reads the file, and not every file system has shared locks.
            database.execute("PRAGMA locking_mode = EXCLUSIVE")
            database.executescript(_SCHEMA)
            yield AlertFinder(request, listener, database)
    except sqlite3.Error as error:
        raise JobError(f"{file}: the state of alerts cannot be read or written: {error}") from error


class AlertFinder:
    """Finder of the alerts of one watch. Its methods raise JobError and sqlite3.Error."""

    def __init__(self, request: Watch, listener: Listener, database: sqlite3.Connection) -> None:
        self._request = request
        self._rules = request.rules or Rules()
        self._listener = listener
        self._database = database
        self._table = request.out / TABLE
        limits = msgspec.structs.replace(request.stream, segments=SEGMENTS, octets=OCTETS)
        self._folder = FolderStream(request.capture, limits, lambda path, part: iter(()))
        if request.once:
            self._folder.prepareForTriggerAvailableNow()
        stored = database.execute("SELECT * FROM batch").fetchone()
        self._stream: str
        self._number: int
        self._stream, self._number, position = stored or (secrets.token_hex(4), 0, "{}")
        self._read = msgspec.json.decode(position, type=Position)
        if stored is None:
            self._commit(self._read)
        # A batch that was cut short may have written files for other days than its repetition will.
        for path in self._table.glob(f"date=*/{self._alert_file()}"):
            path.unlink()
        self._emit()

    def run(self, now_ms: int) -> bool:
        """Observe new segments, and find silent sides; return whether there were new segments.

        `now_ms` is the watcher's clock, milliseconds since 1970. A capture folder that cannot be read
        counts as one without new segments.
        """
        try:
            end = Position.from_json(self._folder.latestOffset(self._read.to_json(), ReadAllAvailable()))
            names = {part.name for part in self._folder.parts(self._read, end)}
        except CaptureError:
            end, names = self._read, set()
        found = self._database.execute("SELECT * FROM conversations WHERE due_ms <= ?", (now_ms,))
        changed = dict(map(_load, found.fetchall()))
        if not (names or changed):
            return False
        rows: list[Row] = []
        for name in sorted(names, key=_first_number):
            for bundle in read_bundles(self._request.capture / name, self._request.request.asked.protocol):
                rows += self._observe(bundle, changed, now_ms)
        kept: list[tuple[object, ...]] = []
        for key, conversation in changed.items():
            silent = list(conversation.find_silent(now_ms, self._rules))
            rows += (_row(key, conversation, alert, now_ms) for alert in silent)
            due_ms = conversation.next_check_ms(self._rules)
            if not conversation.over and (silent or due_ms > now_ms):
                kept.append((*key, due_ms, conversation.dump()))
        self._write(rows)
        self._commit(end, changed, kept, map(_line, rows))
        self._emit()
        return bool(names)

    def _observe(self, bundle: Bundle, changed: dict[Key, Conversation], now_ms: int) -> Iterator[Row]:
        """Yield the alerts for the next messages of a conversation, which is then in `changed`."""
        key = (bundle.protocol, bundle.tap, bundle.conversation)
        if key not in changed:
            where = "protocol = ? AND tap = ? AND name = ?"
            found = self._database.execute(f"SELECT * FROM conversations WHERE {where}", key).fetchone()
            changed[key] = _load(found)[1] if found else Conversation.begin(key[0])
        conversation = changed[key]
        conversation.peer = bundle.peer
        for alert in conversation.observe(bundle.messages, now_ms, self._rules):
            yield _row(key, conversation, alert, now_ms)

    def _alert_file(self) -> str:
        """Return the name of the files with the alerts of the current batch."""
        return f"alerts-{self._stream}-{self._number:06d}.parquet"

    def _write(self, rows: list[Row]) -> None:
        """Write the alerts of the batch into the table, a file for each day."""
        table = pa.Table.from_pylist(rows, to_arrow_schema(ALERTS, timezone="UTC"))
        # Spark reads the columns' comments from here.
        table = table.replace_schema_metadata({ROW_SCHEMA: ALERTS.json().encode()})
        days = pc.cast(table["ts"], pa.date32())
        for day in pc.unique(days).to_pylist():
            file = pa.BufferOutputStream()
            pq.write_table(table.filter(pc.equal(days, pa.scalar(day, pa.date32()))), file)
            replace_file(self._table / f"date={day}" / self._alert_file(), file.getvalue())

    def _commit(
        self,
        read: Position,
        changed: Iterable[Key] = (),
        kept: Iterable[tuple[object, ...]] = (),
        lines: Iterable[str] = (),
    ) -> None:
        """Store the position, the conversations that have changed, and the alerts to emit."""
        position = msgspec.json.encode(read).decode()
        with self._database as database:
            where = "protocol = ? AND tap = ? AND name = ?"
            database.executemany(f"DELETE FROM conversations WHERE {where}", changed)
            database.executemany("INSERT INTO conversations VALUES (?, ?, ?, ?, ?)", kept)
            database.executemany("INSERT INTO pending VALUES (?)", ((line,) for line in lines))
            database.execute("DELETE FROM batch")
            database.execute("INSERT INTO batch VALUES (?, ?, ?)", (self._stream, self._number + 1, position))
        self._read, self._number = read, self._number + 1

    def _emit(self) -> None:
        """Emit the stored alerts, and delete them."""
        lines = [line for (line,) in self._database.execute("SELECT alert FROM pending ORDER BY rowid")]
        for line in lines:
            self._listener.on_alert(json.loads(line))
            self._append(line)
        if lines:
            with self._database as database:
                database.execute("DELETE FROM pending")

    def _append(self, line: str) -> None:
        file = self._request.alert_lines
        if file is None:
            return
        try:
            with file.open("a", encoding="utf-8") as opened:
                opened.write(f"{line}\n")
        except OSError as error:
            raise JobError(f"{file}: alerts cannot be written: {error.strerror}") from error


def _load(stored: Sequence[Any]) -> tuple[Key, Conversation]:
    """Return a stored conversation; one of a version with other dialogs begins again."""
    protocol, tap, name, _, state = stored
    return (protocol, tap, name), Conversation.load(state) or Conversation.begin(protocol)


def _first_number(name: str) -> float:
    """Return the number of the first of a tap's segments in a file, by which files are ordered."""
    read = read_name(name)
    return math.inf if read is None else read.first


def _row(key: Key, conversation: Conversation, alert: Alert, now_ms: int) -> Row:
    protocol, tap, name = key
    row = {field: getattr(alert, field) for field in alert.__struct_fields__}
    row |= {"protocol": protocol, "tap": tap, "conversation": name, "peer": conversation.peer}
    row |= {"ts": _moment(alert.ts), "raised": _moment(1000 * now_ms), "expected": list(alert.expected)}
    return {field: row[field] for field in ALERTS.fieldNames()}


def _moment(micros: int) -> datetime:
    """Return the time `micros` after 1970; the maximum if it is beyond the range of `datetime`."""
    try:
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    except OverflowError:
        return datetime.max.replace(tzinfo=UTC)


def _line(row: Row) -> str:
    """Return an alert as a line of JSON."""
    values = {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in row.items()
    }
    return json.dumps(values, ensure_ascii=False)
