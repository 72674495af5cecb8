"""Captured frames as a DataFrame: the first of the pipeline's layers.

One truncated Parquet file fails a whole Spark query, with a page of Java. So every footer is read first, and
the first file that is not a whole segment is named in one sentence. Hidden files (a segment that is being
written) are passed over by the check and by Spark alike.
"""

from __future__ import annotations

import re
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from specwire.runtime.capture.segments import SUFFIX, find_segments


def _column(name: str, kind: DataType, comment: str) -> StructField:
    return StructField(name, kind, metadata={"comment": comment})


ENVELOPE = StructType(
    [
        _column("ts", TimestampType(), "when the tap saw the message, to the microsecond, UTC"),
        _column("mono", LongType(), "the tap's monotonic clock, nanoseconds"),
        _column("seq", LongType(), "count of the tap's messages, from 0, without gaps"),
        _column("protocol", StringType(), "name of the generated package, as the tap stated it"),
        _column("tap", StringType(), "id of the tap"),
        _column("conversation", StringType(), "one connection, as the tap names it"),
        _column("sender", StringType(), "role letter of the side that sent the message"),
        _column("peer", StringType(), "the other side's identity, as the tap saw it"),
    ]
)
"""What a tap notes about a message, beside its frames."""

CAPTURE = StructType([*ENVELOPE, _column("frames", ArrayType(BinaryType()), "the message, frame by frame")])


def read_capture(spark: SparkSession, folder: Path) -> DataFrame:
    """Return the messages of a capture folder; CaptureError where it is missing, empty, damaged or foreign."""
    find_segments(folder)
    return read_parquet(spark, folder, CAPTURE)


def read_parquet(spark: SparkSession, folder: Path, schema: StructType | None = None) -> DataFrame:
    """Return the Parquet files of a local folder, whose name may hold any character."""
    reader = spark.read if schema is None else spark.read.schema(schema)
    return reader.option("pathGlobFilter", f"*{SUFFIX}").parquet(_literal_path(folder))


def _literal_path(folder: Path) -> str:
    """Return the path so that Hadoop reads no pattern into it."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", str(folder.resolve()))
