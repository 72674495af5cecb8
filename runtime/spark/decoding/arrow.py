"""Arrow back end: decodes in Python workers, in batches of some thousand messages.

`ARROW` calls the generated package's `columns.decode`. `PYTHON` calls `codec.decode` for each
message; it is the reference for tests of the other back ends.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type

from specwire.generated.columns.arrow import numbers_in
from specwire.generated.columns.rows import decode_rows
from specwire.runtime.spark.decoding.shape import struct_type
from specwire.runtime.spark.protocols import load_codec, load_columns, load_layout
from specwire.runtime.spark.session.shipping import ship_packages

Arrays: TypeAlias = "pa.Array[Any]"
DecodeArrays = Callable[[str, Arrays, Arrays], pa.RecordBatch]
"""Function from a protocol, frames and senders to the columns of ``columns.SCHEMA``."""


@dataclass(frozen=True)
class ArrowBackend:
    """Back end that decodes with a function of Arrow arrays.

    Python workers import it on first use.
    """

    decode_arrays: DecodeArrays

    def available(self, spark: SparkSession, protocol: str) -> str | None:
        """Ship the package to Python workers; see `Backend.available`."""
        ship_packages(spark, protocol)
        return None

    def column(self, value: Column, protocol: str, sender: Column | None) -> Column:
        """See `specwire.runtime.spark.decoding.backends.Backend`."""
        senders = [sender] if sender is not None and load_layout(protocol).takes_sender else []
        found: Column = self.function(protocol)(value, *senders)
        return found

    def function(self, protocol: str) -> Any:
        """Return the Spark function of a BINARY or ARRAY<BINARY> value and an optional sender."""
        type = struct_type(protocol)
        arrow_type: Any = to_arrow_type(type, timezone="UTC")
        decode_arrays = self.decode_arrays

        # Spark requires the annotation `pa.Array`, without parameters and without None.
        def decode_frames(value: pa.Array, sender: pa.Array = None) -> pa.Array:  # type: ignore[type-arg,assignment]
            frames = as_lists(value)
            senders = pa.nulls(len(frames), pa.string()) if sender is None else sender
            columns = [*decode_arrays(protocol, frames, senders).columns, count_octets(frames)]
            # The casts copy nothing: they add the metadata of fields that Spark expects.
            cast = [column.cast(field.type) for column, field in zip(columns, arrow_type, strict=True)]
            return pa.StructArray.from_arrays(cast, fields=list(arrow_type), mask=value.is_null())

        make: Callable[..., Any] = arrow_udf  # Its stub does not support structs.
        # Otherwise Spark decodes again for each filter that it pushes down.
        return make(decode_frames, type).asNondeterministic()


def _decode_columns(protocol: str, frames: Arrays, senders: Arrays) -> pa.RecordBatch:
    return load_columns(protocol).decode(frames, senders)


def _decode_rows(protocol: str, frames: Arrays, senders: Arrays) -> pa.RecordBatch:
    columns, codec = load_columns(protocol), load_codec(protocol)
    known: list[str | None] | None = None
    if "sender" in inspect.signature(codec.decode).parameters:
        known = [sender or None for sender in senders.to_pylist()]
    return decode_rows(frames.to_pylist(), columns.SCHEMA, codec.decode, columns.ATTRIBUTES, known)


ARROW = ArrowBackend(_decode_columns)
PYTHON = ArrowBackend(_decode_rows)


def as_lists(values: Arrays) -> Arrays:
    """Return each value as a list of frames: lists unchanged, a single frame as a list of one."""
    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        return values
    offsets: Any = pa.array(np.arange(len(values) + 1, dtype=np.int32))
    frames: Any = values
    return pa.ListArray.from_arrays(offsets, frames, mask=values.is_null())


def count_octets(frames: Arrays) -> Arrays:
    """Return the number of octets of all frames of each message; null frames have none."""
    lists: Any = frames
    values = lists.values
    if not len(values):
        return pa.array(np.zeros(len(frames), np.int64))
    octets = np.int64 if pa.types.is_large_binary(values.type) else np.int32
    ends = numbers_in(values.buffers()[1], octets)[values.offset :]
    found: Arrays = pa.array(np.diff(ends[lists.offsets.to_numpy()]).astype(np.int64))
    return found
