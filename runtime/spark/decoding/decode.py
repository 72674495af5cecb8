"""Frames to messages on Spark: the second layer, one row for each captured message.

Each row keeps what the tap noted, and gets `_message` (the class name), `_error` with `_frames` where the
frames are not a message of the protocol, and one struct for each message type, null but for the row's own. What
decodes is one of the backends in `specwire.runtime.spark.decoding.backends`; everything that can be asked for
besides is made here of its result, by expressions that run in Java.

    captured --prepare--> noted, _frames --backend--> noted, DECODED --sift--> rows asked for --shape--> columns asked for
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import add

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from specwire.runtime.spark.decoding.backends import CountingBackend, find_backend
from specwire.runtime.spark.decoding.noted import FRAMES, OCTETS, name_noted, noted_name
from specwire.runtime.spark.decoding.options import (
    Mode,
    Options,
    check_messages,
    read_options,
    resolve_dialect,
)
from specwire.runtime.spark.decoding.shape import INPUT_FILE, RECORD_FRAMES, RECORD_ID, check_columns, shape
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas
from specwire.runtime.spark.reading.capture import CAPTURE, ENVELOPE

FEW_FRAMES = 4
"""As many as most messages have at most."""


def decode(
    frame: DataFrame, protocol: str, backend: str = "auto", mode: str = "PERMISSIVE", **options: object
) -> DataFrame:
    """Decode captured messages (columns as of `read_capture`), every row as `protocol`.

    Args:
        frame: the captured messages; columns that no tap writes are left out.
        protocol: the name of a generated package.
        backend: ``auto``, ``jvm``, ``arrow``, ``sql`` or ``python``; all give the same rows.
        mode: PERMISSIVE, DROPMALFORMED or FAILFAST, see `specwire.runtime.spark.decoding.options.Mode`.
        options: see `specwire.runtime.spark.decoding.options.Options`.

    Raises:
        InputError: something of this is unknown, or `frame` has no such columns.
    """
    asked = read_options({"mode": mode, **options})
    protocol = resolve_dialect(protocol, asked.dialect)
    schemas = load_schemas(protocol)
    check_messages(protocol, asked.message, schemas.SCHEMAS)
    check_columns(protocol, asked.columns)
    chosen = find_backend(backend, frame.sparkSession, protocol)
    if isinstance(chosen, CountingBackend):
        noted = _prepare(frame, protocol, asked, {})
        rows = chosen.decode_counted(noted, protocol, noted_name(protocol, OCTETS.name))
    else:
        rows = chosen.decode(_prepare(frame, protocol, asked, {OCTETS.name: _count_octets()}), protocol)
    return shape(_sift(rows, protocol, asked), protocol, asked)


def _prepare(frame: DataFrame, protocol: str, asked: Options, counted: Mapping[str, Column]) -> DataFrame:
    """Name the noted columns so that no message has their names, and add what was asked for beside them."""
    there = {name.casefold() for name in frame.columns}
    if missing := [name for name in CAPTURE.fieldNames() if name not in there]:
        raise InputError(
            f"the DataFrame has no column {missing[0]!r}; captured messages have {', '.join(CAPTURE.fieldNames())}"
        )
    noted = name_noted(load_schemas(protocol).DECODED.fieldNames())
    columns = {field.name: F.col(source.name) for field, source in zip(noted, ENVELOPE, strict=False)}
    columns |= {noted_name(protocol, name): column for name, column in counted.items()}
    if asked.record_id:
        columns[RECORD_ID.name] = F.concat_ws("/", "tap", "seq")
    if asked.record_frames:
        columns[RECORD_FRAMES.name] = F.col("frames")
    if asked.input_file or asked.mode is Mode.FAILFAST:
        columns[INPUT_FILE.name] = F.input_file_name()
    return frame.select(
        *(column.alias(name) for name, column in columns.items()), F.col("frames").alias(FRAMES)
    )


def _sift(rows: DataFrame, protocol: str, asked: Options) -> DataFrame:
    """Leave out the rows that were not asked for, or fail where one does not decode."""
    faulty = F.col("_error").isNotNull()
    if asked.mode is Mode.FAILFAST:
        rows = rows.where(
            F.when(faulty, F.raise_error(_describe_fault(protocol)).cast("boolean")).otherwise(True)
        )
    elif asked.mode is Mode.DROPMALFORMED:
        rows = rows.where(~faulty)
    if asked.message:
        rows = rows.where(faulty | F.col("_message").isin(*asked.message))
    return rows


def _describe_fault(protocol: str) -> Column:
    """The sentence that a query fails with."""
    file = F.when(F.col(INPUT_FILE.name) != "", F.concat(INPUT_FILE.name, F.lit(": "))).otherwise("")
    seq, tap = (
        F.coalesce(F.col(noted_name(protocol, name)).cast("string"), F.lit("?")) for name in ("seq", "tap")
    )
    frame = F.coalesce(F.concat(F.lit(", frame "), F.col("_error.frame").cast("string")), F.lit(""))
    return F.concat(
        file, F.lit("message "), seq, F.lit(" of tap "), tap, frame, F.lit(": "), F.col("_error.text")
    )


def _count_octets() -> Column:
    """The octets of all frames that are there: of a few frame by frame, which takes less than half as long as to join them.

    Many are joined as texts, which checks nothing and is compiled, unlike a fold.
    """
    frames, nothing = F.col("frames"), F.lit(0).cast("long")
    sizes = (F.octet_length(F.get(frames, F.lit(index))).cast("long") for index in range(FEW_FRAMES))
    few = reduce(add, (F.coalesce(size, nothing) for size in sizes))
    joined = F.octet_length(F.array_join(frames.cast("array<string>"), "")).cast("long")
    return F.when(F.size(frames) <= FEW_FRAMES, few).otherwise(F.coalesce(joined, nothing))
