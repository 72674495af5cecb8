"""The SQL backend: the expressions of the package's generated ``sql`` module, which need neither a jar nor Python.

They cover messages whose fields stand at fixed places. Where these are all messages of a protocol, the module has the
errors of the other rows too, and no Python is asked: the error is an expression that Spark evaluates for bad rows only,
in a step of its own above the decoding, because it is too long to be compiled with it.

Of other protocols what is left (messages with lists, and everything that does not decode) goes to the package's
`columns.decode` in a Python worker; of a row that was decoded nothing does. Every row waits for the worker's answer in
a queue, which costs as much as the expressions. So little waits there (the structs, not what they are made of), and
what goes to the worker and comes back is NULL for rows that were decoded: a text, because Spark weighs a batch after
each row, and to weigh NULL in a column of lists takes it as long as there are such rows; and a list of one struct,
because Arrow spends as much on each field of a struct that is NULL as on one that is there, and on a list that is NULL
four octets.

The union of two queries, one for each kind of row, reads the capture twice and was measured to be slower.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, StructType

from specwire.generated.expressions import Expressions
from specwire.runtime.spark.decoding.noted import FRAMES
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_columns, load_expressions, load_schemas

_MESSAGE, _LEFT = "_sql_message", "_sql_left"


def available(spark: SparkSession, protocol: str) -> str | None:
    """See `specwire.runtime.spark.decoding.backends.Backend`."""
    if load_expressions(protocol) is None:
        return (
            f"no message of {protocol} is covered by SQL expressions: none is told by octets at fixed places"
        )
    return None


def decode(frame: DataFrame, protocol: str) -> DataFrame:
    """See `specwire.runtime.spark.decoding.backends.Backend`; InputError where it cannot be used."""
    expressions = load_expressions(protocol)
    if expressions is None:
        raise InputError(f"the backend 'sql' cannot decode {protocol}: it has no SQL expressions")
    decoded = load_schemas(protocol).DECODED
    others = [F.col(name) for name in frame.columns if name != FRAMES]
    rows = frame
    for level in expressions.levels:
        rows = rows.select("*", *(F.expr(text).alias(name) for name, text in level.items()))
    rows = rows.select("*", F.expr(expressions.message).alias(_MESSAGE))
    structs = [_struct(name, text).alias(name) for name, text in expressions.structs.items()]
    frames = F.expr(f"if({_MESSAGE} IS NULL, {FRAMES}, NULL)").alias(FRAMES)
    # These are worked out below the function, and not above it, because it uses what is used again: the frames.
    rows = rows.select(*others, _MESSAGE, frames, *structs)
    if expressions.error:
        error = F.expr(f"if({_MESSAGE} IS NULL, {expressions.error}, NULL)")
        told = {"_message": F.col(_MESSAGE), "_error": error}
        return rows.select(
            *others, *(told.get(field.name, F.col(field.name)).alias(field.name) for field in decoded)
        )
    left = F.expr(f"if({_MESSAGE} IS NULL, to_json(named_struct('frames', {FRAMES})), NULL)")
    rows = rows.select("*", _decoder(protocol, decoded)(left).alias(_LEFT))
    return rows.select(*others, *(_column(field.name, expressions) for field in decoded))


def _struct(name: str, text: str) -> Column:
    return F.when(F.col(_MESSAGE) == name, F.expr(text))


def _column(name: str, expressions: Expressions) -> Column:
    """The decoded column of a name: by SQL where the row was decoded by it."""
    left = F.get(_LEFT, F.lit(0))
    if name == FRAMES:
        return F.when(left["_error"].isNotNull(), F.col(FRAMES)).alias(name)
    if name == "_message":
        return F.coalesce(_MESSAGE, left[name]).alias(name)
    return (F.coalesce(name, left[name]) if name in expressions.structs else left[name]).alias(name)


def _decoder(protocol: str, decoded: StructType) -> Callable[..., Column]:
    """Return the function that decodes what SQL has left: a list of the one row, which is NULL for NULL."""
    returned = ArrayType(StructType([field for field in decoded if field.name != FRAMES]))
    marked: Any = to_arrow_type(returned, timezone="UTC")

    # Spark takes what is annotated as `pa.Array` and nothing else for a function of arrays.
    def decode_left(texts: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        if texts.null_count == len(texts):
            nothing: pa.Array[Any] = pa.nulls(len(texts), marked)
            return nothing
        frames = [_frames(text) for text in texts.to_pylist() if text is not None]
        nobody = pa.nulls(len(frames), pa.string())  # the octets tell these messages apart
        batch = load_columns(protocol).decode(pa.array(frames, pa.list_(pa.binary())), nobody)
        columns = [batch.column(field.name) for field in marked.value_type]
        found: Any = pa.StructArray.from_arrays(columns, names=[field.name for field in marked.value_type])
        counts = pc.cumulative_sum(texts.is_valid().cast(pa.int32()))
        starts = pa.concat_arrays([pa.array([0], pa.int32()), counts])
        lists: Any = pa.ListArray
        decoded_rows: pa.Array[Any] = lists.from_arrays(
            starts, found.cast(marked.value_type), type=marked, mask=texts.is_null()
        )
        return decoded_rows

    make: Callable[..., Any] = arrow_udf  # its stub knows no structs
    # A filter above would be pushed below, with a decoding of its own, if Spark might repeat this one.
    made: Callable[..., Column] = make(decode_left, returned).asNondeterministic()
    return made


def _frames(text: str) -> list[bytes | None] | None:
    """The frames in a text as `to_json` writes them, which leaves out what is NULL."""
    frames: list[str | None] | None = json.loads(text).get("frames")
    if frames is None:
        return None
    return [None if frame is None else base64.b64decode(frame) for frame in frames]
