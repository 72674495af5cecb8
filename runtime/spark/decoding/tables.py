"""Typed tables: one for each message type, and one for the rows that did not decode.

A table has the tap's columns, then the columns that options of `decode` added, then the columns of
the generated `schema.TABLES`. These are the message's fields, null only if the field is optional,
and columns derived from them: a boolean for each flag, the JSON text of a payload, and the time that
a number means. A type that did not occur has an empty table, so that the set of tables is fixed.
Rows that did not decode are in `ERRORS` with the error and their raw frames. This includes texts
that are not UTF-8.

If a field has the name of one of the tap's columns (a message may have a ``sender``), the tap's
column gets a leading ``_``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DoubleType,
    FloatType,
    StringType,
    StructField,
    StructType,
)

from specwire.runtime.schemas.payloads import MAX_OCTETS, Payload
from specwire.runtime.spark.decoding.options import ADDED, FRAMES, PROTOCOL, name_noted, unused_name
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas

ERRORS = "_errors"

PAYLOAD_OF = "payload_of"
"""Metadata key of a payload column, with the messages that have such payloads."""

JsonAs = Literal["string", "variant"]
"""Type of the columns that hold the JSON of payloads."""


def tables(
    decoded: DataFrame,
    protocol: str | None = None,
    *,
    flags: bool = True,
    json_as: JsonAs | None = "string",
    times: bool = True,
    maps: bool = False,
    schema: StructType | None = None,
) -> dict[str, DataFrame]:
    """Return the typed tables by message class, in the specification's order, and `ERRORS` last.

    Args:
        decoded: rows from `decode` or the data source, possibly written and read back; they are
            read once for each table, so write or persist them first.
        protocol: the package, if the rows do not name it in their metadata.
        flags: whether to add a boolean for each bit of a flags field.
        json_as: type of the column beside a field that may hold JSON: ``string``, which every
            engine reads, or ``variant``; None omits the column. It is null if the field is not
            valid JSON.
        times: whether to add the time that a number means; it is null outside the years 0001 to
            9999.
        maps: whether to add a map for each dictionary; null if a name is repeated.
        schema: schema of `decoded`, for a declarative pipeline, where Spark must not be asked for
            it.

    Raises:
        InputError: the rows are not from `decode`, or of another protocol.
    """
    protocol = protocol or stated_protocol(decoded)
    stored = schema or decoded.schema
    typed = {
        name: _message_table(
            decoded, stored, protocol, name, flags=flags, json_as=json_as, times=times, maps=maps
        )
        for name in load_schemas(protocol).SCHEMAS
        if name in stored.fieldNames()
    }
    return {**typed, ERRORS: _error_table(decoded, stored, protocol)}


def stated_protocol(decoded: DataFrame) -> str:
    """Return the protocol of decoded rows from their metadata; InputError if it is missing."""
    schema = decoded.schema
    if "_message" not in schema.fieldNames():
        raise InputError("the DataFrame has no column '_message': it must be rows of decode()")
    name = schema["_message"].metadata.get(PROTOCOL)
    if name is None:
        raise InputError("the DataFrame does not state its protocol: name it in the argument 'protocol'")
    return str(name)


def _message_table(
    decoded: DataFrame,
    schema: StructType,
    protocol: str,
    message: str,
    *,
    flags: bool,
    json_as: JsonAs | None,
    times: bool,
    maps: bool,
) -> DataFrame:
    """Return the messages of one type, with their fields as columns."""
    stored = schema[message].dataType
    assert isinstance(stored, StructType)
    table = load_schemas(protocol).TABLES[message]
    fields = {field.name: field for field in stored}
    columns: dict[str, Column] = {}
    for field in table:
        of = fields.get(field.metadata.get("of", ""))
        if field.name in fields:
            columns[field.name] = _field(message, field, fields[field.name])
        elif of is None:
            continue  # a field that the rows do not have, or derived from one
        elif "mask" in field.metadata:
            if flags:
                columns[field.name] = _flag(message, field)
        elif "timestamp" in field.metadata:
            if times:
                columns[field.name] = _time(message, field, of.dataType)
        elif json_as is not None:
            columns[field.name] = _json(message, field, json_as)
    octets = (field for field in stored if field.name not in table.fieldNames())  # decode(debug=True)
    columns |= {field.name: _plain(message, field) for field in octets}
    payloads = (field.name for field in schema if message in field.metadata.get(PAYLOAD_OF, ()))
    columns |= {name: F.col(name) for name in payloads}
    if maps:
        columns |= _maps(message, stored, columns)
    rows = decoded.where(F.col("_message") == message)
    return rows.select(*noted_columns(protocol, list(columns), schema), *columns.values())


def _error_table(decoded: DataFrame, schema: StructType, protocol: str) -> DataFrame:
    """Return the rows that did not decode: position, error and raw frames."""
    found = load_schemas(protocol).DECODED["_error"].dataType
    assert isinstance(found, StructType)
    noted = noted_columns(protocol, found.fieldNames(), schema)
    findings = (_plain("_error", field) for field in found)
    return decoded.where("_error is not null").select(*noted, *findings, F.col(FRAMES).alias("frames"))


def noted_columns(
    protocol: str, fields: Sequence[str] = (), schema: StructType | None = None
) -> list[Column]:
    """Return the noted columns of decoded rows, under the names they have beside `fields`.

    With the schema of the rows, return only existing columns, including those added by options of
    `decode`.
    """
    stored = name_noted(load_schemas(protocol).DECODED.fieldNames())
    pairs = [*zip(stored, name_noted(fields), strict=True), *((field, field) for field in ADDED)]
    there = {field.name for field in stored} if schema is None else set(schema.fieldNames())
    return [
        F.col(source.name).alias(target.name, metadata=source.metadata)
        for source, target in pairs
        if source.name in there
    ]


def _plain(struct: str, field: StructField) -> Column:
    return F.col(struct)[field.name].alias(field.name, metadata=field.metadata)


def _field(message: str, field: StructField, stored: StructField) -> Column:
    """Return a field as a column, in its type in the rows."""
    column = F.col(message)[field.name]
    if not field.nullable and stored.dataType == field.dataType:
        column = _required(column, field.dataType, f"{message}.{field.name}")
    return column.alias(field.name, metadata=field.metadata)


def _json(message: str, field: StructField, json_as: JsonAs) -> Column:
    """Return the JSON in a field, as text or as a Variant; null if it is not valid JSON."""
    text = _json_text(F.col(message)[field.metadata["of"]])
    parsed = F.try_parse_json(text)
    found = parsed if json_as == "variant" else F.when(parsed.isNotNull(), text)
    return found.alias(field.name, metadata=field.metadata)


def _json_text(content: Column) -> Column:
    """Return octets as text; null if they are not UTF-8, or more than `MAX_OCTETS`.

    Spark copies a text several times while it parses JSON, and a Variant has a maximum size.
    Deployed peers end JSON with NUL. Spark's cast accepts any octets as text, so UTF-8 is checked
    here.
    """
    small = F.when(F.octet_length(content) <= MAX_OCTETS, content)
    return F.rtrim(F.try_validate_utf8(small.cast("string")), F.lit("\0"))


def _flag(message: str, field: StructField) -> Column:
    """Return one bit of a field as a boolean."""
    of = F.col(message)[field.metadata["of"]]
    bit = of.bitwiseAND(F.lit(field.metadata["mask"])) != 0
    column = bit if field.nullable else _required(bit, field.dataType, f"{message}.{field.name}")
    return column.alias(field.name, metadata=field.metadata)


def _time(message: str, field: StructField, type: DataType) -> Column:
    """Return the time that a number of this type means, or each number of a list."""
    of = F.col(message)[field.metadata["of"]]
    unit, epoch = field.metadata["timestamp"], field.metadata["epoch"]
    if isinstance(type, ArrayType):
        found = F.transform(of, lambda number: _instant(number, type.elementType, unit, epoch))
    else:
        found = _instant(of, type, unit, epoch)
    return found.alias(field.name, metadata=field.metadata)


def _instant(number: Column, type: DataType, unit: str, epoch: str) -> Column:
    """Return a number of `unit` since `epoch` as a timestamp; null outside the years 0001 to 9999.

    Nanoseconds of an integer are rounded down to microseconds. A floating-point number is rounded
    to the nearest microsecond; its error is greater anyway.
    """
    micros, divisor = _MICROSECONDS[unit]
    if isinstance(type, FloatType | DoubleType):
        rounded = F.rint(number.cast("double") * micros / divisor)
        # NaN is greater than every number in Spark, so it is null, too.
        whole = F.when(F.abs(rounded) < _FAR, rounded.cast("long").cast("decimal(20,0)"))
    else:
        whole = F.floor(number.cast("decimal(20,0)") * F.lit(Decimal(micros)) / F.lit(Decimal(divisor)))
    found = whole + F.lit(Decimal(_microseconds(datetime.fromisoformat(epoch))))
    return F.when(found.between(*map(F.lit, _BOUNDS)), F.timestamp_micros(found.cast("long")))


def _microseconds(time: datetime) -> int:
    """Return the microseconds from 1970 to a time in UTC."""
    return (time.replace(tzinfo=None) - datetime(1970, 1, 1)) // timedelta(microseconds=1)


_MICROSECONDS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
"""Microseconds in each unit of a timestamp, as a fraction."""

_BOUNDS = tuple(Decimal(_microseconds(time)) for time in (datetime.min, datetime.max))
"""The first and the last timestamp, in microseconds from 1970."""

_FAR = 1e18
"""Microseconds that lead out of these bounds from any epoch between them."""


def _maps(message: str, stored: StructType, taken: Mapping[str, Column]) -> dict[str, Column]:
    """Return a map column for each dictionary, under an unused name; null if a name is repeated."""
    found: dict[str, Column] = {}
    for field in filter(_is_dictionary, stored):
        name = unused_name(f"{field.name}_map", (*taken, *found))
        pairs = F.col(message)[field.name]
        names = F.transform(pairs, lambda pair: pair["name"])
        unique = F.size(F.array_distinct(names)) == F.size(names)
        comment = f"{field.name} as a map; null where a name is repeated."
        found[name] = F.when(unique, F.map_from_entries(pairs)).alias(name, metadata={"comment": comment})
    return found


def _is_dictionary(field: StructField) -> bool:
    match field.dataType:
        case ArrayType(elementType=StructType() as pair):
            return pair.fieldNames() == ["name", "value"] and not field.name.endswith("_hex")
    return False


def _required(column: Column, type: DataType, name: str) -> Column:
    """Return the column as not nullable; a null fails the query and names the column.

    Spark has no expression for this, so the column is coalesced with a value that is never null and
    always fails.
    """
    return F.coalesce(column, _never(type, F.raise_error(F.lit(f"{name} is null, which no message has"))))


def _never(type: DataType, failure: Column) -> Column:
    """Return a value that Spark assumes not to be null, and that fails when it is evaluated."""
    match type:
        case ArrayType(elementType=element):
            return F.array(failure.cast(element))
        case StructType(fields=fields):
            return F.struct(*(failure.cast(field.dataType).alias(field.name) for field in fields))
        case StringType():
            return F.concat_ws("", F.array(failure.cast("string")))
        case BinaryType():
            return F.concat_ws("", F.array(failure.cast("string"))).cast("binary")
    return F.size(F.array(failure.cast("int"))).cast(type)


def with_payloads(decoded: DataFrame, payloads: Sequence[Payload]) -> DataFrame:
    """Return decoded rows, as from `decode`, with an added column for each kind of payload.

    `tables` adds the column to the tables of the messages that have such payloads.

    Raises:
        InputError: the rows lack the messages that may have such payloads.
    """
    there = set(decoded.columns)
    added: dict[str, Column] = {}
    for payload in payloads:
        missing = [message for message, _ in payload.places if message not in there]
        if missing:
            raise InputError(
                f"the DataFrame has no column {missing[0]!r}: with_payloads() takes rows of decode()"
            )
        type = from_arrow_type(payload.type)
        assert isinstance(type, StructType)
        found = [_column(payload, message, field, type) for message, field in payload.places]
        comment = f"Payload of the messages whose {payload.by} is like {payload.pattern}; null in others."
        messages = list(dict.fromkeys(message for message, _ in payload.places))
        metadata = {"comment": comment, PAYLOAD_OF: messages}
        added[payload.column] = F.coalesce(*found).alias(payload.column, metadata=metadata)
    return decoded.select("*", *added.values())


def _column(payload: Payload, message: str, field: str, type: StructType) -> Column:
    """Return the payload in one field of a message.

    Null if it is not a JSON object or of another kind.
    """
    text = _json_text(F.col(message)[field])
    wanted = F.col(message)[payload.by].rlike(rf"(?s)\A(?:{payload.pattern})\z")
    is_object = text.rlike(r"\A\s*\{") & F.try_parse_json(text).isNotNull()
    return F.when(wanted & is_object, F.from_json(text, type))


def quote_name(name: str) -> str:
    """Return an identifier as SQL writes it."""
    return f"`{name.replace('`', '``')}`"


def quote_text(text: str) -> str:
    """Return a string as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def column_lines(schema: StructType) -> Iterator[str]:
    """Yield ``name TYPE NOT NULL COMMENT '…'`` for each field, as Spark's DDL has them."""
    for field in schema.fields:
        comment = field.metadata.get("comment", "")
        required = "" if field.nullable else " NOT NULL"
        commented = f" COMMENT {quote_text(comment)}" if comment else ""
        yield f"{quote_name(field.name)} {_sql_type(field.dataType)}{required}{commented}"


def _sql_type(type: DataType) -> str:
    """Return a type in capitals, with the names in it unchanged."""
    match type:
        case ArrayType(elementType=element):
            return f"ARRAY<{_sql_type(element)}>"
        case StructType(fields=fields):
            inside = (f"{quote_name(field.name)}: {_sql_type(field.dataType)}" for field in fields)
            return f"STRUCT<{', '.join(inside)}>"
    return type.simpleString().upper()
