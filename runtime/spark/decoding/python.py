"""The Python backend: the generated `codec.decode`, message by message; the reference that the others are held to."""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from specwire.generated.columns.rows import decode_rows
from specwire.runtime.spark.decoding.arrow import decode_by
from specwire.runtime.spark.protocols import load_codec, load_columns


def available(spark: SparkSession, protocol: str) -> str | None:
    """See `specwire.runtime.spark.decoding.backends.Backend`."""
    return None


def decode(frame: DataFrame, protocol: str) -> DataFrame:
    """See `specwire.runtime.spark.decoding.backends.Backend`."""

    def decode_arrays(frames: pa.Array[Any], senders: pa.Array[Any]) -> pa.RecordBatch:
        columns, codec = load_columns(protocol), load_codec(protocol)
        known: list[str | None] | None = None
        if "sender" in inspect.signature(codec.decode).parameters:
            known = [sender or None for sender in senders.to_pylist()]
        return decode_rows(frames.to_pylist(), columns.SCHEMA, codec.decode, columns.ATTRIBUTES, known)

    return decode_by(decode_arrays, frame, protocol)
