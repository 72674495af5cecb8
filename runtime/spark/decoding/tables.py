"""Typed tables: one for each message type, and one of the rows that did not decode.

A table has the columns that the tap noted, then the message's fields as the generated `schema.SCHEMAS` has
them, metadata included. A type that never occurred gets its table too, without rows, because readers rely on
the tables being there. Rows that did not decode are in `ERRORS` with the finding and their raw frames.

Where a field has the name of a noted column (a message may well have a ``sender``), the noted column is the
one that gets a leading ``_``.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from specwire.runtime.spark.decoding.decode import name_noted
from specwire.runtime.spark.protocols import load_schemas

ERRORS = "_errors"


def tables(decoded: DataFrame, protocol: str) -> dict[str, DataFrame]:
    """Return the typed tables by message class, in the specification's order, and `ERRORS` last.

    `decoded` is what `decode` returned; it is read once for each table, so write or persist it first.
    """
    schemas = load_schemas(protocol).SCHEMAS
    typed = {name: message_table(decoded, protocol, name) for name in schemas}
    return {**typed, ERRORS: error_table(decoded, protocol)}


def message_table(decoded: DataFrame, protocol: str, message: str) -> DataFrame:
    """Return the messages of one type, their fields as columns."""
    fields = load_schemas(protocol).SCHEMAS[message]
    rows = decoded.where(F.col("_message") == message)
    noted = noted_columns(protocol, fields.fieldNames())
    return rows.select(*noted, *(_field(message, field) for field in fields))


def error_table(decoded: DataFrame, protocol: str) -> DataFrame:
    """Return the rows that did not decode: where, what, and the frames as they came."""
    found = load_schemas(protocol).DECODED["_error"].dataType
    assert isinstance(found, StructType)
    noted = noted_columns(protocol, found.fieldNames())
    findings = (_field("_error", field) for field in found)
    return decoded.where("_error is not null").select(*noted, *findings, F.col("_frames").alias("frames"))


def noted_columns(protocol: str, fields: Sequence[str] = ()) -> list[Column]:
    """Return the noted columns of decoded rows, under the names they have beside `fields`."""
    stored = name_noted(load_schemas(protocol).DECODED.fieldNames())
    shown = name_noted(fields)
    return [
        F.col(source.name).alias(target.name, metadata=source.metadata)
        for source, target in zip(stored, shown, strict=True)
    ]


def _field(struct: str, field: StructField) -> Column:
    return F.col(struct)[field.name].alias(field.name, metadata=field.metadata)
