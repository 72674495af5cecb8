"""Answers that Python folds message by message, for events that are rare relative to their octets.

Spark groups the messages of one key (a job, a connection) and sorts them in the tap's order. A
worker reads them in Arrow batches and passes each to a `Folder`, which returns the finished rows.
At the end of the messages the folder returns its open rows, and its state as octets. The next run
puts these octets before the new messages of the key. So the memory for a key does not depend on the
number of its messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, BooleanType, StringType, StructField, StructType

from specwire.runtime.spark.answers.messages import kept, latest, shape, together
from specwire.runtime.spark.answers.schemas.shared import CONVERSATION_NAME, LONG, TEXT, column
from specwire.runtime.spark.answers.step import OPEN, Frames, Step

Word = dict[str, Any]
"""A message as a folder gets it: the columns of the words, by name."""

Found = tuple[str, dict[str, Any]]
"""A row of an answer: the table's name and its columns."""

ROWS = 4096
"""Number of rows that a worker returns at once."""


class Folder(Protocol):
    """State of one key. `take` is called for each message in order."""

    def take(self, word: Word) -> Iterable[Found]:
        """Take a message; return the rows that are finished before it or with it."""

    def rest(self, tap_mono: int) -> tuple[Iterable[Found], Iterable[Found], bytes | None]:
        """Return the finished and the open rows, given that no message came until `tap_mono`.

        The octets are the state for the next run; None if there is none.
        """


Make = Callable[[Sequence[Any], bytes | None], Folder]
"""Function that makes the folder of a key, from the octets of the last run if there are any."""


def state_schema(keys: Sequence[str]) -> StructType:
    """Return the schema of the state: the key, and what its folder knew."""
    return StructType(
        [
            *(column(name, TEXT, "part of the key") for name in keys),
            column("seq", LONG, "the tap's count of the latest message"),
            column("mono", LONG, "when that was, the tap's monotonic clock", "nanoseconds"),
            column("known", BinaryType(), "what is known of it, as its folder writes it"),
        ]
    )


def fold(
    words: DataFrame,
    state: Frames | None,
    keys: Sequence[str],
    make: Make,
    protocol: str,
    tables: dict[str, StructType],
    state_name: str,
) -> Step:
    """Fold the words (columns `keys`, `seq`, `mono` and what the folder reads) and return the step."""
    nothing = words.withColumn("known", F.lit(None).cast("binary"))
    both = together([nothing, *kept(state, state_name)])
    timed = both.join(F.broadcast(latest(words)), "tap", "left")
    ordered = timed.repartition(*keys).sortWithinPartitions(*keys, "seq")
    out = _out_schema(keys, tables)
    arrow = to_arrow_schema(out, timezone="UTC")

    def fold_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = _fold_rows((row for batch in batches for row in batch.to_pylist()), keys, make)
        return _in_batches(rows, arrow)

    folded = ordered.mapInArrow(fold_batches, out).persist()

    def rows_of(table: str) -> DataFrame:
        chosen = folded.where(F.col("table") == table).select(f"{table}.*", F.col("open").alias(OPEN))
        return shape(chosen, protocol, tables[table], is_open=F.col(OPEN))

    known = folded.where(F.col("table") == "state").select(*state_schema(keys).fieldNames())
    return Step(
        rows={table: rows_of(table) for table in tables},
        state={state_name: known},
        cached=(folded,),
    )


def _out_schema(keys: Sequence[str], tables: dict[str, StructType]) -> StructType:
    """Return the columns that workers give back.

    The state's, and a struct for each table, of which one is there.
    """
    return StructType(
        [
            StructField("table", StringType()),
            StructField("open", BooleanType()),
            *(StructField(field.name, field.dataType) for field in state_schema(keys)),
            *(StructField(table, _made(schema)) for table, schema in tables.items()),
        ]
    )


def _made(schema: StructType) -> StructType:
    """Return the columns that a folder makes: not those by which tables are stored, nor names."""
    return StructType(
        [
            StructField(field.name, field.dataType)
            for field in schema
            if field.name not in ("protocol", "date", CONVERSATION_NAME.name)
        ]
    )


def _fold_rows(rows: Iterator[Word], keys: Sequence[str], make: Make) -> Iterator[dict[str, Any]]:
    folder: Folder | None = None
    key: tuple[Any, ...] | None = None
    last: Word = {}
    for row in rows:
        this = tuple(row[name] for name in keys)
        if folder is None or this != key:
            if folder is not None:
                yield from _end(folder, last, keys)
            key, folder = this, make(this, row["known"])
        if row["known"] is None:
            yield from ({"table": table, "open": False, table: found} for table, found in folder.take(row))
        last = row
    if folder is not None:
        yield from _end(folder, last, keys)


def _end(folder: Folder, last: Word, keys: Sequence[str]) -> Iterator[dict[str, Any]]:
    tap_mono = last["mono"] if last["tap_mono"] is None else last["tap_mono"]
    done, still, known = folder.rest(tap_mono)
    yield from ({"table": table, "open": False, table: found} for table, found in done)
    yield from ({"table": table, "open": True, table: found} for table, found in still)
    if known is not None:
        place = {name: last[name] for name in (*keys, "seq", "mono")}
        yield {"table": "state", "open": True, "known": known, **place}


def _in_batches(rows: Iterator[dict[str, Any]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    waiting: list[dict[str, Any]] = []
    for row in rows:
        waiting.append(row)
        if len(waiting) == ROWS:
            yield pa.RecordBatch.from_pylist(waiting, schema)
            waiting = []
    if waiting:
        yield pa.RecordBatch.from_pylist(waiting, schema)
