"""What the answer tables have in common: how a column is stated, and the columns that say where and when.

Every table begins with `protocol` and `date`, by which it is stored. Clocks: `ts` is the wall clock of the
tap's machine and may go back; `mono` is the tap's own clock, from which every duration is taken; `seq` orders.
"""

from __future__ import annotations

from pyspark.sql.types import (
    DataType,
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    TimestampType,
)

TEXT, LONG, DOUBLE, TIMESTAMP = StringType(), LongType(), DoubleType(), TimestampType()


def column(name: str, kind: DataType, comment: str, unit: str = "") -> StructField:
    """Return a column whose comment and unit Spark keeps beside it."""
    return StructField(name, kind, metadata={"comment": comment} | ({"unit": unit} if unit else {}))


STORED = (
    column("protocol", TEXT, "name of the generated package"),
    column("date", DateType(), "day of ts, UTC"),
)
"""What every table begins with."""

TAP = column("tap", TEXT, "id of the tap that saw it")

CONVERSATION_NAME = column(
    "conversation_name",
    TEXT,
    "name of the tap and of the peer, for people; several conversations may have one",
)

PLACE = (
    *STORED,
    TAP,
    column("conversation", TEXT, "one connection, as the tap names it"),
    CONVERSATION_NAME,
    column("peer", TEXT, "the identity by which the tap knows the connection"),
)
"""Where something happened."""

MOMENT = (
    column("ts", TIMESTAMP, "when it began, wall clock of the tap, UTC"),
    column("seq", LONG, "the tap's count of the message that began it"),
    column("mono", LONG, "when it began, the tap's monotonic clock", "nanoseconds"),
)
"""When it happened."""


def micros(name: str, comment: str) -> StructField:
    """Return a column for a duration on the tap's monotonic clock, in whole microseconds."""
    return column(name, LONG, comment, "microseconds")
