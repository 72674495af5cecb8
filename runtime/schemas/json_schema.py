"""JSON Schema (2020-12) of what ``specwire decode --json`` writes and ``specwire encode --json-input`` reads.

A line has the message's class and its fields. Octets are hexadecimal text, a dictionary is an array of
[name, value] arrays, because names may come twice, and absence is null. Integers are those of the wire: up to
2 ** 64 - 1, which some readers of JSON round.
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
    MessageLayout,
    Octets,
    Pairs,
    Record,
    Span,
    Text,
    Type,
    Union,
)
from specwire.runtime.schemas.fields import Entry, Words, entries_of, fields_of, messages_of, option_name

DIALECT = "https://json-schema.org/draft/2020-12/schema"
HEXADECIMAL = "^(?:[0-9a-f]{2})*$"

Schema = dict[str, Any]


def json_schema(package: ModuleType, message: str | None = None) -> Schema:
    """Return the schema of a line, or of the fields of one message class."""
    words = Words(package)
    if message is not None:
        (layout,) = messages_of(package, message)
        return {"$schema": DIALECT, **_message(package, layout, words)}
    layouts = messages_of(package)
    choices = [_line(package, layout) for layout in layouts]
    return {
        "$schema": DIALECT,
        "title": f"Messages of {package.EDITION}",
        "type": "object",
        "required": ["message", "fields"],
        "oneOf": [*choices, _refused()],
        "$defs": {layout.class_name: _message(package, layout, words) for layout in layouts},
    }


def _line(package: ModuleType, layout: MessageLayout) -> Schema:
    properties = {
        "message": {"const": layout.class_name},
        "fields": {"$ref": f"#/$defs/{layout.class_name}"},
    }
    return {"properties": properties, "not": {"required": ["error"]}}


def _refused() -> Schema:
    """A line about frames that are no message: it says why, and has the frames."""
    error = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
    frames = {"type": "array", "items": {"type": "string", "pattern": HEXADECIMAL}}
    return {
        "properties": {"fields": {"type": "null"}, "error": error, "frames": frames},
        "required": ["error", "frames"],
    }


def _message(package: ModuleType, layout: MessageLayout, words: Words) -> Schema:
    entries = list(entries_of(layout))
    schema = _object(package, entries)
    for entry in entries:
        said = words.of_field(layout.class_name, entry.name)
        if "comment" in said:
            schema["properties"][entry.name]["description"] = said["comment"]
    return {"title": f"{package.EDITION} {layout.name}", **schema}


def _object(package: ModuleType, entries: Iterable[Entry], *, tag: str | None = None) -> Schema:
    """An object with all of these fields and no others; `tag` tells it from the others of a choice."""
    properties: dict[str, Schema] = {} if tag is None else {"_type": {"const": tag}}
    for entry in entries:
        schema = _value(package, entry.type)
        schema = {"type": "array", "items": schema} if entry.many else schema
        properties[entry.name] = {"anyOf": [schema, {"type": "null"}]} if entry.absent else schema
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _value(package: ModuleType, type: Type) -> Schema:
    match type:
        case Integer(octets=octets, members=members):
            return (
                {"enum": list(members)}
                if members
                else {"type": "integer", "minimum": 0, "maximum": 256**octets - 1}
            )
        case Keyword(options=options):
            return {"enum": list(options)}
        case Text() | Json():
            return {"type": "string"}
        case Octets():
            return _octets(type)
        case ListOf(element=element, minimum=minimum):
            return {"type": "array", "items": _value(package, element), "minItems": minimum}
        case Pairs():
            return _pairs(package, type)
        case Record(fields=fields):
            return _object(package, fields_of(fields))
        case Union(options=options):
            return {"oneOf": [_option(package, option) for option in options]}
    raise TypeError(f"{type!r} has no value of its own")


def _octets(type: Octets) -> Schema:
    least, most = type.minimum, type.maximum
    match type.span:
        case Span(kind="fixed", octets=octets):
            least = most = octets
    schema: Schema = {"type": "string", "pattern": HEXADECIMAL}
    schema |= {"minLength": 2 * least} if least else {}
    return schema | ({"maxLength": 2 * most} if most is not None else {})


def _pairs(package: ModuleType, type: Pairs) -> Schema:
    value = {"type": "string"} if type.value is None else _value(package, type.value)
    pair = {"type": "array", "prefixItems": [{"type": "string"}, value], "minItems": 2, "items": False}
    return {"type": "array", "items": pair, "minItems": type.minimum}


def _option(package: ModuleType, option: Record) -> Schema:
    return _object(package, fields_of(option.fields), tag=option_name(package, option))
