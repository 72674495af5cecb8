"""What a message is as a row: the columns that pyarrow's and Spark's schemas are both written from.

Unsigned integers take the next wider signed type, because Spark has no unsigned ones. Dictionaries are
lists of (name, value) structs, which keep repeated names. Constants of the grammar are left out; a
message with no other fields gets ``_present``, because a struct must have a field.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specwire.generator import ir
from specwire.generator.emit.python import sentence

Kind = Literal["int16", "int32", "int64", "uint64", "string", "binary", "pairs", "bool"]

INTEGERS: dict[int, Kind] = {
    1: "int16",
    2: "int32",
    3: "int32",
    4: "int64",
    5: "int64",
    6: "int64",
    7: "int64",
    8: "uint64",
}


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a message's struct; `repeated` where it is a list of its kind."""

    name: str
    attribute: str
    kind: Kind
    repeated: bool
    metadata: tuple[tuple[str, str], ...]
    """``comment``, ``abnf`` (the rule), ``unit``, ``source``; only those that say something."""


PRESENT = "_present"


def columns(message: ir.Message, protocol: ir.Protocol) -> tuple[Column, ...]:
    """Return the columns of a message in wire order."""
    found: list[Column] = []
    for part in message.parts:
        many = not isinstance(part, ir.Frame)
        for field in (part.field,) if isinstance(part, ir.Stack | ir.Rest) else part.fields:
            if not field.constant:
                found.append(_column(field, many, message, protocol))
    if not found:
        metadata = (("comment", f"True where the message is {message.name}: it has no fields."),)
        found.append(Column(PRESENT, PRESENT, "bool", False, metadata))
    return tuple(found)


def _column(field: ir.Field, many: bool, message: ir.Message, protocol: ir.Protocol) -> Column:
    bitmask = isinstance(field.type, ir.IntegerType) and field.type.bitmask
    kind, repeated = _kind(field.type)
    line = f", grammar line {field.line}" if field.line else ""
    metadata = {
        "comment": sentence(field.doc) or sentence(field.name.replace("_", " ")),
        "abnf": field.rule or "",
        "unit": field.unit or "",
        "source": f"{protocol.edition}, rule {field.rule or message.name}{line}",
    }
    return Column(
        name=field.name,
        attribute="wire_flags" if bitmask else field.attribute,
        kind=kind,
        repeated=repeated or many,
        metadata=tuple((key, value) for key, value in metadata.items() if value),
    )


def _kind(type: ir.Type) -> tuple[Kind, bool]:
    match type:
        case ir.IntegerType(octets=octets):
            return INTEGERS[octets], False
        case ir.OctetsType():
            return "binary", False
        case ir.PairsType():
            return "pairs", False
        case ir.ListType(element=element):
            return _kind(element)[0], True
    return "string", False
