"""The Arrow backend: the generated package's `columns.decode`, which takes some thousand messages at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type

from specwire.runtime.spark.decoding.noted import FRAMES, noted_name
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

    def decode_arrays(frames: Arrays, senders: Arrays) -> pa.RecordBatch:
        return load_columns(protocol).decode(frames, senders)

    return decode_by(decode_arrays, frame, protocol)


def decode_by(decode_arrays: DecodeArrays, frame: DataFrame, protocol: str) -> DataFrame:
    """Return `frame` decoded by a function in a Python worker, which is sent frames and senders and nothing else."""
    decoded = load_schemas(protocol).DECODED
    marked: Any = to_arrow_type(decoded, timezone="UTC")

    # Spark takes what is annotated as `pa.Array` and nothing else for a function of arrays.
    def decode_struct(frames: pa.Array, senders: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        batch = decode_arrays(frames, senders)
        # The cast moves no octet: it says what each field means in the way that Spark reads it.
        return pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)).cast(marked)

    make: Callable[..., Any] = arrow_udf  # its stub knows no structs
    # A filter above would be pushed below, with a decoding of its own, if Spark might repeat this one.
    decode_frames: Callable[..., Column] = make(decode_struct, decoded).asNondeterministic()
    others = [F.col(name) for name in frame.columns if name != FRAMES]
    found = decode_frames(F.col(FRAMES), F.col(noted_name(protocol, "sender"))).alias(_DECODED)
    return frame.select(*others, found).select(*others, f"{_DECODED}.*")
