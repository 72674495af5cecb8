"""Columns of decoded rows: their names beside a capture's columns, and their types by option.

An expression loses the metadata of its fields. So the last step of decoding restores it at every
depth. It also adds the protocol's name to `_message`, from which `tables` reads the protocol of the
rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DecimalType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from specwire.runtime.spark.decoding.options import Mode, Options
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas
from specwire.runtime.spark.reading.capture import ENVELOPE

OCTETS = StructField(
    "octets", LongType(), False, metadata={"comment": "octets of all frames", "unit": "octets"}
)
NOTED = StructType([*ENVELOPE, OCTETS])
"""Columns of a capture, which come before the decoded ones."""

COUNT = StructField("_octets", LongType(), metadata=OCTETS.metadata)
"""Octets of all frames in a struct of decoded columns."""

FRAMES = "_frames"
"""Raw frames: of all rows before they are decoded, of rows with an error afterwards."""

PROTOCOL = "protocol"
"""Metadata key of `_message` with the protocol's name."""

RECORD_ID = StructField("_record_id", StringType(), False, {"comment": "The tap and its count: tap/seq."})
RECORD_FRAMES = StructField(
    "_record_frames",
    ArrayType(BinaryType()),
    True,
    {"comment": "The raw frames of the message, decoded or not."},
)
INPUT_FILE = StructField(
    "_input_file", StringType(), False, {"comment": "The file that the message is from."}
)
ADDED = (RECORD_ID, RECORD_FRAMES, INPUT_FILE)
"""Columns that options of `decode` add after those of the capture."""

PLAIN = Options()

_U64 = DecimalType(20, 0)


def name_noted(taken: Iterable[str]) -> list[StructField]:
    """Return the columns of `NOTED`; a name that is taken, ignoring case, gets a leading ``_``."""
    folded = {name.casefold() for name in taken}
    return [_rename(field, f"_{field.name}") if field.name in folded else field for field in NOTED]


def noted_name(protocol: str, name: str) -> str:
    """Return the name of a column of `NOTED` beside the decoded columns of a protocol."""
    named = name_noted(load_schemas(protocol).DECODED.fieldNames())
    return named[NOTED.fieldNames().index(name)].name


def _rename(field: StructField, name: str) -> StructField:
    return StructField(name, field.dataType, field.nullable, field.metadata)


def decoded_fields(protocol: str) -> dict[str, StructField]:
    """Return every column that decoded rows of a capture may have, by name."""
    decoded = load_schemas(protocol).DECODED
    fields = (*name_noted(decoded.fieldNames()), *ADDED, *decoded)
    return {field.name: field for field in fields}


def check_columns(protocol: str, columns: Collection[str], others: Sequence[str] = ()) -> None:
    """Raise InputError for a column that is neither a decoded column nor in `others`."""
    fields = decoded_fields(protocol)
    known = {name.casefold() for name in (*fields, *others)}
    for message, type in load_schemas(protocol).SCHEMAS.items():
        known.update(f"{message}.{name}".casefold() for name in type.fieldNames())
    for name in columns:
        if name.casefold() not in known:
            raise InputError(
                f"option 'columns' names {name!r}; decoded {protocol} has {', '.join((*fields, *others))}, "
                "and their fields as Message.field"
            )


def schema_of(protocol: str, asked: Options) -> StructType:
    """Return the columns that `decode` returns for a capture with these options."""
    return StructType([field for field, _ in _fields(protocol, asked)])


def struct_type(protocol: str, asked: Options = PLAIN) -> StructType:
    """Return the struct type of back ends, or of `from_specwire` if there are options."""
    decoded = load_schemas(protocol).DECODED.fieldNames()
    return StructType([*(field for field, _ in _fields(protocol, asked) if field.name in decoded), COUNT])


def shape(rows: DataFrame, protocol: str, asked: Options, others: Sequence[str]) -> DataFrame:
    """Return the columns asked for with their metadata.

    `others` are columns of the caller; they come unchanged before the decoded columns.
    """
    messages, decoded = load_schemas(protocol).SCHEMAS, load_schemas(protocol).DECODED.fieldNames()
    before: list[Column] = []
    after: list[Column] = []
    there = {field.name: field.dataType for field in rows.schema}
    for field, stored in _fields(protocol, asked):
        column = F.col(field.name)
        if field.name in messages and there[field.name] != field.dataType:
            column = shape_message(column, field, stored, asked)
        if field.name in there:
            (after if field.name in decoded else before).append(
                column.alias(field.name, metadata=field.metadata)
            )
    only = {name.casefold() for name in asked.columns}
    kept = [F.col(quote_name(name)) for name in others if not only or name.casefold() in only]
    return rows.select(*before, *kept, *after)


def shape_message(column: Column, field: StructField, stored: StructField, asked: Options) -> Column:
    """Return a message's struct of type `stored` as the type of `field`."""
    target, fields = field.dataType, stored.dataType
    assert isinstance(target, StructType)
    assert isinstance(fields, StructType)
    if target.fieldNames() != fields.fieldNames():
        kept = [inside for inside in fields if inside.name in target.fieldNames()]
        made = [column[inside.name].alias(inside.name) for inside in kept]
        if asked.debug:
            made += [hex_of(column[one.name], one).alias(_twin(one, fields).name) for one in kept]
        column = F.when(column.isNotNull(), F.struct(*made))
    return cast_to(column, target, asked)


def cast_to(column: Column, target: DataType, asked: Options) -> Column:
    """Cast a column to a type with metadata; an integer that is too large becomes null.

    In FAILFAST mode it fails the query.
    """
    return column.cast(target) if asked.mode is Mode.FAILFAST else column.try_cast(target)


def shape_struct(found: Column, protocol: str, asked: Options) -> Column:
    """Return a back end's struct with the options applied: the struct of one message, or of all.

    The modes are applied here too: FAILFAST fails the query with the error of the row.
    """
    fields, stored = struct_type(protocol, asked), struct_type(protocol)

    def select(row: Column) -> Column:
        if asked.message:
            (name,) = asked.message
            return shape_message(row[name], fields[name], stored[name], asked)
        columns = (
            shape_message(row[field.name], field, stored[field.name], asked)
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
        return F.when(error.isNotNull(), failure).otherwise(select(row) if selects else row)

    selects = asked.debug or bool(asked.message)
    if asked.mode is Mode.FAILFAST:
        found = once(found, check)
    elif asked.message and not asked.debug:
        found = found[asked.message[0]]
    elif selects:
        found = once(found, select)
    return cast_to(found, fields[asked.message[0]].dataType if asked.message else fields, asked)


def once(column: Column, use: Callable[[Column], Column]) -> Column:
    """Return `use(column)`.

    `column` is evaluated once per row, even if `use` refers to it repeatedly.
    """
    return F.get(F.transform(F.array(column), use), F.lit(0))


def _fields(protocol: str, asked: Options) -> Iterator[tuple[StructField, StructField]]:
    """Yield each column asked for: the field after and before the options are applied."""
    messages, only = load_schemas(protocol).SCHEMAS, _only(asked.columns)
    for name, field in decoded_fields(protocol).items():
        if not _is_asked_for(name, asked, only):
            continue
        if name == "_message":
            named = {**field.metadata, PROTOCOL: protocol}
            yield StructField(name, field.dataType, field.nullable, named), field
        elif name not in messages:
            yield field, field
        elif not asked.message or name in asked.message:
            type = _becomes(messages[name], only.get(name.casefold(), ()), asked)
            yield StructField(name, type, field.nullable, field.metadata), field


def _only(columns: Collection[str]) -> Mapping[str, set[str]]:
    """Return the fields to keep of each column, in lower case; an empty set keeps all."""
    found: dict[str, set[str]] = {}
    whole = {name.casefold() for name in columns if "." not in name}
    for column in columns:
        name, _, field = column.casefold().partition(".")
        fields = found.setdefault(name, set())
        if field and name not in whole:
            fields.add(field)
    return found


def _is_asked_for(name: str, asked: Options, only: Mapping[str, set[str]]) -> bool:
    match name:
        case "_message" | "_error" | "_frames":
            return True
        case RECORD_ID.name:
            return asked.record_id
        case RECORD_FRAMES.name:
            return asked.record_frames
        case INPUT_FILE.name:
            return asked.input_file
    return not only or name.casefold() in only


def _becomes(fields: StructType, only: Collection[str], asked: Options) -> StructType:
    """Return the struct of a message with the fields asked for; `debug` adds their octets."""
    kept = [field for field in fields if not only or field.name.casefold() in only]
    twins = [_twin(field, fields) for field in kept] if asked.debug else []
    found = StructType([*kept, *twins])
    return _with_longs(found) if asked.u64 == "long" else found


def _twin(field: StructField, beside: StructType) -> StructField:
    """Return the column of a field's octets, under a name that no other field has."""
    taken = {name.casefold() for name in beside.fieldNames()}
    name = f"{field.name}_hex"
    while name.casefold() in taken:
        name += "_"
    return hex_field(field, name)


def _with_longs(fields: StructType) -> StructType:
    """Return a struct whose unsigned integers of eight octets are longs, at any depth."""
    return StructType([StructField(f.name, _with_long(f.dataType), f.nullable, f.metadata) for f in fields])


def _with_long(type: DataType) -> DataType:
    match type:
        case ArrayType(elementType=element, containsNull=nulls):
            return ArrayType(_with_long(element), nulls)
        case StructType():
            return _with_longs(type)
    return LongType() if type == _U64 else type


def hex_field(field: StructField, name: str) -> StructField:
    """Return the column of a field's octets, under a name."""
    return StructField(
        name, _hex_type(field.dataType), True, {"comment": f"Octets of {field.name}, hexadecimal."}
    )


def hex_of(column: Column, field: StructField) -> Column:
    """Return the octets of a field's values in lower-case hexadecimal; keep lists and structs.

    Integers have all octets of their size, in lists as many as the value needs, texts those of
    UTF-8. Lengths, counts and the NUL after a text are not part of a value.
    """
    return _hex(column, field.dataType, int(field.metadata.get("octets", "0")))


def _hex(column: Column, type: DataType, octets: int) -> Column:
    match type:
        case ArrayType(elementType=element):
            return F.transform(column, lambda item: _hex(item, element, 0))
        case StructType(fields=fields):
            inside = [hex_of(column[field.name], field).alias(field.name) for field in fields]
            return F.when(column.isNotNull(), F.struct(*inside))
        case StringType() | BinaryType():
            return F.lower(F.hex(column))
        case BooleanType():
            return F.lit(None).cast("string")  # A struct without fields has no octets.
        case DecimalType():
            return _padded(F.conv(column.cast("string"), 10, 16), 8)
    return _padded(F.hex(column), octets)


def _padded(digits: Column, octets: int) -> Column:
    """Return the digits of a number padded to `octets`.

    If that is 0, to a whole number of octets.
    """
    even = F.length(digits) + F.length(digits) % 2
    return F.lower(F.lpad(digits, 2 * octets if octets else even, "0"))


def _hex_type(type: DataType) -> DataType:
    match type:
        case ArrayType(elementType=element):
            return ArrayType(_hex_type(element))
        case StructType(fields=fields):
            return StructType([StructField(field.name, _hex_type(field.dataType)) for field in fields])
    return StringType()


def quote_name(name: str) -> str:
    """Return an identifier as SQL writes it."""
    return f"`{name.replace('`', '``')}`"


def quote_text(text: str) -> str:
    """Return a string as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def column_lines(schema: StructType) -> Iterator[str]:
    """Yield ``name TYPE NOT NULL COMMENT '…'`` for each field.

    Spark reads the joined lines as a schema.
    """
    for field in schema.fields:
        comment = field.metadata.get("comment", "")
        required = "" if field.nullable else " NOT NULL"
        said = f" COMMENT {quote_text(comment)}" if comment else ""
        yield f"{quote_name(field.name)} {_sql_type(field.dataType)}{required}{said}"


def _sql_type(type: DataType) -> str:
    """Return a type in capitals, with the names in it unchanged."""
    match type:
        case ArrayType(elementType=element):
            return f"ARRAY<{_sql_type(element)}>"
        case StructType(fields=fields):
            inside = (f"{quote_name(field.name)}: {_sql_type(field.dataType)}" for field in fields)
            return f"STRUCT<{', '.join(inside)}>"
    return type.simpleString().upper()
