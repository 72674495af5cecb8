"""Values in hexadecimal, as the octets that they are on the wire: for who looks at messages side by side with a dump."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    StringType,
    StructField,
    StructType,
)


def hex_field(field: StructField, name: str) -> StructField:
    """Return the column of a field's octets, under a name."""
    return StructField(
        name, _hex_type(field.dataType), True, {"comment": f"Octets of {field.name}, hexadecimal."}
    )


def hex_of(column: Column, field: StructField) -> Column:
    """Return the octets of a field's values in lower-case hexadecimal; lists and structs keep their form.

    Integers have all octets of their size, texts those of UTF-8; lengths, counts and the NUL behind a text are no
    part of a value.
    """
    return _hex(column, field.dataType, int(field.metadata.get("octets", "0")))


def _hex(column: Column, type: DataType, octets: int) -> Column:
    match type:
        case ArrayType(elementType=element):
            return F.transform(column, lambda item: _hex(item, element, 0))
        case StructType(fields=fields):
            inside = [hex_of(column[field.name], field).alias(field.name) for field in fields]
            return F.when(column.isNotNull(), F.struct(*inside))
        case StringType() | BinaryType():
            return F.lower(F.hex(column))
        case BooleanType():
            return F.lit(None).cast("string")  # a struct without fields: no octet is its own
        case DecimalType():
            return _padded(F.conv(column.cast("string"), 10, 16), 8)
    return _padded(F.hex(column), octets)


def _padded(digits: Column, octets: int) -> Column:
    """The digits of a number, as many as its octets take, or at least a whole number of octets."""
    even = F.length(digits) + F.length(digits) % 2
    return F.lower(F.lpad(digits, 2 * octets if octets else even, "0"))


def _hex_type(type: DataType) -> DataType:
    match type:
        case ArrayType(elementType=element):
            return ArrayType(_hex_type(element))
        case StructType(fields=fields):
            return StructType([StructField(field.name, _hex_type(field.dataType)) for field in fields])
    return StringType()
