"""JSON Schema (2020-12) of what ``specwire decode --json`` writes and ``specwire encode --json-input`` reads.

A line has the message's class and its fields. Octets are hexadecimal text, a dictionary is an array of
[name, value] arrays, because names may come twice, and absence is null. Integers are those of the wire: up to
2 ** 64 - 1, which some readers of JSON round. Floats that are not finite are text.

Messages and records are in ``$defs``, and so are unions that contain themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from specwire.generated.codings import limits
from specwire.generated.layout import (
    Bits,
    Boolean,
    Digits,
    Enclosing,
    Float,
    Integer,
    Json,
    Keyword,
    ListOf,
    MessageLayout,
    Octets,
    Pairs,
    Present,
    Record,
    Span,
    Text,
    Type,
    Union,
    Uuid,
    Varint,
)
from specwire.runtime.schemas.fields import Column, Entry, entries_of, fields_of, messages_of, option_name

DIALECT = "https://json-schema.org/draft/2020-12/schema"
HEXADECIMAL = "^(?:[0-9a-f]{2})*$"

Schema = dict[str, Any]


def json_schema(package: ModuleType, message: str | None = None) -> Schema:
    """Return the schema of a line, or of the fields of one message class."""
    layouts = messages_of(package, message)
    writer = _Writer(package)
    found = {layout.class_name: writer.message(layout) for layout in layouts}
    if message is not None:
        definitions = {"$defs": writer.definitions} if writer.definitions else {}
        return {"$schema": DIALECT, **found[message], **definitions}
    return {
        "$schema": DIALECT,
        "title": f"Messages of {package.EDITION}",
        "type": "object",
        "required": ["message", "fields"],
        "oneOf": [*map(_line, found), _refused()],
        "$defs": found | writer.definitions,
    }


def _line(class_name: str) -> Schema:
    properties = {"message": {"const": class_name}, "fields": _reference(class_name)}
    return {"properties": properties, "not": {"required": ["error"]}}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _refused() -> Schema:
    """Return the schema of a line with frames that do not decode, and the reason."""
    error = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}
    frames = {"type": "array", "items": {"type": "string", "pattern": HEXADECIMAL}}
    return {
        "properties": {"fields": {"type": "null"}, "error": error, "frames": frames},
        "required": ["error", "frames"],
    }


class _Writer:
    """Writer of the schemas of messages; it collects the definitions of their records and unions."""

    def __init__(self, package: ModuleType) -> None:
        self.definitions: dict[str, Schema] = {}
        self._package = package
        self._referred: set[str] = set()
        """Names of records and unions that contain themselves."""

    def message(self, layout: MessageLayout) -> Schema:
        """Return the schema of the fields of a message."""
        column = self._package.columns.SCHEMA.field(layout.class_name).type
        title = f"{self._package.EDITION} {layout.name}"
        return {"title": title, **self._object(entries_of(layout, column))}

    def _object(self, entries: Iterable[Entry], *, tag: str | None = None) -> Schema:
        """Return an object with all of these fields and no others; `tag` names the record in its union."""
        properties: dict[str, Schema] = {} if tag is None else {"_type": {"const": tag}}
        for entry in entries:
            schema = self._value(entry.type, entry.column)
            schema = {"type": "array", "items": schema} if entry.many else schema
            schema = {"anyOf": [schema, {"type": "null"}]} if entry.absent else schema
            said = _description(entry.metadata)
            properties[entry.name] = schema | ({"description": said} if said else {})
        return {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }

    def _value(self, type: Type, column: Column) -> Schema:
        match type:
            case Integer(members=members) | Bits(members=members) if members:
                return {"enum": list(members)}
            case Integer() | Varint() | Digits():
                return _integer(*limits(type))
            case Bits(width=width, boolean=False):
                return _integer(0, 2**width - 1)
            case Boolean() | Present() | Bits():
                return {"type": "boolean"}
            case Float():
                return {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}
            case Uuid():
                return {"type": "string", "format": "uuid"}
            case Keyword(options=options):
                return {"enum": list(options)}
            case Text() | Json():
                return {"type": "string"}
            case Octets():
                return _octets(type)
            case ListOf(element=element, minimum=minimum):
                items = self._value(element, column.value_type)
                return {"type": "array", "items": items, "minItems": minimum}
            case Pairs():
                return self._pairs(type)
            case Record():
                return self._record(type, column)
            case Union():
                return self._union(type, column)
            case Enclosing(name=name):
                self._referred.add(name)
                return _reference(name)
        raise TypeError(f"{type!r} has no value of its own")

    def _pairs(self, type: Pairs) -> Schema:
        value = {"type": "string"} if type.value is None else self._value(type.value, None)
        pair = {"type": "array", "prefixItems": [{"type": "string"}, value], "minItems": 2, "items": False}
        return {"type": "array", "items": pair, "minItems": type.minimum}

    def _record(self, type: Record, column: Column) -> Schema:
        name = type.class_name
        if name not in self.definitions:
            tag = option_name(self._package, type) if getattr(self._package, name).TAGGED else None
            self.definitions[name] = self._object(fields_of(type.fields, column), tag=tag)
        return _reference(name)

    def _union(self, type: Union, column: Column) -> Schema:
        named = [(option, option_name(self._package, option)) for option in type.options]
        choice = {"oneOf": [self._record(option, column.field(name).type) for option, name in named]}
        if type.name in self._referred:
            self.definitions[type.name] = choice
        return choice


def _integer(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


def _octets(type: Octets) -> Schema:
    least, most = type.minimum, type.maximum
    match type.span:
        case Span(kind="fixed", octets=octets):
            least = most = octets
    schema: Schema = {"type": "string", "pattern": HEXADECIMAL}
    schema |= {"minLength": 2 * least} if least else {}
    return schema | ({"maxLength": 2 * most} if most is not None else {})


def _description(said: Mapping[str, str]) -> str:
    """Return the comment of a field, and its unit, which for a time is that since its epoch."""
    unit = f"Unit: {said['unit']}." if "unit" in said else ""
    return f"{said.get('comment', '')} {unit}".strip()
