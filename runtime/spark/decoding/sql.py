"""The SQL backend: the expressions of the package's generated ``sql`` module, which need neither a jar nor Python.

They cover messages whose fields stand at fixed places, and say only that a row is no such message. So what is
left (messages with lists, and everything that does not decode) goes to the package's `columns.decode` in a Python
worker; of a row that was decoded nothing does. The worker is given a text for each row, NULL for those: Spark
weighs a batch after each row, and to weigh NULL in a column of lists takes it as long as there are such rows.

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
from pyspark.sql.types import StructType

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
    rows = frame
    for level in expressions.levels:
        rows = rows.select("*", *(F.expr(text).alias(name) for name, text in level.items()))
    rows = rows.select("*", F.expr(expressions.message).alias(_MESSAGE))
    left = F.expr(f"if({_MESSAGE} IS NULL, to_json(named_struct('frames', {FRAMES})), NULL)")
    rows = rows.select("*", _decoder(protocol, decoded)(left).alias(_LEFT))
    others = [F.col(name) for name in frame.columns if name != FRAMES]
    return rows.select(*others, *(_column(field.name, expressions) for field in decoded))


def _column(name: str, expressions: Expressions) -> Column:
    """The decoded column of a name: by SQL where the row was decoded by it."""
    left = F.col(_LEFT)[name]
    if name == "_message":
        return F.coalesce(F.col(_MESSAGE), left).alias(name)
    if name not in expressions.structs:
        return left.alias(name)
    fits = F.col(_MESSAGE) == name
    return F.when(fits, F.expr(expressions.structs[name])).otherwise(left).alias(name)


def _decoder(protocol: str, decoded: StructType) -> Callable[..., Column]:
    """Return the function that decodes what SQL has left; NULL for NULL."""
    marked: Any = to_arrow_type(decoded, timezone="UTC")

    # Spark takes what is annotated as `pa.Array` and nothing else for a function of arrays.
    def decode_left(texts: pa.Array) -> pa.Array:  # type: ignore[type-arg]
        if texts.null_count == len(texts):
            nothing: pa.Array[Any] = pa.nulls(len(texts), marked)
            return nothing
        frames = [_frames(text) for text in texts.to_pylist() if text is not None]
        nobody = pa.nulls(len(frames), pa.string())  # the octets tell these messages apart
        batch = load_columns(protocol).decode(pa.array(frames, pa.list_(pa.binary())), nobody)
        found: Any = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema)).cast(marked)
        there = texts.is_valid()
        places = pc.subtract(pc.cumulative_sum(there.cast(pa.int64())), 1)
        decoded_rows: pa.Array[Any] = found.take(pc.if_else(there, places, None))
        return decoded_rows

    make: Callable[..., Any] = arrow_udf  # its stub knows no structs
    # A filter above would be pushed below, with a decoding of its own, if Spark might repeat this one.
    made: Callable[..., Column] = make(decode_left, decoded).asNondeterministic()
    return made


def _frames(text: str) -> list[bytes | None] | None:
    """The frames in a text as `to_json` writes them, which leaves out what is NULL."""
    frames: list[str | None] | None = json.loads(text).get("frames")
    if frames is None:
        return None
    return [None if frame is None else base64.b64decode(frame) for frame in frames]
