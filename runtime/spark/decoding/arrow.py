"""The Arrow backend: the generated package's `columns.decode`, which takes some thousand messages at a time.

What takes the time is the way to Python and back, row by row on Java's side, so as little as can be is sent
(`specwire.runtime.spark.decoding.returned`), and what the worker sees anyway is not worked out again in Java.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from specwire.runtime.spark.decoding.noted import FRAMES, noted_name
from specwire.runtime.spark.decoding.returned import OCTETS, returned_for
from specwire.runtime.spark.protocols import load_columns, load_schemas

Arrays: TypeAlias = "pa.Array[Any]"
DecodeArrays = Callable[[Arrays, Arrays], pa.RecordBatch]
"""Takes frames and senders to the columns of ``columns.SCHEMA``."""

_DECODED = "_decoded"


def available(spark: SparkSession, protocol: str) -> str | None:
    """See `specwire.runtime.spark.decoding.backends.Backend`."""
    return None


def decode(frame: DataFrame, protocol: str) -> DataFrame:
    """See `specwire.runtime.spark.decoding.backends.Backend`."""
    return decode_by(columns_of(protocol), frame, protocol, {})


def decode_counted(frame: DataFrame, protocol: str, octets: str) -> DataFrame:
    """See `specwire.runtime.spark.decoding.backends.CountingBackend`."""
    counted = F.coalesce(F.col(_DECODED)[OCTETS.name], F.lit(0).cast("long"))  # never null, and said to be so
    return decode_by(columns_of(protocol), frame, protocol, {octets: counted})


def columns_of(protocol: str) -> DecodeArrays:
    """Return the package's decoder of arrays, which a worker imports when it is called."""

    def decode_arrays(frames: Arrays, senders: Arrays) -> pa.RecordBatch:
        return load_columns(protocol).decode(frames, senders)

    return decode_arrays


def decode_by(
    decode_arrays: DecodeArrays, frame: DataFrame, protocol: str, more: Mapping[str, Column]
) -> DataFrame:
    """Return `frame` decoded by a function in a Python worker, which is sent frames and senders and nothing else.

    Columns of `more` come before the decoded ones; they are made of what the worker gave back.
    """
    returned = returned_for(load_schemas(protocol).DECODED)

    # Spark takes what is annotated as `pa.Array` and nothing else for a function of arrays.
    def decode_struct(frames: pa.Array, senders: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        return returned.pack(decode_arrays(frames, senders), frames)

    make: Callable[..., Any] = arrow_udf  # its stub knows no structs
    # A filter above would be pushed below, with a decoding of its own, if Spark might repeat this one.
    decode_frames: Callable[..., Column] = make(decode_struct, returned.type).asNondeterministic()
    others = [F.col(name) for name in frame.columns if name != FRAMES]
    found = decode_frames(F.col(FRAMES), F.col(noted_name(protocol, "sender"))).alias(_DECODED)
    added = (column.alias(name) for name, column in more.items())
    return frame.select("*", found).select(*others, *added, *returned.unpack(F.col(_DECODED)))
