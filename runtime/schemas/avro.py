"""Avro schema of the rows that ``columns.decode`` gives: one record with a nullable record for each message.

Types are those of the columns: integers of 8 octets are decimals of 20 digits, octets are bytes, a dictionary is an array
of records with name and value, one of several records is a record of which one field is not null. Fields that cannot be
absent are not nullable, which columns do not say. A record inside is in a namespace of its own, the path to it, so that
no two have one name.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

from specwire.generated.layout import (
    Integer,
    Json,
    Keyword,
    ListOf,
    Octets,
    Pairs,
    Record,
    Text,
    Type,
    Union,
)
from specwire.runtime.schemas.fields import (
    PRESENT,
    Entry,
    Words,
    entries_of,
    fields_of,
    messages_of,
    option_name,
)

Schema = dict[str, Any]

ERROR = ("message", "string"), ("field", "string"), ("frame", "int"), ("offset", "long"), ("kind", "string"), ("text", "string")  # fmt: skip
"""What `_error` holds, each of it null where it is not meant."""

_DIGITS = 20
"""Decimal digits of the largest integer of 8 octets."""


def avro_schema(package: ModuleType, message: str | None = None) -> Schema:
    """Return the schema of a row, or of the column of one message class."""
    words = Words(package)
    namespace = f"specwire.{package.__name__.rpartition('.')[2]}"
    records = {
        layout.class_name: _message(package, namespace, layout.class_name, entries_of(layout), words)
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
        _nullable(name, record, words.of_message(name).get("comment", "")) for name, record in records.items()
    ]
    return {"doc": f"A message of {package.EDITION}.", **_named(f"{namespace}._row", fields)}


def _error(namespace: str) -> Schema:
    return _named(f"{namespace}._error", [_nullable(name, type) for name, type in ERROR])


def _message(
    package: ModuleType, namespace: str, name: str, entries: Iterable[Entry], words: Words
) -> Schema:
    record = _record(package, f"{namespace}.{name}", entries)
    for field in record["fields"]:
        said = words.of_field(name, field["name"])
        field |= {"doc": said["comment"]} if "comment" in said else {}
        field |= {key: said[key] for key in ("abnf", "unit", "timestamp", "epoch", "source") if key in said}
    return record


def _named(path: str, fields: list[Schema]) -> Schema:
    namespace, _, name = path.rpartition(".")
    return {"type": "record", "namespace": namespace, "name": name, "fields": fields}


def _record(package: ModuleType, path: str, entries: Iterable[Entry]) -> Schema:
    fields = [_field(package, entry, path) for entry in entries]
    return _named(path, fields or [{"name": PRESENT, "type": "boolean"}])


def _field(package: ModuleType, entry: Entry, path: str) -> Schema:
    type = _value(package, entry.type, f"{path}.{entry.name}")
    type = _array(type) if entry.many else type
    return _nullable(entry.name, type) if entry.absent else {"name": entry.name, "type": type}


def _nullable(name: str, type: Any, doc: str = "") -> Schema:
    field: Schema = {"name": name, "type": ["null", type], "default": None}
    return field | ({"doc": doc} if doc else {})


def _array(items: Any) -> Schema:
    return {"type": "array", "items": items}


def _value(package: ModuleType, type: Type, path: str) -> Any:
    match type:
        case Integer(octets=octets):
            return _integer(octets)
        case Keyword() | Text() | Json():
            return "string"
        case Octets():
            return "bytes"
        case ListOf(element=element):
            return _array(_value(package, element, f"{path}.item"))
        case Pairs(value=value):
            content = "string" if value is None else _value(package, value, path)
            pair = [{"name": "name", "type": "string"}, {"name": "value", "type": content}]
            return _array(_named(f"{path}.pair", pair))
        case Record(fields=inside):
            return _record(package, path, fields_of(inside))
        case Union(options=options):
            return _choice(package, options, path)
    raise TypeError(f"{type!r} has no value of its own")


def _choice(package: ModuleType, options: Iterable[Record], path: str) -> Schema:
    """A record with a field for each option, of which one is not null."""
    names = [(option_name(package, option), option) for option in options]
    fields = [
        _nullable(name, _record(package, f"{path}.{name}", fields_of(option.fields)))
        for name, option in names
    ]
    return _named(path, fields)


def _integer(octets: int) -> Any:
    """The next signed type, as columns have it."""
    if octets < 4:
        return "int"
    if octets < 8:
        return "long"
    return {"type": "bytes", "logicalType": "decimal", "precision": _DIGITS, "scale": 0}
