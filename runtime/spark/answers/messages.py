"""Messages of several typed tables as one narrow table, so that answers do not carry payloads.

Every expression is SQL over the columns of a typed table. The tap's columns have their plain names,
even if a field of the message has that name and the table calls the tap's column `_name`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.answers.answer import Frames
from specwire.runtime.spark.decoding.options import NOTED
from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.protocols import edition_packages, load_schemas

TAP_COLUMNS = ("tap", "conversation", "peer", "sender", "ts", "seq", "mono", "octets")
"""The tap's columns that most answers need."""


def message_tables(protocol: str) -> tuple[str, ...]:
    """Return the names of the typed tables of all editions of a protocol, `_errors` last."""
    names = (name for package in edition_packages(protocol) for name in load_schemas(package).SCHEMAS)
    return (*dict.fromkeys(names), ERRORS)


def present(protocol: str, messages: Iterable[str]) -> tuple[str, ...]:
    """Return those of some message classes that a protocol has."""
    there = load_schemas(protocol).SCHEMAS
    return tuple(message for message in messages if message in there)


def select(
    typed: Frames,
    protocol: str,
    message: str,
    fields: Mapping[str, str] | None = None,
    tap_columns: Sequence[str] = TAP_COLUMNS,
) -> DataFrame:
    """Return columns of the tap, `message`, and `fields` of one typed table.

    `fields` maps the name of each result column to its SQL.

    If a foreign capture has no `mono`, it is 0: such messages are all of one moment of their tap.
    """
    stored = stored_names(typed[message].columns)
    return typed[message].select(
        *(_tap_column(stored[name], name) for name in tap_columns),
        F.lit(message).alias("message"),
        *(F.expr(sql).alias(name) for name, sql in (fields or {}).items()),
    )


def _tap_column(stored: str, name: str) -> Column:
    found = F.col(stored)
    return (F.coalesce(found, F.lit(0)) if name == "mono" else found).alias(name)


def stored_names(columns: Collection[str]) -> dict[str, str]:
    """Return the names of the tap's columns in a typed table with these columns, by their plain names."""
    return {name: f"_{name}" if f"_{name}" in columns else name for name in NOTED.fieldNames()}


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all frames, at least one. A column that a frame lacks is null there."""
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)


def stored_rows(state: Frames | None, name: str) -> list[DataFrame]:
    """Return the state table of a name in a list, which is empty if there is none."""
    return [state[name]] if state and name in state else []


def latest_by_tap(rows: DataFrame) -> DataFrame:
    """Return for each tap the greatest `mono` of these rows, as `tap_mono`."""
    return rows.groupBy("tap").agg(F.max("mono").alias("tap_mono"))


def with_sql(rows: DataFrame, **columns: str) -> DataFrame:
    """Return rows with added or replaced columns, each given in SQL."""
    return rows.withColumns({name: F.expr(sql) for name, sql in columns.items()})


def in_order(*keys: str, rows: str = "") -> str:
    """Return the SQL of a window over the messages of a key, in the tap's order.

    `rows` names a range of rows, such as ``UNBOUNDED PRECEDING AND CURRENT ROW``.
    """
    frame = f" ROWS BETWEEN {rows}" if rows else ""
    return f"OVER (PARTITION BY {', '.join(keys)} ORDER BY seq{frame})"
