"""JSON Schema to Arrow types: the part of the language that says which columns there are.

    object with ``properties``      struct, a field for each of them in their order
    array with ``items``            list
    string, integer, number, boolean    string, int64, double, bool
    ``enum`` and ``const``          the type of their values, string where they are mixed
    ``$ref`` to ``#/…``             what stands there

Every column is nullable, so a type together with ``null``, alone in an ``anyOf`` or in a list of types, is
that type. Alternatives (``anyOf``, ``oneOf``) beside ``properties`` decide nothing about columns. Values of
several types (other alternatives), objects without named properties and arrays without one kind of items are
strings with JSON. Rules about values (lengths, patterns, required) decide nothing about columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

DEEPEST = 32
"""Levels of a schema that are followed; one that refers to itself has no end."""

_SCALARS: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
}


class JsonTypeError(ValueError):
    """A schema that gives no columns: one sentence."""


def struct_of(schema: Any) -> pa.StructType:
    """Return the columns that the objects of a schema have.

    Raises:
        JsonTypeError: it is not about objects with named properties, refers to nothing or to itself.
    """
    found = _type(schema, schema, 0)
    if not isinstance(found, pa.StructType):
        raise JsonTypeError("the schema is not one of an object with `properties`")
    return found


def _type(schema: Any, root: Any, depth: int) -> pa.DataType:
    if depth > DEEPEST:
        raise JsonTypeError(f"the schema is deeper than {DEEPEST} levels, or refers to itself")
    if not isinstance(schema, Mapping):
        return pa.string()
    if "$ref" in schema:
        return _type(_referred(str(schema["$ref"]), root), root, depth + 1)
    if isinstance(schema.get("properties"), Mapping) and schema["properties"] and _kind(schema) == "object":
        # Alternatives beside them are about the same properties.
        fields = [(name, _type(inner, root, depth + 1)) for name, inner in schema["properties"].items()]
        return pa.struct(fields)
    choices = [one for one in (*schema.get("anyOf", ()), *schema.get("oneOf", ())) if one != {"type": "null"}]
    if choices:
        return _type(choices[0], root, depth + 1) if len(choices) == 1 else pa.string()
    kind = _kind(schema)
    if kind == "array" and isinstance(schema.get("items"), Mapping):
        return pa.list_(_type(schema["items"], root, depth + 1))
    return _SCALARS.get(kind, pa.string())


def _kind(schema: Mapping[str, Any]) -> str:
    """The one type that values have, null aside; empty where there are several."""
    stated = schema.get("type", ())
    kinds = {stated} if isinstance(stated, str) else set(stated)
    values = [*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())]
    if not kinds:
        kinds = {_kind_of(value) for value in values}
    if not kinds and "properties" in schema:
        return "object"
    kinds -= {"null"}
    return kinds.pop() if len(kinds) == 1 else ""


def _kind_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
    return "string" if isinstance(value, str) else ""


def _referred(reference: str, root: Any) -> Any:
    """What stands at ``#/a/b``."""
    found = root
    if not reference.startswith("#"):
        raise JsonTypeError(f"`$ref` names {reference!r}, which is not in the schema itself")
    for step in reference.removeprefix("#").split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or key not in found:
            raise JsonTypeError(f"`$ref` names {reference!r}, which is not there")
        found = found[key]
    return found
