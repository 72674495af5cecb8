"""Decoding of frames on Spark, with one row for each message.

Each row keeps the columns of the capture and those of the caller. The added columns are `_message`
(the class name), `_error` with `_frames` if the frames are not a message of the protocol, and a
struct for each message type, null in rows of other types. A back end
(`specwire.runtime.spark.decoding.backends`) decodes; modes and options are expressions in Java.

    frames --_prepare--> capture's columns, _frames --back end--> DECODED --_filter--> --_select-->

An expression loses the metadata of its fields. So the last step restores it at every depth. It also
adds the protocol's name to `_message`, from which `tables` reads the protocol of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    StringType,
    StructField,
    StructType,
)

from specwire.runtime.spark.decoding.backends import find_backend
from specwire.runtime.spark.decoding.options import (
    CAPTURE,
    COUNT,
    ENVELOPE,
    FRAMES,
    INPUT_FILE,
    OCTETS,
    RECORD_FRAMES,
    RECORD_ID,
    Mode,
    Options,
    check_columns,
    check_messages,
    decoded_fields,
    hex_field,
    name_noted,
    noted_name,
    read_options,
    resolve_dialect,
    selected_fields,
    struct_type,
)
from specwire.runtime.spark.decoding.tables import quote_name
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas

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
    checked = read_options({"mode": mode, **options})
    protocol = resolve_dialect(protocol, checked.dialect)
    schemas = load_schemas(protocol)
    check_messages(protocol, checked.message)
    others = _other_columns(frame, protocol)
    check_columns(protocol, checked.columns, others)
    decoder = find_backend(backend, frame.sparkSession, protocol)
    rows = _prepare(frame, protocol, checked, others)
    # Null frames are a row with an error, unlike a null column of `from_specwire`.
    frames = F.coalesce(F.col(FRAMES), F.array().cast("array<binary>"))
    sender = noted_name(protocol, "sender")
    found = decoder.column(frames, protocol, F.col(sender) if sender in rows.columns else None)
    decoded = {name: F.col(_DECODED)[name] for name in schemas.DECODED.fieldNames()}
    decoded[FRAMES] = F.when(F.col(FRAMES).isNotNull(), decoded[FRAMES])
    # The column is never null, and Spark must be able to infer this.
    octets = F.coalesce(F.col(_DECODED)[COUNT.name], F.lit(0).cast("long"))
    before = [F.col(quote_name(name)) for name in rows.columns if name != FRAMES]
    rows = rows.select("*", found.alias(_DECODED))
    decoded = {noted_name(protocol, OCTETS.name): octets, **decoded}
    rows = rows.select(*before, *(column.alias(name) for name, column in decoded.items()))
    return _select(_filter(rows, protocol, checked), protocol, checked, others)


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
    taken = {name.casefold() for name in (*decoded_fields(protocol), _DECODED)}
    for name in others:
        if name.casefold() in taken:
            raise InputError(
                f"the DataFrame has a column {name!r}, and decoded {protocol} too: rename or drop it"
            )
    return others


def _prepare(frame: DataFrame, protocol: str, options: Options, others: list[str]) -> DataFrame:
    """Rename capture columns that have the name of a message; add the columns of options."""
    there = {name.casefold() for name in frame.columns}
    noted = name_noted(load_schemas(protocol).DECODED.fieldNames())
    columns: dict[str, Column] = {
        field.name: F.col(source.name)
        for field, source in zip(noted, ENVELOPE, strict=False)
        if source.name in there
    }
    columns |= {name: F.col(quote_name(name)) for name in others}
    if options.record_id:
        if missing := [name for name in ("tap", "seq") if name not in there]:
            raise InputError(f"option 'record_id' needs the column {missing[0]!r}, which the DataFrame lacks")
        columns[RECORD_ID.name] = F.concat_ws("/", "tap", "seq")
    if options.record_frames:
        columns[RECORD_FRAMES.name] = F.col("frames")
    if options.input_file or options.mode is Mode.FAILFAST:
        columns[INPUT_FILE.name] = F.input_file_name()
    columns[FRAMES] = F.col("frames")
    return frame.select(*(column.alias(name) for name, column in columns.items()))


def _filter(rows: DataFrame, protocol: str, options: Options) -> DataFrame:
    """Return the rows that mode and `message` keep; FAILFAST fails the query at the first error."""
    faulty = F.col("_error").isNotNull()
    if options.mode is Mode.FAILFAST:
        failure = F.raise_error(_describe_fault(rows, protocol)).cast("boolean")
        rows = rows.where(F.when(faulty, failure).otherwise(True))
    elif options.mode is Mode.DROPMALFORMED:
        rows = rows.where(~faulty)
    if options.message:
        rows = rows.where(faulty | F.col("_message").isin(*options.message))
    return rows


def _describe_fault(rows: DataFrame, protocol: str) -> Column:
    """Return the error text of a failed query, with file, message, tap and frame if known."""
    message = name_message(rows.columns, noted_name(protocol, "seq"), noted_name(protocol, "tap"))
    frame = F.concat(F.lit("frame "), F.col("_error.frame").cast("string"))
    place = F.concat_ws(", ", message, frame)
    known = (F.nullif(part, F.lit("")) for part in (F.col(INPUT_FILE.name), place))
    return F.concat_ws(": ", *known, F.col("_error.text"))


def name_message(columns: Sequence[str], seq: str, tap: str) -> Column:
    """Return ``message 3 of tap T`` from those of the two columns that exist; null without both."""
    parts = [
        F.concat(F.lit(word), F.coalesce(F.col(name).cast("string"), F.lit("?")))
        for word, name in (("message ", seq), ("tap ", tap))
        if name in columns
    ]
    return F.concat_ws(" of ", *parts) if parts else F.lit(None).cast("string")


def _select(rows: DataFrame, protocol: str, options: Options, others: Sequence[str]) -> DataFrame:
    """Return the selected columns with their metadata.

    `others` are columns of the caller; they come unchanged before the decoded columns.
    """
    schemas = load_schemas(protocol)
    before: list[Column] = []
    after: list[Column] = []
    types = {field.name: field.dataType for field in rows.schema}
    for field, stored in selected_fields(protocol, options):
        if field.name not in types:
            continue
        column = F.col(field.name)
        if field.name in schemas.SCHEMAS and types[field.name] != field.dataType:
            column = _shape_message(column, field, stored, options)
        decoded = field.name in schemas.DECODED.fieldNames()
        (after if decoded else before).append(column.alias(field.name, metadata=field.metadata))
    only = {name.casefold() for name in options.columns}
    kept = [F.col(quote_name(name)) for name in others if not only or name.casefold() in only]
    return rows.select(*before, *kept, *after)


def _shape_message(column: Column, field: StructField, stored: StructField, options: Options) -> Column:
    """Return a message's struct of type `stored` as the type of `field`."""
    target, fields = field.dataType, stored.dataType
    assert isinstance(target, StructType)
    assert isinstance(fields, StructType)
    if target.fieldNames() != fields.fieldNames():
        kept = [inside for inside in fields if inside.name in target.fieldNames()]
        made = [column[inside.name].alias(inside.name) for inside in kept]
        if options.debug:
            made += [_hex_of(column[one.name], one).alias(hex_field(one, fields).name) for one in kept]
        column = F.when(column.isNotNull(), F.struct(*made))
    return _cast(column, target, options)


def _cast(column: Column, target: DataType, options: Options) -> Column:
    """Cast a column to a type with metadata; an integer that is too large becomes null.

    In FAILFAST mode it fails the query.
    """
    return column.cast(target) if options.mode is Mode.FAILFAST else column.try_cast(target)


def shape_struct(found: Column, protocol: str, options: Options) -> Column:
    """Return a back end's struct, or that of one message, with mode and options applied.

    FAILFAST fails the query with the error of the row.
    """
    fields, stored = struct_type(protocol, options), struct_type(protocol)
    name = options.message[0] if options.message else ""

    def select(row: Column) -> Column:
        if name and not options.debug:
            return row[name]
        if name:
            return _shape_message(row[name], fields[name], stored[name], options)
        if not options.debug:
            return row
        columns = (
            _shape_message(row[field.name], field, stored[field.name], options)
            if field.name in load_schemas(protocol).SCHEMAS
            else row[field.name]
            for field in fields
        )
        named = zip(columns, fields.fieldNames(), strict=True)
        return F.when(row.isNotNull(), F.struct(*(column.alias(name) for column, name in named)))

    def check(row: Column) -> Column:
        error = row["_error"]
        frame = F.coalesce(F.concat(F.lit("frame "), error["frame"].cast("string"), F.lit(": ")), F.lit(""))
        failure = F.raise_error(F.concat(F.lit(f"{protocol}: "), frame, error["text"]))
        return F.when(error.isNotNull(), failure).otherwise(select(row))

    if options.mode is Mode.FAILFAST:
        found = once(found, check)
    else:
        found = once(found, select) if options.debug else select(found)
    return _cast(found, fields[name].dataType if name else fields, options)


def once(column: Column, use: Callable[[Column], Column]) -> Column:
    """Return `use(column)`, with `column` evaluated once per row even if `use` repeats it."""
    return F.get(F.transform(F.array(column), use), F.lit(0))


def _hex_of(column: Column, field: StructField) -> Column:
    """Return the octets of a field's values in lower-case hexadecimal; keep lists and structs.

    Integers have all octets of their size; in lists, only as many as the value needs. Texts are
    UTF-8. Lengths, counts and the NUL after a text are not part of a value.
    """
    return _hex(column, field.dataType, int(field.metadata.get("octets", "0")))


def _hex(column: Column, type: DataType, octets: int) -> Column:
    match type:
        case ArrayType(elementType=element):
            return F.transform(column, lambda item: _hex(item, element, 0))
        case StructType(fields=fields):
            inside = [_hex_of(column[field.name], field).alias(field.name) for field in fields]
            return F.when(column.isNotNull(), F.struct(*inside))
        case StringType() | BinaryType():
            return F.lower(F.hex(column))
        case BooleanType():
            return F.lit(None).cast("string")  # Schemas have it for a struct without fields.
        case DecimalType():
            digits, octets = F.conv(column.cast("string"), 10, 16), 8
        case _:
            digits = F.hex(column)
    even = F.length(digits) + F.length(digits) % 2  # A whole number of octets.
    return F.lower(F.lpad(digits, 2 * octets if octets else even, "0"))
