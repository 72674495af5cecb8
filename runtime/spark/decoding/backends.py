"""Back ends that decode frames on Spark: Java and Arrow, and Python as the reference of tests.

All return the same rows, errors included. Arrow and Python decode in Python workers, in batches of
some thousand messages: `ARROW` calls the generated package's `columns.decode`, `PYTHON` calls
`codec.decode` for each message.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type

from specwire.generated.columns.arrow import numbers_in
from specwire.generated.columns.rows import decode_rows
from specwire.runtime.spark.decoding.options import struct_type
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_codec, load_columns, load_layout
from specwire.runtime.spark.session.executors import ship_packages

BACKENDS = ("jvm", "arrow", "python")
"""Names of the back ends, in the order in which ``auto`` tries them."""

Arrays: TypeAlias = "pa.Array[Any]"

_log = logging.getLogger(__name__)


class Backend(Protocol):
    """Decoder from a column of frames to a column of structs."""

    def available(self, spark: SparkSession, protocol: str) -> str | None:
        """Return None if the back end can decode `protocol` in this session, else the reason."""
        ...

    def column(self, value: Column, protocol: str, sender: Column | None) -> Column:
        """Return a struct of decoded columns (`struct_type`), null where `value` is null.

        Args:
            value: BINARY (a message of one frame) or ARRAY<BINARY>.
            protocol: the package.
            sender: role letter of the sender, null or empty if unknown; not used if the octets
                alone identify messages.

        Spark evaluates the column once for each row and each reference to it in a query.
        """
        ...


def find_backend(name: str, spark: SparkSession, protocol: str) -> Backend:
    """Return the back end `name`; for ``auto``, the first available one.

    The choice for ``auto`` is logged with the reason. Raises InputError if there is no such back
    end or it cannot be used here.
    """
    if name == "sql":
        raise InputError("the backend 'sql' was removed: use 'jvm' (Java) or 'arrow'")
    if name not in ("auto", *BACKENDS):
        raise InputError(f"there is no backend {name!r}; the known ones are auto, {', '.join(BACKENDS)}")
    reasons: list[str] = []
    for one in BACKENDS if name == "auto" else (name,):
        backend = load_backend(one)
        reason = backend.available(spark, protocol)
        if reason is None:
            if name == "auto":
                _log.info("%s is decoded by the backend %s", protocol, "; ".join([one, *reasons]))
            return backend
        if name != "auto":
            raise InputError(f"the backend {name!r} cannot decode {protocol} here: {reason}")
        reasons.append(f"not by {one}: {reason}")
    raise InputError(f"no backend can decode {protocol} here: {'; '.join(reasons)}")


def load_backend(name: str) -> Backend:
    """Return the back end of a known name, available or not."""
    # A client of Spark Connect may lack py4j, which the Java back end imports.
    if name == "jvm":
        from specwire.runtime.spark.decoding.jvm import JVM

        return JVM
    return ARROW if name == "arrow" else PYTHON


@dataclass(frozen=True)
class ArrowBackend:
    """Back end that decodes with a function of Arrow arrays.

    Attributes:
        decode_arrays: function of a protocol, frames and senders; returns the columns of
            ``columns.SCHEMA``.
    """

    decode_arrays: Callable[[str, Arrays, Arrays], pa.RecordBatch]

    def available(self, spark: SparkSession, protocol: str) -> str | None:
        """Ship the package to Python workers; see `Backend`."""
        ship_packages(spark, protocol)
        return None

    def column(self, value: Column, protocol: str, sender: Column | None) -> Column:
        """See `Backend`."""
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
    columns, codec, layout = load_columns(protocol), load_codec(protocol), load_layout(protocol)
    known: list[str | None] | None = None
    if "sender" in inspect.signature(codec.decode).parameters:
        known = [sender or None for sender in senders.to_pylist()]
    rows = frames.to_pylist()
    return decode_rows(rows, columns.SCHEMA, codec.decode, columns.ATTRIBUTES, layout, known)


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
