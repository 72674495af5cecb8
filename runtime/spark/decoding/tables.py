"""Typed tables: one for each message type, and one for the rows that did not decode.

A table has the tap's columns, then the columns that options of `decode` added, then the columns of
the generated `schema.TABLES`. These are the message's fields, null only if the field is optional,
and columns derived from them: a boolean for each flag, and the JSON text of a payload. A type that
never occurred has an empty table, because readers rely on all tables. Rows that did not decode are
in `ERRORS` with the error and their raw frames. This includes texts that are not UTF-8.

If a field has the name of one of the tap's columns (a message may have a ``sender``), the tap's
column gets a leading ``_``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType, StructField, StructType

from specwire.runtime.spark.decoding.payloads import PAYLOAD_OF
from specwire.runtime.spark.decoding.shape import ADDED, PROTOCOL, name_noted
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_schemas

ERRORS = "_errors"

JSON_OCTETS = 16 << 20
"""A payload larger than this is not read as JSON."""

JsonAs = Literal["string", "variant"]
"""Type of the columns that hold the JSON of payloads."""


def tables(
    decoded: DataFrame,
    protocol: str | None = None,
    *,
    flags: bool = True,
    json_as: JsonAs | None = "string",
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
        maps: whether to add a map for each dictionary; null if a name is repeated.
        schema: schema of `decoded`, for a declarative pipeline, where Spark must not be asked for
            it.

    Raises:
        InputError: the rows are not from `decode`, or of another protocol.
    """
    protocol = protocol or stated_protocol(decoded)
    stored = schema or decoded.schema
    there = [name for name in load_schemas(protocol).SCHEMAS if name in stored.fieldNames()]
    typed = {
        name: _message_table(decoded, stored, protocol, name, flags=flags, json_as=json_as, maps=maps)
        for name in there
    }
    return {**typed, ERRORS: _error_table(decoded, stored, protocol)}


def stated_protocol(decoded: DataFrame) -> str:
    """Return the protocol of decoded rows from their metadata.

    Raise InputError if it is missing.
    """
    fields = {field.name: field for field in decoded.schema}
    if "_message" not in fields:
        raise InputError("the DataFrame has no column '_message': tables() takes what decode() gives")
    name = fields["_message"].metadata.get(PROTOCOL)
    if name is None:
        raise InputError("the DataFrame does not say which protocol it was decoded as: name it")
    return str(name)


def _message_table(
    decoded: DataFrame,
    schema: StructType,
    protocol: str,
    message: str,
    *,
    flags: bool,
    json_as: JsonAs | None,
    maps: bool,
) -> DataFrame:
    """Return the messages of one type, with their fields as columns."""
    stored = schema[message].dataType
    assert isinstance(stored, StructType)
    table = load_schemas(protocol).TABLES[message]
    there = {field.name: field for field in stored}
    columns: dict[str, Column] = {}
    for field in table:
        if field.name in there:
            columns[field.name] = _field(message, field, there[field.name])
        elif field.metadata.get("of") in there:
            if "mask" in field.metadata and flags:
                columns[field.name] = _flag(message, field)
            elif "mask" not in field.metadata and json_as is not None:
                columns[field.name] = _json(message, field, json_as)
    extra = [
        field for field in stored if field.name not in table.fieldNames()
    ]  # what decode(debug=True) adds
    columns |= {field.name: _plain(message, field) for field in extra}
    columns |= {
        field.name: F.col(field.name) for field in schema if message in field.metadata.get(PAYLOAD_OF, ())
    }  # what with_payloads() adds
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
    return decoded.where("_error is not null").select(*noted, *findings, F.col("_frames").alias("frames"))


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
        column = required(column, field.dataType, f"{message}.{field.name}")
    return column.alias(field.name, metadata=field.metadata)


def _json(message: str, field: StructField, json_as: JsonAs) -> Column:
    """Return the JSON in a field, as text or as a Variant; null if it is not valid JSON."""
    of = F.col(message)[field.metadata["of"]]
    # Spark copies a text several times while it parses JSON, and a Variant has a maximum size.
    small = F.when(F.octet_length(of) <= JSON_OCTETS, of)
    # Deployed peers end JSON with NUL. Spark's cast accepts any octets as text, so UTF-8 is checked
    # here.
    text = F.rtrim(F.try_validate_utf8(small.cast("string")), F.lit("\0"))
    parsed = F.try_parse_json(text)
    found = parsed if json_as == "variant" else F.when(parsed.isNotNull(), text)
    return found.alias(field.name, metadata=field.metadata)


def _flag(message: str, field: StructField) -> Column:
    """Return one bit of a field as a boolean."""
    of = F.col(message)[field.metadata["of"]]
    bit = of.bitwiseAND(F.lit(field.metadata["mask"])) != 0
    column = bit if field.nullable else required(bit, field.dataType, f"{message}.{field.name}")
    return column.alias(field.name, metadata=field.metadata)


def _maps(message: str, stored: StructType, taken: Mapping[str, Column]) -> dict[str, Column]:
    """Return a map column for each dictionary, under an unused name."""
    folded = {name.casefold() for name in taken}
    found: dict[str, Column] = {}
    for field in stored:
        if _is_dictionary(field):
            name = f"{field.name}_map"
            while name.casefold() in folded:
                name += "_"
            folded.add(name.casefold())
            comment = f"{field.name} as a map; null where a name is repeated."
            found[name] = _map(F.col(message)[field.name]).alias(name, metadata={"comment": comment})
    return found


def _is_dictionary(field: StructField) -> bool:
    match field.dataType:
        case ArrayType(elementType=StructType() as pair):
            return pair.fieldNames() == ["name", "value"] and not field.name.endswith("_hex")
    return False


def _map(pairs: Column) -> Column:
    """Return a dictionary's pairs as a map; null if a name is repeated."""
    names = F.transform(pairs, lambda pair: pair["name"])
    return F.when(F.size(F.array_distinct(names)) == F.size(names), F.map_from_entries(pairs))


def required(column: Column, type: DataType, name: str) -> Column:
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
