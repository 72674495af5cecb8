"""Typed tables of made-up traffic, whole or in portions, and the rows of an answer as plain dicts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from specwire.runtime.spark.answers.answer import OPEN, Advance, Frames
from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.protocols import load_columns, load_schemas

BEGUN = datetime(2026, 11, 20, 12, tzinfo=UTC)
"""When a made-up capture begins; its first message is a millisecond later by default."""

Row = dict[str, Any]

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


_TEXTS = ("protocol", "tap", "conversation", "sender", "peer")

_FIELDS: list[pa.Field[Any]] = [
    pa.field("ts", pa.timestamp("us", tz="UTC")),
    *(pa.field(name, pa.int64()) for name in ("mono", "seq")),
    *(pa.field(name, pa.string()) for name in _TEXTS),
    pa.field("frames", pa.list_(pa.binary())),
]

_TYPES = pa.schema(_FIELDS)


def typed_of(spark: SparkSession, rows: Sequence[Row], protocol: str) -> dict[str, DataFrame]:
    """Return the typed tables of capture rows, made without Spark: its plans stay small, and tests quick."""
    batch = pa.Table.from_pylist(list(rows), _TYPES)
    octets = [sum(map(len, row["frames"])) for row in rows]
    noted = batch.drop_columns(["frames"]).append_column("octets", pa.array(octets, pa.int64()))
    columns = load_columns(protocol)
    decoded = columns.decode(batch["frames"].combine_chunks(), batch["sender"].combine_chunks())
    by_name = {name: decoded.column(name) for name in decoded.schema.names}
    tables = {}
    for name in load_schemas(protocol).SCHEMAS:
        tables[name] = _beside(noted, by_name[name], pc.equal(by_name["_message"], pa.scalar(name)))
    wrong = _beside(noted, by_name["_error"], pc.is_valid(by_name["_error"]))
    frames = by_name["_frames"].filter(pc.is_valid(by_name["_error"]))
    tables[ERRORS] = wrong.append_column("frames", frames)
    return {name: spark.createDataFrame(table) for name, table in tables.items()}


def _beside(noted: pa.Table, structs: Any, chosen: Any) -> pa.Table:
    """Return the chosen rows: what was noted, and the members of a struct as columns."""
    table = noted.filter(chosen)
    for field, values in zip(structs.type, structs.filter(chosen).flatten(), strict=True):
        table = table.append_column(field.name, values)
    return table


def portions_of(
    spark: SparkSession, rows: Sequence[Row], protocol: str, *cuts: int
) -> list[dict[str, DataFrame]]:
    """Return the typed tables of capture rows, cut before the rows with these indices."""
    return [typed_of(spark, rows[begin:end], protocol) for begin, end in pairwise([0, *cuts, len(rows)])]


def in_portions(advance: Advance, portions: Sequence[Frames], protocol: str) -> dict[str, list[Row]]:
    """Return the answer tables as they stand after all portions, each closed row of each portion included."""
    rows: dict[str, list[Row]] = {}
    state: Frames | None = None
    last: dict[str, list[Row]] = {}
    for typed in portions:
        step = advance(typed, protocol, state)
        state = {name: _kept(frame) for name, frame in step.state.items()}
        for name, frame in step.rows.items():
            found = as_dicts(frame)
            still = [row.pop(OPEN) for row in found]
            rows.setdefault(name, []).extend(row for row, mark in zip(found, still, strict=True) if not mark)
            last[name] = [row for row, mark in zip(found, still, strict=True) if mark]
        step.release()
    return {name: closed_rows + last[name] for name, closed_rows in rows.items()}


def _kept(frame: DataFrame) -> DataFrame:
    """Return a frame with its rows computed, as one that was written and read again."""
    return frame.sparkSession.createDataFrame(frame.toArrow(), frame.schema)


def at_once(advance: Advance, typed: Frames, protocol: str) -> dict[str, list[Row]]:
    """Return the answer tables of one step over everything."""
    step = advance(typed, protocol, None)
    rows = {name: as_dicts(frame) for name, frame in step.whole().items()}
    step.release()
    return rows


def as_dicts(frame: DataFrame) -> list[Row]:
    """Return the rows of a frame as dicts."""
    return [row.asDict(recursive=True) for row in frame.collect()]


def in_order(rows: Iterable[Row], *names: str) -> list[Row]:
    """Return rows by tap and seq, so that two results can be compared; only these columns where some are named."""
    ordered = sorted(rows, key=lambda row: (row["tap"], row["seq"], str(row)))
    return [{name: row[name] for name in names} if names else row for row in ordered]
