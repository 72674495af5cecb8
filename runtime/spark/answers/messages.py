"""Messages of several typed tables as one narrow table, so that answers do not carry payloads.

Every expression is SQL over the columns of a typed table. The tap's columns have their plain names,
even if a field of the message has that name and the table calls the tap's column `_name`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from specwire.runtime.spark.answers.particulars import name_conversation
from specwire.runtime.spark.answers.schemas.shared import CONVERSATION_NAME
from specwire.runtime.spark.answers.step import OPEN, Frames
from specwire.runtime.spark.decoding.shape import NOTED
from specwire.runtime.spark.decoding.tables import ERRORS
from specwire.runtime.spark.protocols import edition_packages, load_schemas

MOMENT = ("tap", "conversation", "peer", "sender", "ts", "seq", "mono", "octets")
"""The tap's columns that most answers need."""


def message_tables(protocol: str) -> tuple[str, ...]:
    """Return the names of the typed tables of all editions of a protocol, `_errors` last."""
    names = (name for package in edition_packages(protocol) for name in load_schemas(package).SCHEMAS)
    return (*dict.fromkeys(names), ERRORS)


def take(
    typed: Frames,
    protocol: str,
    message: str,
    fields: Mapping[str, str] | None = None,
    where: str | None = None,
    noted: Sequence[str] = MOMENT,
) -> DataFrame:
    """Return the noted columns of one typed table, `message`, and `fields`.

    `fields` maps the name of each result column to its SQL.

    If a foreign capture has no `mono`, it is 0: such messages are all of one moment of their
    tap.
    """
    names = noted_names(typed[message].columns)
    rows = typed[message] if where is None else typed[message].where(where)
    return rows.select(
        *(_noted(names[name], name) for name in noted),
        F.lit(message).alias("message"),
        *(F.expr(sql).alias(name) for name, sql in (fields or {}).items()),
    )


def _noted(stored: str, name: str) -> Column:
    found = F.col(stored)
    return (F.coalesce(found, F.lit(0)) if name == "mono" else found).alias(name)


def noted_names(columns: Collection[str]) -> dict[str, str]:
    """Return the names of the columns of `NOTED` in a typed table with these columns."""
    return {name: f"_{name}" if f"_{name}" in columns else name for name in NOTED.fieldNames()}


def together(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all frames, of which there is at least one.

    A column that one lacks is null there.
    """
    return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), frames)


def latest(rows: DataFrame) -> DataFrame:
    """Return for each tap the greatest `mono` of these rows, as `tap_mono`."""
    return rows.groupBy("tap").agg(F.max("mono").alias("tap_mono"))


def shape(rows: DataFrame, protocol: str, schema: StructType, *, is_open: Column | None = None) -> DataFrame:
    """Return the columns of an answer table in its order, types and with its comments.

    `protocol` and `conversation_name` are filled in, and `date` from `ts` if the rows have none.
    `is_open` becomes the column `OPEN` of a step's rows.
    """
    made: dict[str, Column] = {"protocol": F.lit(protocol)}
    if "date" not in rows.columns:
        made["date"] = F.to_date("ts")
    if CONVERSATION_NAME in schema.fields:
        made[CONVERSATION_NAME.name] = name_conversation(protocol)
    return rows.select(
        *(
            made.get(field.name, F.col(field.name))
            .cast(field.dataType)
            .alias(field.name, metadata=field.metadata)
            for field in schema
        ),
        *([] if is_open is None else [is_open.alias(OPEN)]),
    )


def kept(state: Frames | None, name: str) -> list[DataFrame]:
    """Return the state table of that name in a list, which is empty if there is none yet."""
    return [state[name]] if state and name in state else []
