"""Typed tables of made-up traffic, whole or in portions, and the rows of an answer as plain dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from specwire.runtime.spark.answers.step import Advance, Frames
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.tables import tables
from specwire.runtime.spark.reading.capture import CAPTURE

BEGUN = datetime(2026, 11, 20, 12, tzinfo=UTC)
"""When a made-up capture begins; its first message is a millisecond later by default."""

MS = 1_000_000
"""Nanoseconds in a millisecond."""


class Seen(NamedTuple):
    """A message as a tap saw it: who sent it, its frames or the message, and when, in milliseconds."""

    sender: str
    message: Any
    at_ms: float | None = None
    conversation: str = "c1"
    peer: str = "p1"
    tap: str = "tap-1-0"


def capture_rows(messages: Iterable[Seen], protocol: str) -> list[dict[str, Any]]:
    """Return the rows of a capture; each tap counts its own messages, one a millisecond where no time is given."""
    counts: dict[str, int] = {}
    rows = []
    for item in messages:
        seq = counts.get(item.tap, 0)
        counts[item.tap] = seq + 1
        at_ms = seq + 1 if item.at_ms is None else item.at_ms
        frames = item.message if isinstance(item.message, list) else item.message.encode()
        rows.append(
            {
                "ts": BEGUN + timedelta(milliseconds=at_ms),
                "mono": round(at_ms * MS),
                "seq": seq,
                "protocol": protocol,
                "tap": item.tap,
                "conversation": item.conversation,
                "sender": item.sender,
                "peer": item.peer,
                "frames": frames,
            }
        )
    return rows


_TYPES = pa.schema(
    [
        ("ts", pa.timestamp("us", tz="UTC")),
        ("mono", pa.int64()),
        ("seq", pa.int64()),
        *((name, pa.string()) for name in ("protocol", "tap", "conversation", "sender", "peer")),
        ("frames", pa.list_(pa.binary())),
    ]
)


def typed_of(spark: SparkSession, rows: Sequence[dict[str, Any]], protocol: str) -> dict[str, DataFrame]:
    """Return the typed tables of capture rows."""
    frame = spark.createDataFrame(pa.Table.from_pylist(list(rows), _TYPES))
    return tables(decode(frame.select(*CAPTURE.fieldNames()), protocol, backend="arrow").persist(), protocol)


def in_portions(
    advance: Advance, portions: Sequence[Frames], protocol: str, name: str
) -> list[dict[str, Any]]:
    """Return one table as it stands after all portions, each closed row of each portion included."""
    rows: list[dict[str, Any]] = []
    state = None
    for typed in portions:
        step = advance(typed, protocol, state)
        rows += as_dicts(step.closed[name])
        last, state = step.open[name], step.state
    return rows + as_dicts(last)


def as_dicts(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame."""
    return [row.asDict(recursive=True) for row in frame.collect()]


def by(key: Callable[[dict[str, Any]], Any], rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in the order of a key, so that two results can be compared."""
    return sorted(rows, key=key)
