"""Encoding of messages on Spark: the inverse of `decode`, with the package's `columns.encode`.

A row is encoded from its message struct that is not null, or from the raw frames if it did not
decode. So a capture is restored octet for octet, faults included. The columns of messages are sent
to Python workers, which return frames. The columns of the capture stay in Java and get back the
names that they have in a capture.

Columns are sent without null lists (`wire`), at any depth. If batches are bounded in octets
(``spark.sql.execution.arrow.maxBytesPerBatch``), Spark computes the size of a batch after each row,
and for a list column it then visits all rows since the last list that is not null: 50,000 rows of
other messages take minutes. So a list is sent as a struct of ``_there`` and ``_items``, and a
struct with its own ``_there``. Names of fields never begin with ``_``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType, StructField, StructType

from specwire.generated.errors import EncodeError
from specwire.runtime.spark.decoding.decode import name_message
from specwire.runtime.spark.decoding.options import CAPTURE, ENVELOPE, FRAMES, Mode, name_noted, read_options
from specwire.runtime.spark.decoding.tables import stated_protocol
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_columns, load_schemas
from specwire.runtime.spark.session.executors import ship_packages

Arrays: TypeAlias = "pa.Array[Any]"
EncodeBatch = Callable[[pa.RecordBatch], Arrays]

ENCODED = StructType([StructField("frames", ArrayType(BinaryType())), StructField("error", StringType())])
_FRAMES: Any = pa.list_(pa.binary())
_compute: Any = pc


def encode(
    frame: DataFrame, protocol: str | None = None, *, message: str | None = None, mode: str = "FAILFAST"
) -> DataFrame:
    """Encode the messages in `frame`; return the columns of a capture, with `frames` last.

    Args:
        frame: rows as `decode` returns them, or with `message` a table of that message as `tables`
            returns it. Columns of messages that do not occur may be missing, and so may the tap's
            columns; other columns are dropped.
        protocol: the package, if the rows do not name it in their metadata.
        message: the class of all rows.
        mode: treatment of a row that cannot be encoded: FAILFAST fails the query, and names the
            row, the message and the field; PERMISSIVE keeps the row without frames, with that
            sentence in ``_error``; DROPMALFORMED drops it.

    Raises:
        InputError: an argument is unknown, or `frame` has no column of a message.
    """
    protocol = protocol or stated_protocol(frame)
    checked = read_options({"mode": mode})
    messages, noted = _table(frame, protocol, message) if message else _decoded(frame, protocol)
    ship_packages(frame.sparkSession, protocol)
    rows = frame.select(*noted, messages.alias("_messages"))
    sent = rows.schema["_messages"].dataType
    encoded = encode_decoded(wire(F.col("_messages"), sent), sent, protocol).alias("_encoded")
    return _apply_mode(rows.select(*rows.columns[:-1], encoded), checked.mode)


def encode_decoded(sent: Column, type: DataType, protocol: str) -> Column:
    """Encode structs of decoded columns, in the form of `wire`, to `ENCODED` in Python workers."""

    def encode_rows(rows: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        return encode_array(unwire(rows, type), load_columns(protocol).encode)

    return _function(encode_rows)(sent)


def encode_message(data: Column, message: str, protocol: str) -> Column:
    """Encode structs of the fields of `message` to `ENCODED`; null for a null struct."""

    def encode_rows(rows: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        lists: Any = rows
        lengths = lists.value_lengths().to_numpy()
        encoded: Any = encode_array(lists.flatten(), load_columns(protocol).encode, message)
        found: Arrays = encoded.take(pa.array(np.cumsum(lengths) - 1, mask=lengths == 0))
        return found

    # A null struct is sent as an empty list, because it would have null lists.
    return _function(encode_rows)(F.array_compact(F.array(data)))


def _function(encode_rows: Callable[..., Any]) -> Callable[[Column], Column]:
    make: Callable[..., Any] = arrow_udf  # Its stub does not support structs.
    found: Callable[[Column], Column] = make(encode_rows, ENCODED).asNondeterministic()
    return found


def encode_array(rows: Arrays, encode_batch: EncodeBatch, message: str | None = None) -> Arrays:
    """Return frames and errors of structs of decoded columns, or of the fields of `message`."""
    structs: Any = rows if message is None else pa.StructArray.from_arrays([rows], names=[message])
    batch = pa.RecordBatch.from_struct_array(structs)
    frames, errors = zip(*_encode_parts(batch, encode_batch), strict=True)
    arrays = [pa.concat_arrays(frames), pa.concat_arrays(errors)]
    return pa.StructArray.from_arrays(arrays, names=ENCODED.fieldNames())


def _encode_parts(rows: pa.RecordBatch, encode_batch: EncodeBatch) -> Iterator[tuple[Arrays, Arrays]]:
    """Encode rows together; on an error, split them in halves until the faulty row is alone."""
    try:
        yield encode_batch(rows), pa.nulls(rows.num_rows, pa.string())
    except EncodeError as error:
        if rows.num_rows == 1:
            reason = str(error).removeprefix(f"row {error.row}: ")
            yield pa.array([None], _FRAMES), pa.array([reason], pa.string())
            return
        half = rows.num_rows // 2
        yield from _encode_parts(rows.slice(0, half), encode_batch)
        yield from _encode_parts(rows.slice(half), encode_batch)


def _decoded(frame: DataFrame, protocol: str) -> tuple[Column, list[Column]]:
    """Return the decoded columns of rows as one struct, and the tap's columns."""
    schemas = load_schemas(protocol)
    names = [name for name in schemas.DECODED.fieldNames() if name in frame.columns]
    if not {FRAMES, *schemas.SCHEMAS} & set(names):
        raise InputError(
            f"the DataFrame has no column of a message of {protocol}: encode() takes rows of decode()"
        )
    return F.struct(*names), _renamed(frame, schemas.DECODED)


def _table(frame: DataFrame, protocol: str, message: str) -> tuple[Column, list[Column]]:
    """Return the fields of a message's table as one struct, and the tap's columns."""
    schemas = load_schemas(protocol)
    if message not in schemas.SCHEMAS:
        raise InputError(f"{protocol} has no message {message!r}; it has {', '.join(schemas.SCHEMAS)}")
    fields = [name for name in schemas.SCHEMAS[message].fieldNames() if name in frame.columns]
    if not fields:
        raise InputError(f"the DataFrame has no column of {message}: encode() takes a table of tables()")
    return F.struct(F.struct(*fields).alias(message)), _renamed(frame, schemas.TABLES[message])


def _renamed(frame: DataFrame, beside: StructType) -> list[Column]:
    """Return those of the tap's columns that exist, under their names in a capture."""
    pairs = zip(name_noted(beside.fieldNames()), ENVELOPE, strict=False)
    return [
        F.col(there.name).alias(field.name, metadata=field.metadata)
        for there, field in pairs
        if there.name in frame.columns
    ]


def _apply_mode(rows: DataFrame, mode: Mode) -> DataFrame:
    """Return the columns of a capture; keep, drop or fail rows without frames by mode."""
    noted = [name for name in rows.columns if name != "_encoded"]
    error = F.col("_encoded.error")
    columns: list[Column | str] = [
        *noted,
        F.col("_encoded.frames").alias("frames", metadata=CAPTURE["frames"].metadata),
    ]
    if mode is Mode.PERMISSIVE:
        meaning = {"comment": "Why the row has no frames; null where it has."}
        columns.append(error.alias("_error", metadata=meaning))
    elif mode is Mode.DROPMALFORMED:
        rows = rows.where(error.isNull())
    else:
        text = F.concat_ws(": ", name_message(noted, "seq", "tap"), error)
        failure = F.raise_error(text).cast("boolean")
        rows = rows.where(F.when(error.isNotNull(), failure).otherwise(True))
    return rows.select(*columns)


def wire(column: Column, type: DataType) -> Column:
    """Return a column of `type` in the form without null lists."""
    match type:
        case ArrayType(elementType=element):
            items = F.transform(column, lambda item: wire(item, element)) if _has_lists(element) else column
            return F.struct(column.isNotNull().alias("_there"), F.coalesce(items, F.array()).alias("_items"))
        case StructType(fields=fields):
            inside = [wire(column[field.name], field.dataType).alias(field.name) for field in fields]
            return F.struct(column.isNotNull().alias("_there"), *inside)
    return column


def unwire(array: Arrays, type: DataType) -> Arrays:
    """Return an array of `type` from the form that `wire` returns: the inverse of `wire`."""
    match type:
        case ArrayType(elementType=element):
            there, items = _compute.struct_field(array, "_there"), _compute.struct_field(array, "_items")
            ends = np.cumsum(_compute.list_value_length(items).to_numpy(), dtype=np.int32)
            offsets: Any = pa.array(np.concatenate([np.zeros(1, np.int32), ends]))
            values = _compute.list_flatten(items)
            values = unwire(values, element) if _has_lists(element) else values
            return pa.ListArray.from_arrays(offsets, values, mask=_compute.invert(there))
        case StructType(fields=fields):
            there = _compute.struct_field(array, "_there")
            inside = [unwire(_compute.struct_field(array, f.name), f.dataType) for f in fields]
            mask = cast(Any, _compute.invert(there))
            return pa.StructArray.from_arrays(inside, names=[field.name for field in fields], mask=mask)
    return array


def _has_lists(type: DataType) -> bool:
    match type:
        case ArrayType():
            return True
        case StructType(fields=fields):
            return any(_has_lists(field.dataType) for field in fields)
    return False
