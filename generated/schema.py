# Written by specwire from generator/support/schema.py. Do not edit; change that file and run `make generate`.
"""What the Spark schemas of all packages share; the twin of ``specwire.generated.columns``."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

PAIRS = ArrayType(StructType([StructField("name", StringType()), StructField("value", StringType())]))
"""A dictionary: pairs in wire order, repeated names included."""

BINARY_PAIRS = ArrayType(StructType([StructField("name", StringType()), StructField("value", BinaryType())]))
"""A dictionary whose values are octets."""

ERROR = StructType(
    [
        StructField("message", StringType()),
        StructField("field", StringType()),
        StructField("frame", IntegerType()),
        StructField("offset", LongType()),
        StructField("kind", StringType()),
        StructField("text", StringType()),
    ]
)

COMMON = (
    StructField(
        "_message", StringType(), True, {"comment": "Class of the message; null where it does not decode."}
    ),
    StructField("_error", ERROR, True, {"comment": "Why the message does not decode; null where it does."}),
    StructField(
        "_frames",
        ArrayType(BinaryType()),
        True,
        {"comment": "The raw frames of a message that does not decode."},
    ),
)
"""The columns that every protocol has."""
