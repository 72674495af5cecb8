"""Columns that are never null, said so that Spark knows it: the query fails where one is, whatever wrote the rows.

Spark has no word for this, so the column is coalesced with a value that is never null and cannot be worked out.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType, StructType


def required(column: Column, type: DataType, name: str) -> Column:
    """Return a column that is not nullable; a row in which it is null fails the query in a sentence that names it."""
    return F.coalesce(column, _never(type, F.raise_error(F.lit(f"{name} is null, which no message has"))))


def _never(type: DataType, failure: Column) -> Column:
    """A value of a type that Spark takes for not null, and that fails where it is needed."""
    match type:
        case ArrayType(elementType=element):
            return F.array(failure.cast(element))
        case StructType(fields=fields):
            return F.struct(*(failure.cast(field.dataType).alias(field.name) for field in fields))
        case StringType():
            return F.concat_ws("", F.array(failure.cast("string")))
        case BinaryType():
            return F.concat_ws("", F.array(failure.cast("string"))).cast("binary")
    return F.size(F.array(failure.cast("int"))).cast(type)
