"""Avro schema of the rows that ``columns.decode`` gives: a record with a nullable record for each message.

Types are those of the columns (`SCALARS`). A dictionary is an array of records with name and value. A
union is a record of which one field is not null. A value inside another of its kind is its octets, as
in columns. Only fields that can be absent are nullable, which columns do not say. The path to a nested
record is its namespace, so names are unique.

A number that is a time has one of Avro's logical types (`TIMES`) if it is a long and its epoch is 1970.
Otherwise the field has only the properties ``timestamp`` (the unit) and ``epoch``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

import pyarrow as pa

from specwire.generated.columns import UINT64
from specwire.generated.layout import ListOf, MessageLayout, Pairs, Record, Type, Union
from specwire.runtime.schemas.fields import (
    PRESENT,
    Column,
    Entry,
    entries_of,
    fields_of,
    messages_of,
    metadata_of,
    option_name,
)

Schema = dict[str, Any]

ERROR = ("message", "string"), ("field", "string"), ("frame", "int"), ("offset", "long"), ("kind", "string"), ("text", "string")  # fmt: skip
"""Fields of `_error`; each can be null."""

SCALARS: Mapping[Column, Any] = {
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    UINT64: {"type": "bytes", "logicalType": "decimal", "precision": UINT64.precision, "scale": UINT64.scale},
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
    pa.bool_(): "boolean",
}
"""Avro types of columns with one value."""

TIMES = {"ms": "timestamp-millis", "us": "timestamp-micros", "ns": "timestamp-nanos"}
"""Logical types of times since 1970, by their units."""

_PROPERTIES = "abnf", "unit", "timestamp", "epoch", "source"


def avro_schema(package: ModuleType, message: str | None = None) -> Schema:
    """Return the schema of a row, or of the column of one message class."""
    namespace = f"specwire.{package.__name__.rpartition('.')[2]}"
    records = {
        layout.class_name: _message(package, layout, f"{namespace}.{layout.class_name}")
        for layout in messages_of(package, message)
    }
    if message is not None:
        return records[message]
    fields = [
        _nullable("_message", "string", "Class of the message; null where it does not decode."),
        _nullable("_error", _error(namespace), "Why the message does not decode; null where it does."),
        _nullable("_frames", _array("bytes"), "The raw frames of a message that does not decode."),
    ]
    fields += [
        _nullable(name, record, metadata_of(package.columns.SCHEMA.field(name)).get("comment", ""))
        for name, record in records.items()
    ]
    return {"doc": f"A message of {package.EDITION}.", **_named(f"{namespace}._row", fields)}


def _error(namespace: str) -> Schema:
    return _named(f"{namespace}._error", [_nullable(name, type) for name, type in ERROR])


def _named(path: str, fields: list[Schema]) -> Schema:
    namespace, _, name = path.rpartition(".")
    return {"type": "record", "namespace": namespace, "name": name, "fields": fields}


def _message(package: ModuleType, layout: MessageLayout, path: str) -> Schema:
    column = package.columns.SCHEMA.field(layout.class_name).type
    return _record(package, entries_of(layout, column), column, path)


def _record(package: ModuleType, entries: Iterable[Entry], column: Column, path: str) -> Schema:
    fields = [_field(package, entry, path) for entry in entries]
    return _named(path, fields or [_present(column.field(PRESENT))])


def _present(column: pa.Field[Any]) -> Schema:
    return {"name": PRESENT, "type": SCALARS[column.type], "doc": metadata_of(column)["comment"]}


def _field(package: ModuleType, entry: Entry, path: str) -> Schema:
    said = entry.metadata
    type = _value(package, entry.type, entry.column, f"{path}.{entry.name}", _time(said))
    type = _array(type) if entry.many else type
    field = _nullable(entry.name, type) if entry.absent else {"name": entry.name, "type": type}
    field |= {"doc": said["comment"]} if "comment" in said else {}
    return field | {key: said[key] for key in _PROPERTIES if key in said}


def _time(said: Mapping[str, str]) -> str | None:
    """Return the logical type of the numbers of a field, if they are times that Avro has."""
    return TIMES.get(said.get("timestamp", "")) if said.get("epoch") == "1970-01-01" else None


def _nullable(name: str, type: Any, doc: str = "") -> Schema:
    field: Schema = {"name": name, "type": ["null", type], "default": None}
    return field | ({"doc": doc} if doc else {})


def _array(items: Any) -> Schema:
    return {"type": "array", "items": items}


def _value(package: ModuleType, type: Type, column: Column, path: str, time: str | None = None) -> Any:
    match type:
        case ListOf(element=element):
            return _array(_value(package, element, column.value_type, f"{path}.item", time))
        case Pairs():
            pair = [{"name": side.name, "type": SCALARS[side.type]} for side in column.value_type]
            return _array(_named(f"{path}.pair", pair))
        case Record(fields=inside):
            return _record(package, fields_of(inside, column), column, path)
        case Union(options=options):
            return _choice(package, options, column, path)
    scalar = SCALARS[column]
    return {"type": scalar, "logicalType": time} if time and scalar == "long" else scalar


def _choice(package: ModuleType, options: Iterable[Record], column: Column, path: str) -> Schema:
    """Return a record with a field for each option, of which one is not null."""
    named = {option_name(package, option): option for option in options}
    fields = [
        _nullable(
            own.name,
            _value(package, named[own.name], own.type, f"{path}.{own.name}"),
            metadata_of(own).get("comment", ""),
        )
        for own in column
    ]
    return _named(path, fields)
