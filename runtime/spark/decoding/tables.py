"""Typed tables: one for each message type, and one of the rows that did not decode.

A table has the columns that the tap noted, those that an option of `decode` added, then the columns of the
generated `schema.TABLES`: the message's fields, null only where a message can be without them, and columns derived
from them: a boolean for each flag, and the JSON text of a payload. A type that never occurred
gets its table too, without rows, because readers rely on the tables being there. Rows that did not decode are in
`ERRORS` with the finding and their raw frames; so is a text that is not UTF-8, whose octets are in them.

Where a field has the name of a noted column (a message may well have a ``sender``), the noted column is the
one that gets a leading ``_``.
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
        decoded: what `decode` or the data source gave, or that as it was written and read back; it is read once
            for each table, so write or persist it first.
        protocol: the package, where the rows do not say it themselves.
        flags: a boolean beside the flags for each bit.
        json_as: type of the column beside a field that may hold JSON: ``string``, which every engine reads, or
            ``variant``; None omits the column. It is null where the field does not hold valid JSON.
        maps: a map beside each dictionary; null where a name is repeated.
        schema: of `decoded`, where Spark must not be asked for it, as in a declarative pipeline.

    Raises:
        InputError: the rows are none of `decode`, or of another protocol.
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
    """Return the protocol that decoded rows were read as; InputError where they do not say it."""
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
    """The messages of one type, their fields as columns."""
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
    """The rows that did not decode: where, what, and the frames as they came."""
    found = load_schemas(protocol).DECODED["_error"].dataType
    assert isinstance(found, StructType)
    noted = noted_columns(protocol, found.fieldNames(), schema)
    findings = (_plain("_error", field) for field in found)
    return decoded.where("_error is not null").select(*noted, *findings, F.col("_frames").alias("frames"))


def noted_columns(
    protocol: str, fields: Sequence[str] = (), schema: StructType | None = None
) -> list[Column]:
    """Return the noted columns of decoded rows, under the names they have beside `fields`.

    With the schema of the rows, those that they have, and then those that an option of `decode` added to it.
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
    """A field as a column, in the type that the rows have it in."""
    column = F.col(message)[field.name]
    if not field.nullable and stored.dataType == field.dataType:
        column = required(column, field.dataType, f"{message}.{field.name}")
    return column.alias(field.name, metadata=field.metadata)


def _json(message: str, field: StructField, json_as: JsonAs) -> Column:
    """The JSON in a field, as text or as a Variant; null where it is not valid JSON."""
    of = F.col(message)[field.metadata["of"]]
    # Spark copies a text several times while it parses JSON, and a Variant has a maximum size.
    small = F.when(F.octet_length(of) <= JSON_OCTETS, of)
    # Deployed peers end JSON with NUL. Spark's cast accepts any octets as text, so UTF-8 is checked here.
    text = F.rtrim(F.try_validate_utf8(small.cast("string")), F.lit("\0"))
    parsed = F.try_parse_json(text)
    found = parsed if json_as == "variant" else F.when(parsed.isNotNull(), text)
    return found.alias(field.name, metadata=field.metadata)


def _flag(message: str, field: StructField) -> Column:
    """One bit of a field as a boolean."""
    of = F.col(message)[field.metadata["of"]]
    bit = of.bitwiseAND(F.lit(field.metadata["mask"])) != 0
    column = bit if field.nullable else required(bit, field.dataType, f"{message}.{field.name}")
    return column.alias(field.name, metadata=field.metadata)


def _maps(message: str, stored: StructType, taken: Mapping[str, Column]) -> dict[str, Column]:
    """A map for each dictionary, under a name that is not taken."""
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
    """The map of a dictionary's pairs, of which none may hide another."""
    names = F.transform(pairs, lambda pair: pair["name"])
    return F.when(F.size(F.array_distinct(names)) == F.size(names), F.map_from_entries(pairs))


def required(column: Column, type: DataType, name: str) -> Column:
    """Return a column that is not nullable: a null fails the query in a sentence that names the column.

    Spark has no expression for this, so the column is coalesced with a value that is never null and always fails.
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
