"""Columns of the tables of several editions: the union, in which every file of a table is written.

A later edition of a protocol may add fields, and a later version of specwire may add columns. A run
writes files with all columns: those that the table has, then the new ones. `unite` returns these
columns, and `fit` adds those that rows lack. Runs add the new columns to earlier files
(`specwire.runtime.spark.pipeline.merging`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ByteType,
    DataType,
    DecimalType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from specwire.runtime.spark.answers.answer import CONVERSATION_NAME, OPEN
from specwire.runtime.spark.answers.protocol_specifics import name_conversation
from specwire.runtime.spark.decoding.options import NOTED
from specwire.runtime.spark.decoding.tables import quote_name
from specwire.runtime.spark.errors import InputError

EDITION = StructField(
    "edition",
    StringType(),
    metadata={"comment": "edition of the specification that the message was read with"},
)
ADDED = (CONVERSATION_NAME, EDITION)
"""Columns of the typed tables after those of the capture."""

INTEGERS: Sequence[DataType] = (ByteType(), ShortType(), IntegerType(), LongType(), DecimalType(20, 0))
"""Types of integers; each has the values of those before it."""


def add_columns(table: DataFrame, protocol: str, edition: Column) -> DataFrame:
    """Return a typed table with the columns `ADDED`; a name that a field has gets a leading ``_``."""
    noted, fields = table.columns[: len(NOTED)], table.columns[len(NOTED) :]
    named = dict(zip(NOTED.fieldNames(), noted, strict=True))
    taken = {name.casefold() for name in fields}
    names = (named[name] for name in ("tap", "peer", "conversation"))
    values = name_conversation(protocol, *names), edition
    added = (
        _may_be_null(value, table).alias(
            f"_{field.name}" if field.name in taken else field.name, metadata=field.metadata
        )
        for field, value in zip(ADDED, values, strict=True)
    )
    return table.select(*map(_column, noted), *added, *map(_column, fields))


def unite(table: str, schemas: Sequence[StructType]) -> StructType:
    """Return the columns of a table: those of all schemas, in the order in which they first occur.

    Of two types of integers the wider one counts. A column that a schema lacks is nullable.

    Raises InputError for a column of different types, or that is a field of the message in one
    schema and a column of the tap in another.
    """
    found = reduce(lambda one, other: _unite(table, one, other), schemas)
    everywhere = set.intersection(*(set(schema.fieldNames()) for schema in schemas))
    return StructType(
        [
            StructField(f.name, f.dataType, f.nullable or f.name not in everywhere, f.metadata)
            for f in found
        ]
    )  # fmt: skip


def fit(rows: DataFrame, columns: StructType) -> DataFrame:
    """Return rows in the columns of a table, which have all theirs; columns that they lack are null."""
    there = {field.name: field for field in rows.schema}

    def make(field: StructField) -> Column:
        own = there.get(field.name)
        if own is None:
            return F.lit(None).cast(field.dataType)
        column = _column(field.name)
        if own.dataType.simpleString() != field.dataType.simpleString():
            column = column.cast(field.dataType)
        return _may_be_null(column, rows) if field.nullable and not own.nullable else column

    return rows.select(*(make(field).alias(field.name, metadata=field.metadata) for field in columns))


def without_required(rows: DataFrame, stored_by: Collection[str]) -> DataFrame:
    """Return the rows of an answer table with nullable columns only.

    Spark writes a column as required if it can infer that it has no null. It can for a constant, but
    not in a later run, whose plan also reads stored rows. `stored_by` are the partition columns,
    which no file has.
    """
    required = {field.name for field in rows.schema if not field.nullable}
    if required <= {*stored_by, OPEN}:
        return rows
    return fit(rows, StructType([StructField(f.name, f.dataType, True, f.metadata) for f in rows.schema]))


def _unite(table: str, one: StructType, other: StructType) -> StructType:
    shared = {*one.fieldNames()} & {*other.fieldNames()}
    if clashing := (_taps_columns(one) ^ _taps_columns(other)) & shared:
        raise InputError(
            f"{table}: the column {min(clashing)} is a field of the message in one edition "
            "and the tap's column in another: read the editions into two folders"
        )
    theirs = {field.name: field for field in other}
    fields = [_unite_fields(table, field, theirs.pop(field.name, field)) for field in one]
    return StructType([*fields, *theirs.values()])


def _taps_columns(schema: StructType) -> set[str]:
    """Return the names that the tap's columns have beside the fields of a message."""
    names = set(schema.fieldNames())
    known = NOTED.fieldNames()
    if names & {CONVERSATION_NAME.name, f"_{CONVERSATION_NAME.name}"}:  # Not in files of version 0.1.
        known = [*known, *(field.name for field in ADDED)]
    return {f"_{name}" if f"_{name}" in names else name for name in known}


def _unite_fields(table: str, one: StructField, other: StructField) -> StructField:
    type = _common_type(one.dataType, other.dataType)
    if type is None:
        raise InputError(
            f"{table}: the column {one.name} is {one.dataType.simpleString()} in one edition and "
            f"{other.dataType.simpleString()} in another: read the editions into two folders"
        )
    return StructField(one.name, type, one.nullable or other.nullable, other.metadata)


def _common_type(one: DataType, other: DataType) -> DataType | None:
    """Return the type that holds the values of both; None if there is none."""
    if one in INTEGERS and other in INTEGERS:
        return max(one, other, key=INTEGERS.index)
    return other if one.simpleString() == other.simpleString() else None


def _column(name: str) -> Column:
    return F.col(quote_name(name))


def _may_be_null(column: Column, rows: DataFrame) -> Column:
    """Return a column as nullable: the time of a message is never null, but Spark does not know."""
    time = next(field.name for field in rows.schema if field.nullable)
    return F.when(_column(time).isNotNull(), column)
