"""Decoding of frames on Spark: the second layer, with one row for each captured message.

Each row keeps the columns of the capture and those of the caller. The added columns are `_message`
(the class name), `_error` with `_frames` if the frames are not a message of the protocol, and a
struct for each message type, null in rows of other types. A back end
(`specwire.runtime.spark.decoding.backends`) decodes; modes and options are expressions in Java.

    frames --_prepare--> capture's columns, _frames --back end--> DECODED --_sift--> rows --shape--> columns asked for
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType

from specwire.runtime.spark.decoding.backends import find_backend
from specwire.runtime.spark.decoding.options import (
    Mode,
    Options,
    check_messages,
    read_options,
    resolve_dialect,
)
from specwire.runtime.spark.decoding.shape import (
    COUNT,
    FRAMES,
    INPUT_FILE,
    OCTETS,
    RECORD_FRAMES,
    RECORD_ID,
    check_columns,
    decoded_fields,
    name_noted,
    noted_name,
    quote_name,
    shape,
)
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas
from specwire.runtime.spark.reading.capture import CAPTURE, ENVELOPE

_DECODED = "_decoded"


def decode(
    frame: DataFrame, protocol: str, backend: str = "auto", mode: str = "PERMISSIVE", **options: object
) -> DataFrame:
    """Decode the column `frames` of every row as `protocol`.

    Args:
        frame: messages with a column `frames` (ARRAY<BINARY>). Columns of a capture (see
            `read_capture`) come first in the result, with a leading ``_`` where a message has the
            same name. Other columns are kept.
        protocol: the name of a package.
        backend: ``auto``, ``jvm``, ``arrow`` or ``python``; all give the same rows.
        mode: PERMISSIVE, DROPMALFORMED or FAILFAST, see
            `specwire.runtime.spark.decoding.options.Mode`.
        options: see `specwire.runtime.spark.decoding.options.Options`.

    Raises:
        InputError: an argument is unknown, or `frame` has no such column.
    """
    asked = read_options({"mode": mode, **options})
    protocol = resolve_dialect(protocol, asked.dialect)
    schemas = load_schemas(protocol)
    check_messages(protocol, asked.message, schemas.SCHEMAS)
    others = _other_columns(frame, protocol)
    check_columns(protocol, asked.columns, others)
    chosen = find_backend(backend, frame.sparkSession, protocol)
    rows = _prepare(frame, protocol, asked, others)
    # Null frames are a row with an error, unlike a null column of `from_specwire`.
    frames = F.coalesce(F.col(FRAMES), F.array().cast("array<binary>"))
    sender = noted_name(protocol, "sender")
    found = chosen.column(frames, protocol, F.col(sender) if sender in rows.columns else None)
    decoded = [
        F.col(_DECODED)[field.name].alias(field.name, metadata=field.metadata) for field in schemas.DECODED
    ]
    raw = schemas.DECODED.fieldNames().index(FRAMES)
    decoded[raw] = F.when(F.col(FRAMES).isNotNull(), decoded[raw]).alias(FRAMES)
    # The column is never null, and Spark must be able to infer this.
    octets = F.coalesce(F.col(_DECODED)[COUNT.name], F.lit(0).cast("long"))
    before = [F.col(quote_name(name)) for name in rows.columns if name != FRAMES]
    rows = rows.select("*", found.alias(_DECODED))
    rows = rows.select(*before, octets.alias(noted_name(protocol, OCTETS.name)), *decoded)
    return shape(_sift(rows, protocol, asked), protocol, asked, others)


def _other_columns(frame: DataFrame, protocol: str) -> list[str]:
    """Return the columns of `frame` that captures do not have.

    Raises InputError for a column that is also a decoded column.
    """
    if "frames" not in {name.casefold() for name in frame.columns}:
        raise InputError(
            "the DataFrame has no column 'frames': decode() takes ARRAY<BINARY>, or use from_specwire()"
        )
    type = frame.select("frames").schema[0].dataType
    if not (isinstance(type, ArrayType) and isinstance(type.elementType, BinaryType)):
        raise InputError(
            f"the column 'frames' is {type.simpleString()}, not array<binary>; from_specwire() takes binary too"
        )
    others = [name for name in frame.columns if name.casefold() not in CAPTURE.fieldNames()]
    taken = {name.casefold(): name for name in decoded_fields(protocol)}
    for name in others:
        if name.casefold() in taken or name == _DECODED:
            raise InputError(
                f"the DataFrame has a column {name!r}, which decoded {protocol} has too: rename or drop it"
            )
    return others


def _prepare(frame: DataFrame, protocol: str, asked: Options, others: list[str]) -> DataFrame:
    """Rename capture columns that have the name of a message; add the columns of options."""
    there = {name.casefold() for name in frame.columns}
    noted = name_noted(load_schemas(protocol).DECODED.fieldNames())
    columns: dict[str, Column] = {
        field.name: F.col(source.name)
        for field, source in zip(noted, ENVELOPE, strict=False)
        if source.name in there
    }
    columns |= {name: F.col(quote_name(name)) for name in others}
    if asked.record_id:
        if missing := [name for name in ("tap", "seq") if name not in there]:
            raise InputError(f"option 'record_id' needs the column {missing[0]!r}, which the DataFrame lacks")
        columns[RECORD_ID.name] = F.concat_ws("/", "tap", "seq")
    if asked.record_frames:
        columns[RECORD_FRAMES.name] = F.col("frames")
    if asked.input_file or asked.mode is Mode.FAILFAST:
        columns[INPUT_FILE.name] = F.input_file_name()
    return frame.select(
        *(column.alias(name) for name, column in columns.items()), F.col("frames").alias(FRAMES)
    )


def _sift(rows: DataFrame, protocol: str, asked: Options) -> DataFrame:
    """Return the rows asked for, or fail the query at a row that does not decode."""
    faulty = F.col("_error").isNotNull()
    if asked.mode is Mode.FAILFAST:
        failure = F.raise_error(_describe_fault(rows, protocol)).cast("boolean")
        rows = rows.where(F.when(faulty, failure).otherwise(True))
    elif asked.mode is Mode.DROPMALFORMED:
        rows = rows.where(~faulty)
    if asked.message:
        rows = rows.where(faulty | F.col("_message").isin(*asked.message))
    return rows


def _describe_fault(rows: DataFrame, protocol: str) -> Column:
    """Return the error text of a failed query, with file, message, tap and frame if known."""
    known = {name: noted_name(protocol, name) for name in ("seq", "tap")}
    named = {
        name: F.coalesce(F.col(column).cast("string"), F.lit("?"))
        for name, column in known.items()
        if column in rows.columns
    }
    words = {"seq": "message ", "tap": " of tap " if "seq" in named else "tap "}
    message = [part for name, column in named.items() for part in (F.lit(words[name]), column)]
    frame = F.concat(F.lit("frame "), F.col("_error.frame").cast("string"))
    place = F.concat_ws(", ", *([F.concat(*message)] if message else []), frame)
    file = F.col(INPUT_FILE.name)
    parts = (F.when(part != "", part) for part in (file, place))
    return F.concat_ws(": ", *parts, F.col("_error.text"))
