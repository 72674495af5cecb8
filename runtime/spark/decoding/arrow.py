"""The Arrow backend: the generated package's `columns.decode`, which takes some thousand messages at a time.

What takes the time is the way to Python and back, row by row on Java's side, so as little as can be is sent
(`specwire.runtime.spark.decoding.returned`), and what the worker sees anyway is not worked out again in Java.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf

from specwire.runtime.spark.decoding.noted import FRAMES, noted_name
from specwire.runtime.spark.decoding.returned import returned_for
from specwire.runtime.spark.protocols import load_columns, load_layout, load_schemas
from specwire.runtime.spark.session.shipping import ship_packages

Arrays: TypeAlias = "pa.Array[Any]"
DecodeArrays = Callable[[Arrays, Arrays], pa.RecordBatch]
"""Takes frames and senders to the columns of ``columns.SCHEMA``."""

_DECODED = "_decoded"


def available(spark: SparkSession, protocol: str) -> str | None:
    """See `specwire.runtime.spark.decoding.backends.Backend`."""
    return None


def decode(frame: DataFrame, protocol: str) -> DataFrame:
    """See `specwire.runtime.spark.decoding.backends.Backend`."""
    return decode_by(columns_of(protocol), frame, protocol)


def decode_counted(frame: DataFrame, protocol: str, octets: str) -> DataFrame:
    """See `specwire.runtime.spark.decoding.backends.CountingBackend`."""
    return decode_by(columns_of(protocol), frame, protocol, octets)


def columns_of(protocol: str) -> DecodeArrays:
    """Return the package's decoder of arrays, which a worker imports when it is called."""

    def decode_arrays(frames: Arrays, senders: Arrays) -> pa.RecordBatch:
        return load_columns(protocol).decode(frames, senders)

    return decode_arrays


def decode_by(
    decode_arrays: DecodeArrays, frame: DataFrame, protocol: str, octets: str | None = None
) -> DataFrame:
    """Return `frame` decoded by a function in a Python worker, which is sent frames, and senders where they matter.

    The octets of all frames come before the decoded columns where a name for them is given.
    """
    ship_packages(frame.sparkSession, protocol)
    layout = load_layout(protocol)
    returned = returned_for(load_schemas(protocol).DECODED, layout)

    # Spark takes what is annotated as `pa.Array` and nothing else for a function of arrays.
    def decode_sent(frames: pa.Array, senders: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        return returned.pack(decode_arrays(frames, senders), frames)

    def decode_frames(frames: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        return decode_sent(frames, pa.nulls(len(frames), pa.string()))

    make: Callable[..., Any] = arrow_udf  # its stub knows no structs
    by_sender = layout.takes_sender
    sent = [F.col(FRAMES), *([F.col(noted_name(protocol, "sender"))] if by_sender else [])]
    # A filter above would be pushed below, with a decoding of its own, if Spark might repeat this one.
    function = make(decode_sent if by_sender else decode_frames, returned.type).asNondeterministic()
    others = [F.col(name) for name in frame.columns if name != FRAMES]
    counted = [] if octets is None else [returned.octets(F.col(_DECODED)).alias(octets)]
    decoded = frame.select("*", function(*sent).alias(_DECODED))
    return decoded.select(*others, *counted, *returned.unpack(F.col(_DECODED)))
