"""Payloads of the profile (``[[payload]]``): JSON Schemas become types with names.

    JSON Schema                                   type
    --------------------------------------------  ------------------------------------------------
    object with ``properties``                    object with keys
    ... and ``additionalProperties`` of a schema  map of any values
    object with ``additionalProperties`` alone    map
    array with ``items``                          list
    ``enum`` and ``const``                        the values
    ``oneOf``, ``anyOf``, list of types           union if JSON distinguishes the types; objects are
                                                  a choice if a constant key distinguishes them
    ``$ref`` to ``#/...``                         the type there
    anything else                                 any value

The types allow every payload that the schema allows, and may allow more. The only exception is an
integer with a decimal point, such as ``2.0``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostics
from specwire.generator.profile.tables import LoadedProfile, PayloadTable

MAX_DEPTH = 32
"""Levels of types that are read; deeper ones are any value."""
MAX_TYPES = 10_000
"""Types that are read of one profile; references can lead to many more."""
MAX_NESTING = 100
"""Levels of JSON in a schema."""
MAX_OCTETS = 4 << 20
"""Octets of a schema that are read."""

_LIMITS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
)
_KINDS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}
_RESERVED = frozenset(
    {
        "Annotated",
        "Any",
        "False",
        "Literal",
        "Meta",
        "None",
        "PAYLOADS",
        "Payload",
        "PayloadReading",
        "Struct",
        "True",
        "TypeAlias",
    }
)
"""Names that the module of payloads uses itself."""
_UNFIT = re.compile(r"[\x00-\x1f\x7f\"\\]")
"""Characters of a key that the classes cannot have."""

Schema = Mapping[str, Any]


def build_payloads(
    loaded: LoadedProfile, messages: Sequence[ir.Message], diagnostics: Diagnostics
) -> ir.Payloads:
    """Return the payloads of a profile, or of its base if it has none; report invalid ones."""
    reader = _Reader()
    payloads, types = list[ir.Payload](), dict[str, ir.PayloadType]()
    level = defining_level(loaded)
    for number, table in enumerate(loaded.profile.payload):
        place = ("payload", number)
        schema = _read_schema(level, table, place, diagnostics)
        places = tuple(_places(table, messages))
        if not places:
            text = f"no message {table.message or ''} has {table.by!r} and a field with JSON".replace(
                "  ", " "
            )
            help = "name `message`, `field` and `by` as the protocol has them"
            diagnostics.warning("W425", level.place(*place, "topic"), text, help)
        if schema is None or not places:
            continue
        name = table.name or re.sub(r"\W+", "_", table.topic).strip("_").lower()
        if table.json_schema not in types:
            types[table.json_schema] = reader.read(schema, name)
        payloads.append(ir.Payload(table.topic, table.by, places, types[table.json_schema], name))
    return ir.Payloads(tuple(payloads), tuple(reader.classes.values()))


def defining_level(loaded: LoadedProfile) -> LoadedProfile:
    """Return the profile whose ``[[payload]]`` tables apply: the first of the levels that has any."""
    levels = list(loaded.levels)
    return next((level for level in levels if ("payload",) in level.places), levels[0])


def _read_schema(
    level: LoadedProfile, table: PayloadTable, place: tuple[str, int], diagnostics: Diagnostics
) -> Schema | None:
    path = level.folder / table.json_schema
    try:
        schema = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None  # reported when the profile was read
    except (OSError, ValueError, RecursionError) as error:
        message = f"{table.json_schema!r} is not JSON: {error}"
        diagnostics.error("E510", level.place(*place, "json-schema"), message, "give a JSON Schema")
        return None
    if _is_too_deep(schema):
        message = f"{table.json_schema!r} has more than {MAX_NESTING} levels"
        diagnostics.error("E510", level.place(*place, "json-schema"), message, "use $ref and $defs")
        return None
    if not isinstance(schema, dict):
        message = f"{table.json_schema!r} is not a JSON Schema"
        diagnostics.error("E510", level.place(*place, "json-schema"), message, "a schema is an object")
        return None
    return schema


def _places(table: PayloadTable, messages: Sequence[ir.Message]) -> Iterator[tuple[str, str]]:
    """Yield the fields that may have such a payload: those with JSON, unless the table names one."""
    for message in messages:
        fields = {field.attribute: field for field in message.fields}
        if table.by in fields and table.message in (None, message.class_name):
            for name, field in fields.items():
                if name == table.field or (table.field is None and field.content == "json"):
                    yield message.class_name, name


class _Reader:
    """Types of the schemas of a protocol; equal definitions of several schemas are one class."""

    def __init__(self) -> None:
        self.classes: dict[str, ir.PayloadObject | ir.PayloadChoice] = {}
        self._sources: dict[str, str] = {}
        """The schema of each class name in use."""
        self._root: Schema = {}
        self._types = 0
        """Types that were read so far."""

    def read(self, schema: Schema, name: str) -> ir.PayloadType:
        """Return the type of a payload called `name`."""
        self._root = schema
        return self._type(schema, _camel(name), 0)

    def _type(self, schema: Any, name: str, depth: int) -> ir.PayloadType:
        self._types += 1
        if depth > MAX_DEPTH or self._types > MAX_TYPES or not isinstance(schema, Mapping):
            return ir.AnyPayload()
        if isinstance(schema.get("$ref"), str):
            short = schema["$ref"].rpartition("/")[2]
            found = self._referred(schema["$ref"])
            return ir.AnyPayload() if found is None else self._type(found, _camel(short), depth + 1)
        options = schema.get("oneOf") or schema.get("anyOf")
        if isinstance(options, list) and options:
            return self._options(schema, options, name, depth)
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list) and values:
            return _literal(values)
        stated = schema.get("type", "object" if "properties" in schema else None)
        if isinstance(stated, list):
            types = [self._type({**schema, "type": one}, name, depth + 1) for one in stated if one != "null"]
            return _union(types, null="null" in stated)
        return self._plain(schema, stated, name, depth)

    def _plain(self, schema: Schema, kind: Any, name: str, depth: int) -> ir.PayloadType:
        if kind in _KINDS:
            return ir.ScalarPayload(kind, limits=_limits(schema))
        if kind == "array":
            limits = tuple(one for one in _limits(schema) if one[0] in ("minItems", "maxItems"))
            return ir.ListPayload(self._type(schema.get("items"), name, depth + 1), limits)
        if kind != "object":
            return ir.AnyPayload()
        others = schema.get("additionalProperties")
        properties = schema.get("properties")
        if isinstance(properties, Mapping) and properties:
            return (
                self._object(schema, name, depth, None)
                if _is_plain(schema)
                else ir.MapPayload(ir.AnyPayload())
            )
        is_map = isinstance(others, Mapping) and "patternProperties" not in schema
        return ir.MapPayload(self._type(others, name, depth + 1) if is_map else ir.AnyPayload())

    def _options(self, schema: Schema, options: list[Any], name: str, depth: int) -> ir.PayloadType:
        plain = [one for one in options if one != {"type": "null"}]
        has_null = len(plain) < len(options)
        resolved = [self._resolved(one) for one in plain]
        key = _tag_key(resolved)
        if key is None:
            if "properties" in schema:  # alternatives of what the keys allow
                return self._plain(schema, "object", name, depth)
            found = [self._type(one, f"{name}{n}" if len(plain) > 1 else name, depth + 1)
                     for n, one in enumerate(plain, 1)]  # fmt: skip
            return _union(found, null=has_null)
        unique = self._unique(name, schema)
        if unique not in self.classes:
            names = [
                self._object(one, f"{unique}{_camel(one['properties'][key]['const'])}", depth, key).class_name
                for one in resolved
            ]
            self.classes[unique] = ir.PayloadChoice(unique, tuple(names), _doc(schema))
        choice = ir.NamedPayload(unique)
        return ir.UnionPayload((choice,), null=True) if has_null else choice

    def _object(self, schema: Schema, name: str, depth: int, tag: str | None) -> ir.NamedPayload:
        unique = self._unique(name, schema)
        if unique in self.classes:
            return ir.NamedPayload(unique)
        self.classes[unique] = ir.PayloadObject(unique, ())  # it may refer to itself
        required = schema.get("required", ())
        keys = []
        for key, inner in schema["properties"].items():
            if key != tag:
                inner_name = f"{unique}{_camel(key)}"
                type = self._type(inner, inner_name, depth + 1)
                keys.append(ir.PayloadKey(key, type, key in required, _doc(inner)))
        value = (tag, schema["properties"][tag]["const"]) if tag else None
        closed = schema.get("additionalProperties") is False
        del self.classes[unique]  # the objects in it are defined before it
        self.classes[unique] = ir.PayloadObject(unique, tuple(keys), _doc(schema), value, closed)
        return ir.NamedPayload(unique)

    def _unique(self, name: str, schema: Schema) -> str:
        """Return `name`, with a number if another schema has it."""
        source = json.dumps([schema, self._referred_by(schema, {})], sort_keys=True)
        number, unique = 1, name
        while unique in _RESERVED or self._sources.setdefault(unique, source) != source:
            number += 1
            unique = f"{name}{number}"
        return unique

    def _referred_by(self, schema: Any, found: dict[str, Any]) -> dict[str, Any]:
        """Return the schemas to which `schema` refers, directly or not, added to `found`."""
        if isinstance(schema, list):
            for one in schema:
                self._referred_by(one, found)
        elif isinstance(schema, Mapping):
            reference = schema.get("$ref")
            if isinstance(reference, str) and reference not in found:
                found[reference] = self._referred(reference)
                self._referred_by(found[reference], found)
            self._referred_by(list(schema.values()), found)
        return found

    def _resolved(self, schema: Any) -> Any:
        reference = schema.get("$ref") if isinstance(schema, Mapping) else None
        return self._referred(reference) if isinstance(reference, str) else schema

    def _referred(self, reference: str) -> Any:
        """Return the schema at ``#/a/b``; None if there is none."""
        found: Any = self._root
        if not reference.startswith("#"):
            return None
        for step in reference.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        return found


def _tag_key(options: Sequence[Any]) -> str | None:
    """Return the key whose constant text distinguishes the objects; None if there is none."""
    if len(options) < 2 or not all(isinstance(one, Mapping) and one.get("properties") for one in options):
        return None
    for key in options[0]["properties"]:
        values = [_constant(one, key) for one in options]
        fit = all(isinstance(value, str) and _is_fit(value) for value in values)
        if fit and len(set(values)) == len(values) and all(_is_plain(one) for one in options):
            return cast(str, key)
    return None


def _is_plain(schema: Schema) -> bool:
    """Return whether a class can have all keys of an object."""
    open_to = schema.get("additionalProperties")
    is_open = open_to is True or isinstance(open_to, Mapping) or "patternProperties" in schema
    return not is_open and all(map(_is_fit, schema["properties"]))


def _is_fit(text: str) -> bool:
    """Return whether a class can have a key, or a tag, with this name."""
    return text != "" and not _UNFIT.search(text) and _is_unicode(text)


def _is_unicode(text: str) -> bool:
    """Return whether a text has no half of a character, as JSON can write it."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _constant(schema: Schema, key: str) -> Any:
    inner = schema["properties"].get(key)
    return inner.get("const") if isinstance(inner, Mapping) and key in schema.get("required", ()) else None


def _literal(values: list[Any]) -> ir.PayloadType:
    """Return the type of one of several values; strings and integers can be listed."""
    null, values = None in values, [value for value in values if value is not None]
    kinds = {type(value) for value in values}
    if kinds == {str}:
        scalar = ir.ScalarPayload("string", tuple(values) if all(map(_is_unicode, values)) else ())
    elif kinds == {int}:
        is_short = all(-(2**63) <= value < 2**63 for value in values)
        scalar = ir.ScalarPayload("integer", tuple(values) if is_short else ())
    elif kinds == {bool}:
        scalar = ir.ScalarPayload("boolean")
    else:
        return ir.AnyPayload()
    return ir.UnionPayload((scalar,), null=True) if null else scalar


def _union(types: Sequence[ir.PayloadType], *, null: bool) -> ir.PayloadType:
    """Return a union if JSON distinguishes the types, else any value."""
    kinds = [_json_kind(type) for type in types]
    if not types or "any" in kinds or len(set(kinds)) < len(kinds):
        return ir.AnyPayload()
    if len(types) == 1:
        return ir.UnionPayload(tuple(types), null=True) if null else types[0]
    return ir.UnionPayload(tuple(map(_without_pattern, types)), null=null)


def _without_pattern(type: ir.PayloadType) -> ir.PayloadType:
    """Return a type without a pattern: msgspec 0.22 crashes on one beside a list or a dictionary."""
    if not isinstance(type, ir.ScalarPayload):
        return type
    limits = tuple(limit for limit in type.limits if limit[0] != "pattern")
    return msgspec.structs.replace(type, limits=limits)


def _json_kind(type: ir.PayloadType) -> str:
    match type:
        case ir.ScalarPayload():
            return _KINDS[type.type]
        case ir.ListPayload():
            return "array"
        case ir.MapPayload() | ir.NamedPayload():
            return "object"
    return "any"


def _limits(schema: Schema) -> tuple[tuple[str, int | float | str], ...]:
    found = {key: schema[key] for key in _LIMITS if _is_limit(key, schema.get(key), schema.get("type"))}
    for bound in ("Minimum", "Maximum"):
        if f"exclusive{bound}" in found:  # a class has one of the two
            found.pop(bound.lower(), None)
    return tuple(found.items())


def _is_limit(key: str, value: Any, kind: Any) -> bool:
    if key == "pattern":
        return isinstance(value, str) and _is_unicode(value) and _is_expression(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 2**63:
        return False
    if key in ("minLength", "maxLength", "minItems", "maxItems"):
        return isinstance(value, int) and value >= 0
    return isinstance(value, int) or kind == "number"


def _is_expression(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def _camel(name: str) -> str:
    words = re.findall(r"[A-Za-z0-9]+", name)
    text = "".join(word[:1].upper() + word[1:] for word in words) or "Value"
    return text if text[0].isalpha() else f"Payload{text}"


def _doc(schema: Any) -> str:
    text = schema.get("description") if isinstance(schema, Mapping) else None
    if not isinstance(text, str):
        return ""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _is_too_deep(schema: Any) -> bool:
    level = [schema]
    for _ in range(MAX_NESTING):
        lists = (list(one.values()) if isinstance(one, dict) else one for one in level)
        level = [inner for one in lists for inner in one if isinstance(inner, dict | list)]
        if not level:
            return False
    return True
