"""Types of answers, and the columns that answer tables share.

An answer fills one or more tables from the typed tables of a protocol. There are three kinds:

- A *continued* answer (`Continued`) is incremental. It receives new messages and the state of its
  last step, because a conversation or a request may begin in one portion of the traffic and end in
  another. A capture in portions, each in order, gives the same rows as the capture as a whole.
- *Sums* (`Sums`) are counts of messages or of closed rows. New ones are added to the stored sums.
- A *roll-up* (`RollUp`) is computed again from sums and answer tables, for the dates at which these
  changed.

Clocks in the tables: `ts` is the wall clock of the tap's machine and may go back; `mono` is the
tap's own clock, from which every duration is taken; `seq` orders the messages of a tap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from specwire.runtime.spark.answers.protocol_specifics import name_conversation

OPEN = "_open"
"""Additional column of an answer table: whether the row is open, that is, may still change."""

Frames = Mapping[str, DataFrame]
"""DataFrames by the name of their table."""


class Step(NamedTuple):
    """Result of one step of a continued answer.

    The frames are plans. Data that several of them need is in Spark's cache (`cached`): write all
    frames, then call `release`.

    Attributes:
        rows: by answer table, its closed and open rows with the column `OPEN` after its own. They
            are one frame because they come out of one pass over the messages.
        state: by state table, what the next step needs; it replaces the state that was given. A
            state table that has the name of an answer table is its open rows, and need not be
            computed where these were written.
        cached: the persisted data.
    """

    rows: Frames
    state: Frames
    cached: tuple[DataFrame, ...] = ()

    @property
    def closed(self) -> dict[str, DataFrame]:
        """By answer table, rows that never change again; they are appended to the table."""
        return {name: rows.where(~F.col(OPEN)).drop(OPEN) for name, rows in self.rows.items()}

    @property
    def open(self) -> dict[str, DataFrame]:
        """By answer table, rows that may still change; those of the next step replace them."""
        return {name: rows.where(OPEN).drop(OPEN) for name, rows in self.rows.items()}

    def whole(self) -> dict[str, DataFrame]:
        """Return the current rows of each answer table, closed and open."""
        return {name: rows.drop(OPEN) for name, rows in self.rows.items()}

    def release(self) -> None:
        """Release the cached data, after everything is written."""
        for frame in self.cached:
            frame.unpersist()


Advance = Callable[[Frames, str, Frames | None], Step]
"""Function that computes a step of a continued answer.

Its arguments are the typed tables of the new messages (`_errors` included; at least one, tables
without new messages may be missing), the protocol, and `Step.state` of the step before, None at the
beginning.
"""


class Continued(NamedTuple):
    """Answer that continues from portion to portion.

    Attributes:
        name: name of the answer, and of the folder of its state.
        reads: the typed tables that it reads, given the protocol; none if the protocol has no such
            answer.
        writes: the answer tables with their schemas; each begins with `protocol` and `date`.
        keeps: the state tables with their schemas.
        advance: computes a step.
    """

    name: str
    reads: Callable[[str], tuple[str, ...]]
    writes: Mapping[str, StructType]
    keeps: Mapping[str, StructType]
    advance: Advance


class Sums(NamedTuple):
    """Table of sums by date, to which a run adds what is new.

    Attributes:
        name: name of the table.
        applies: whether a protocol has it.
        reads: the typed tables whose messages it sums, given the protocol.
        reads_answers: the answer tables whose closed rows it sums.
        schema: its columns, beginning with `protocol` and `date`. Without a `minute`, there are
            few rows a day.
        aggregates: SQL of the columns that are not keys, such as ``sum(octets) AS octets``. The
            aggregate of aggregates must be the aggregate of the whole.
        select: returns a row for each message or answer row, with the columns of `schema` but
            `protocol`, and maybe others, given typed tables, answer tables and the protocol. Typed
            tables without new messages may be missing.
        is_answer: whether it is an answer table. Otherwise it is state, for roll-ups only.
    """

    name: str
    applies: Callable[[str], bool]
    reads: Callable[[str], tuple[str, ...]]
    reads_answers: tuple[str, ...]
    schema: StructType
    aggregates: tuple[str, ...]
    select: Callable[[Frames, Frames, str], DataFrame]
    is_answer: bool = False

    def add_up(self, rows: DataFrame, protocol: str) -> DataFrame:
        """Return the table of rows of `select` and rows of this table."""
        computed = {aggregate.rpartition(" AS ")[2] for aggregate in self.aggregates}
        keys = [name for name in self.schema.names if name not in computed and name != "protocol"]
        return as_table(group(rows, keys, *self.aggregates), protocol, self.schema)


class RollUp(NamedTuple):
    """Answer that is computed again for the dates at which its sources changed.

    If its tables have a column `minute`, the sources are rows with a time `ts`, and only minutes
    with changed rows are computed.

    Attributes:
        name: name of the answer.
        applies: whether a protocol has this answer.
        reads_sums: the sums that it reads. Rows of open answers are among them, not added up.
        reads_answers: the answer tables that it reads, whole (closed and open).
        writes: the answer tables with their schemas; each begins with `protocol` and `date`.
        compute: returns these tables, given sums, answer tables and the protocol.
    """

    name: str
    applies: Callable[[str], bool]
    reads_sums: tuple[str, ...]
    reads_answers: tuple[str, ...]
    writes: Mapping[str, StructType]
    compute: Callable[[Frames, Frames, str], dict[str, DataFrame]]


_TYPES: Mapping[str, DataType] = {
    "STRING": StringType(),
    "BIGINT": LongType(),
    "DOUBLE": DoubleType(),
    "BOOLEAN": BooleanType(),
    "BINARY": BinaryType(),
    "DATE": DateType(),
    "TIMESTAMP": TimestampType(),
    "ARRAY<STRING>": ArrayType(StringType()),
    "ARRAY<STRUCT<bin:BIGINT,count:BIGINT>>": ArrayType(
        StructType([StructField("bin", LongType()), StructField("count", LongType())])
    ),
}
_COLUMN = re.compile(r"(\w+) (\S+)(?: \((.+?)\))?: (.+)")


def table_schema(*parts: StructField | str) -> StructType:
    """Return the schema of a table.

    A text is a column, written as ``name TYPE (unit): comment``; the unit is optional.
    """
    return StructType([_parse_column(part) if isinstance(part, str) else part for part in parts])


def _parse_column(text: str) -> StructField:
    found = _COLUMN.fullmatch(text)
    assert found is not None, text
    name, kind, unit, comment = found.groups()
    return StructField(name, _TYPES[kind], metadata={"comment": comment} | ({"unit": unit} if unit else {}))


STORED = table_schema("protocol STRING: name of the generated package", "date DATE: day of ts, UTC")
"""The first columns of every answer table, by which it is stored."""

CONNECTION = table_schema(
    "tap STRING: id of the tap that saw it",
    "conversation STRING: one connection, as the tap names it",
    "peer STRING: the identity by which the tap knows the connection",
)
TAP = CONNECTION["tap"]
CONVERSATION_NAME = table_schema(
    "conversation_name STRING: name of the tap and of the peer, for people; several conversations "
    "may have one"
)["conversation_name"]
PLACE = table_schema(*STORED, TAP, CONNECTION["conversation"], CONVERSATION_NAME, CONNECTION["peer"])
"""Columns for where something happened."""

MOMENT = table_schema(
    "ts TIMESTAMP: when it began, wall clock of the tap, UTC",
    "seq BIGINT: the tap's count of the message that began it",
    "mono BIGINT (nanoseconds): when it began, the tap's monotonic clock",
)
"""Columns for when something happened."""


def as_table(
    rows: DataFrame,
    protocol: str,
    schema: StructType,
    *,
    is_open: Column | None = None,
    **computed: Column,
) -> DataFrame:
    """Return the columns of an answer table in its order, with its types and comments.

    `computed` replaces columns of `rows`. `protocol` and `conversation_name` are filled in, and
    `date` from `ts` if the rows have none. `is_open` becomes the column `OPEN`.
    """
    made: dict[str, Column] = {"protocol": F.lit(protocol)}
    if "date" not in rows.columns:
        made["date"] = F.to_date("ts")
    if CONVERSATION_NAME in schema.fields:
        made[CONVERSATION_NAME.name] = name_conversation(protocol)
    made |= computed
    selected = (
        made.get(field.name, F.col(field.name))
        .cast(field.dataType)
        .alias(field.name, metadata=field.metadata)
        for field in schema
    )
    return rows.select(*selected, *([] if is_open is None else [is_open.alias(OPEN)]))


def group(rows: DataFrame, by: Iterable[str], *aggregates: str) -> DataFrame:
    """Return SQL aggregates such as ``sum(octets) AS octets`` for each group of rows."""
    return rows.groupBy(*map(F.expr, by)).agg(*map(F.expr, aggregates))


def sums(*names: str) -> tuple[str, ...]:
    """Return the SQL of the sum of each column, under the column's name."""
    return tuple(f"sum({name}) AS {name}" for name in names)
