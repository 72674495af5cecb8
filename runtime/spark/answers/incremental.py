"""Answers that Python computes message by message, such as jobs and transfers of files.

Spark groups the messages of one key (a job, a connection) and sorts them in the tap's order. A
worker reads them in Arrow batches and passes each to a `KeyTracker`, which returns finished rows.
At the end of the messages the tracker returns its open rows, and its state as octets. The next step
puts these octets before the new messages of the key. So the memory for a key does not depend on the
number of its messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from specwire.runtime.spark.answers.answer import (
    CONVERSATION_NAME,
    OPEN,
    STORED,
    Frames,
    Step,
    as_table,
    table_schema,
)
from specwire.runtime.spark.answers.messages import latest_by_tap, stored_rows, union

Message = dict[str, Any]
"""The columns of a message, by name."""

AnswerRow = tuple[str, dict[str, Any]]
"""A row of an answer: the table's name and its columns."""

BATCH_ROWS = 4096
"""Number of rows that a worker returns at once."""


class TrackerEnd(NamedTuple):
    """Last rows of a key; `state` is for the next step, None if there is none."""

    closed: Iterable[AnswerRow] = ()
    open: Iterable[AnswerRow] = ()
    state: bytes | None = None


class KeyTracker(Protocol):
    """State of one key."""

    def add(self, message: Message) -> Iterable[AnswerRow]:
        """Add a message, in order; return the rows that are finished before it or with it."""

    def end(self, tap_mono: int) -> TrackerEnd:
        """Return the remaining rows, given that no message came until `tap_mono`."""


MakeTracker = Callable[[dict[str, Any], bytes | None], KeyTracker]
"""Function that makes the tracker of a key, from the state of the last step if there is one."""


def state_schema(keys: Sequence[str]) -> StructType:
    """Return the schema of the state: the key, and the octets of its tracker."""
    return table_schema(
        *(f"{name} STRING: part of the key" for name in keys),
        "seq BIGINT: the tap's count of the latest message",
        "mono BIGINT (nanoseconds): when that was, the tap's monotonic clock",
        "known BINARY: what is known of it, as its tracker writes it",
    )


def track(
    messages: DataFrame,
    protocol: str,
    keys: Sequence[str],
    make: MakeTracker,
    tables: dict[str, StructType],
    state_name: str,
    state: Frames | None,
) -> Step:
    """Return the step of an answer that trackers compute.

    Args:
        messages: columns `tap`, `seq`, `mono`, `keys` and what the tracker reads.
        protocol: name of the generated package.
        keys: columns whose values identify a tracker.
        make: makes a tracker.
        tables: schemas of the answer tables.
        state_name: name of the state table.
        state: state of the last step.
    """
    new = messages.withColumn("known", F.lit(None).cast("binary"))
    rows = union([new, *stored_rows(state, state_name)])
    timed = rows.join(F.broadcast(latest_by_tap(messages)), "tap", "left")
    ordered = timed.repartition(*keys).sortWithinPartitions(*keys, "seq")
    # Columns of the state, and a struct for each answer table. Each row has one of these.
    schema = StructType(
        [
            StructField("table", StringType()),
            StructField("open", BooleanType()),
            *(StructField(field.name, field.dataType) for field in state_schema(keys)),
            *(StructField(table, _own_columns(schema)) for table, schema in tables.items()),
        ]
    )
    arrow = to_arrow_schema(schema, timezone="UTC")

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = _track_rows((row for batch in batches for row in batch.to_pylist()), keys, make)
        while rows := [*islice(found, BATCH_ROWS)]:
            yield pa.RecordBatch.from_pylist(rows, arrow)

    tracked = ordered.mapInArrow(run, schema).persist()

    def rows_of(table: str) -> DataFrame:
        found = tracked.where(F.col("table") == table).select(f"{table}.*", F.col("open").alias(OPEN))
        return as_table(found, protocol, tables[table], is_open=F.col(OPEN))

    known = tracked.where(F.col("table") == "state").select(*state_schema(keys).fieldNames())
    return Step({table: rows_of(table) for table in tables}, {state_name: known}, (tracked,))


def _own_columns(schema: StructType) -> StructType:
    """Return the columns that a tracker fills."""
    others = (*STORED, CONVERSATION_NAME)
    return StructType([StructField(field.name, field.dataType) for field in schema if field not in others])


def _track_rows(rows: Iterator[Message], keys: Sequence[str], make: MakeTracker) -> Iterator[dict[str, Any]]:
    for values, of_key in groupby(rows, itemgetter(*keys)):
        key = dict(zip(keys, values, strict=True))
        tracker: KeyTracker | None = None
        for row in of_key:
            if tracker is None:
                tracker = make(key, row["known"])
            if row["known"] is None:
                yield from _table_rows(tracker.add(row), is_open=False)
            last = row
        assert tracker is not None
        end = tracker.end(last["mono"] if last["tap_mono"] is None else last["tap_mono"])
        yield from _table_rows(end.closed, is_open=False)
        yield from _table_rows(end.open, is_open=True)
        if end.state is not None:
            place = {"seq": last["seq"], "mono": last["mono"]}
            yield {"table": "state", "open": True, "known": end.state, **key, **place}


def _table_rows(rows: Iterable[AnswerRow], *, is_open: bool) -> Iterator[dict[str, Any]]:
    return ({"table": table, "open": is_open, table: row} for table, row in rows)
