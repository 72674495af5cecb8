"""Columns of messages: the common model behind the pyarrow and Spark schemas.

- An unsigned integer becomes the next wider signed type, because Spark has no unsigned ones. A signed one
  becomes the narrowest type for its octets.
- Bits of an integer become the column of an integer of as few octets, or a boolean.
- Other numbers become the narrowest type that holds all their values, UUIDs strings.
- A dictionary becomes a list of (name, value) structs, which keeps repeated names.
- A record becomes a struct of its fields.
- A union becomes a struct with one nullable struct for each record, named after it, in the order in
  which their tags are compared.
- A value inside a record or union of the same kind becomes its octets, because a type cannot contain
  itself.
- Octets computed from other fields (constants, padding, sizes, checksums) have no column.
- Whether constants are present becomes a boolean.
- A message or record without other fields gets the column ``_present``, because a struct needs a
  field.

The table of a message has additional columns for the bits of flags, for JSON values and for timestamps
(`derived`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from specwire.generator import ir
from specwire.generator.emit.python import sentence
from specwire.generator.support.plan import by_tag

Scalar = Literal[
    "int8", "int16", "int32", "int64", "uint64", "float32", "float64", "string", "binary", "bool"
]  # fmt: skip

UNSIGNED: dict[int, Scalar] = {
    1: "int16",
    2: "int32",
    3: "int32",
    4: "int64",
    5: "int64",
    6: "int64",
    7: "int64",
    8: "uint64",
}
"""Columns of unsigned integers, by their octets."""

SIGNED: dict[int, Scalar] = {
    1: "int8",
    2: "int16",
    3: "int32",
    4: "int32",
    5: "int64",
    6: "int64",
    7: "int64",
    8: "int64",
}
"""Columns of signed integers, by their octets."""

SAFE_DIGITS = {10: 18, 16: 15}
"""The most digits of each base whose number always fits in a signed integer of 64 bits."""


@dataclass(frozen=True, slots=True)
class Many:
    """Array of values."""

    element: Kind


@dataclass(frozen=True, slots=True)
class Pairs:
    """Array of (name, value) structs."""

    value: Literal["string", "binary"]


@dataclass(frozen=True, slots=True)
class Struct:
    """Record: one column for each of its fields."""

    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """Record of a union: the column that holds it, and its class."""

    name: str
    class_name: str
    struct: Struct
    comment: str


@dataclass(frozen=True, slots=True)
class Options:
    """One of several records."""

    options: tuple[Option, ...]


Kind = Scalar | Many | Pairs | Struct | Options


@dataclass(frozen=True, slots=True)
class Column:
    """Field of a struct, and the attribute from which it is read."""

    name: str
    attribute: str
    kind: Kind
    metadata: tuple[tuple[str, str], ...]
    """``comment``, ``abnf`` (the rule), ``unit``, ``octets`` (fixed size), ``content``, ``timestamp``
    and ``epoch``, ``source``.

    Empty ones are omitted.
    """
    required: bool = False
    """Every message has a value."""
    rule: str = ""
    """The field's rule, or else the rule that contains it; empty for a column without a field."""
    line: int = 0
    """Line of the field in the grammar; 0 if it is not from there."""

    def written(self, type: str) -> str:
        """Return the source of the call that makes this column with `type`, the source of its type."""
        about = dict(self.metadata)
        more = {
            key: about[key] for key in ("unit", "octets", "content", "timestamp", "epoch") if key in about
        }
        named = [] if "abnf" in about else ["named=False"]
        arguments = [repr(self.name), type, repr(about["comment"]), repr(self.rule)]
        arguments += [str(self.line)] if self.line else []
        return f"field({', '.join(arguments + named + [f'{key}={value!r}' for key, value in more.items()])})"


@dataclass(frozen=True, slots=True)
class Derived:
    """Column of a message's table derived from the column `of`.

    It is one bit of it (`mask`), the time that it means (`timestamp`), or else the JSON in it.
    """

    name: str
    of: str
    comment: str
    mask: int = 0
    timestamp: ir.Timestamp | None = None
    many: bool = False
    """The column `of` is a list of timestamps."""


PRESENT = "_present"


def columns(message: ir.Message, protocol: ir.Protocol) -> tuple[Column, ...]:
    """Return the columns of a message in wire order."""
    found: list[Column] = []
    for part in message.parts:
        many = not isinstance(part, ir.Frame)
        for field in (part.field,) if isinstance(part, ir.Stack | ir.Rest) else part.fields:
            if not field.implied:
                found.append(_column(_closed(field), message.name, protocol, many=many))
    return tuple(found) or (_present(f"the message is {message.name}"),)


def column(field: ir.Field, message: ir.Message, protocol: ir.Protocol, *, many: bool) -> Column:
    """Return the column of one field of a message; `many` for a tuple of frames."""
    return _column(_closed(field), message.name, protocol, many=many)


def derived(message: ir.Message, protocol: ir.Protocol) -> tuple[Derived, ...]:
    """Return the derived columns of a message's table; their names differ from its fields, ignoring case."""
    there = columns(message, protocol)
    taken = {column.name.casefold() for column in there}
    found: list[Derived] = []
    for field in (field for field in message.fields if not field.implied):
        if isinstance(field.type, ir.IntegerType) and field.type.bitmask:
            found += (
                Derived(
                    _free(f"{field.name}_{bit.name.lower()}", taken), field.name, sentence(bit.doc), bit.value
                )
                for bit in protocol.flags
            )
        elif _holds_json(field):
            comment = f"The JSON value in {field.name}; null where it holds none."
            found.append(Derived(_free(f"{field.name}_json", taken), field.name, comment))
        elif field.timestamp is not None:
            many = isinstance(field.type, ir.ListType)
            comment = f"Time of {field.name}; null outside the years 0001 to 9999."
            name = _free(f"{field.name}_time", taken)
            found.append(Derived(name, field.name, comment, timestamp=field.timestamp, many=many))
    return tuple(found)


def _holds_json(field: ir.Field) -> bool:
    declared = field.content == "json" and isinstance(field.type, ir.TextType | ir.OctetsType)
    return declared or isinstance(field.type, ir.JsonType)


def _free(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, and mark it as taken."""
    while name.casefold() in taken:
        name += "_"
    taken.add(name.casefold())
    return name


def describe_kind(kind: Kind) -> str:
    """Return a short description of a column's type."""
    match kind:
        case Many(element=element):
            return f"list of {describe_kind(element)}"
        case Pairs(value="string"):
            return "pairs"
        case Pairs():
            return "pairs of text and octets"
        case Struct(columns=inside):
            return f"struct of {_listed((column.name, column.kind) for column in inside)}"
        case Options(options=options):
            return f"struct of {_listed((option.name, option.struct) for option in options)}"
        case scalar:
            return scalar


def _listed(inside: Iterable[tuple[str, Kind]]) -> str:
    return f"({', '.join(f'{name}: {describe_kind(kind)}' for name, kind in inside)})"


def _present(where: str) -> Column:
    return Column(PRESENT, PRESENT, "bool", (("comment", f"True where {where}: it has no fields."),), True)


def _column(field: ir.Field, owner: str, protocol: ir.Protocol, *, many: bool = False) -> Column:
    bitmask = isinstance(field.type, ir.IntegerType) and field.type.bitmask
    kind = _kind(field.type, owner, protocol)
    line = f", grammar line {field.line}" if field.line else ""
    metadata = {
        "comment": sentence(field.doc) or sentence(field.name.replace("_", " ")),
        "abnf": field.rule or "",
        "unit": field.unit or "",
        "octets": _fixed_octets(field.type),
        "content": field.content or "",
        "timestamp": field.timestamp.unit if field.timestamp else "",
        "epoch": field.timestamp.epoch if field.timestamp else "",
        "source": f"{protocol.edition}, rule {field.rule or owner}{line}",
    }
    return Column(
        name=field.name,
        attribute="wire_flags" if bitmask else field.attribute,
        kind=Many(kind) if many else kind,
        metadata=tuple((key, value) for key, value in metadata.items() if value),
        required=not (field.nullable or field.optional),
        rule=field.rule or owner,
        line=field.line or 0,
    )


def _fixed_octets(type: ir.Type) -> str:
    match type:
        case ir.IntegerType(octets=octets) | ir.FloatType(octets=octets) | ir.BooleanType(octets=octets):
            return str(octets)
        case ir.OctetsType(length=ir.Length(kind="fixed", octets=octets)):
            return str(octets)
        case ir.UuidType():
            return "16"
    return ""


def _kind(type: ir.Type, owner: str, protocol: ir.Protocol) -> Kind:
    match type:
        case ir.IntegerType(octets=octets, signed=signed):
            return (SIGNED if signed else UNSIGNED)[octets]
        case ir.BitType(width=width, boolean=boolean):
            return "bool" if boolean else UNSIGNED[-(-width // 8)]
        case ir.FloatType(octets=octets):
            return "float32" if octets == 4 else "float64"
        case ir.BooleanType() | ir.PresentType():
            return "bool"
        case ir.VarintType(signed=signed):
            return "int64" if signed else "uint64"
        case ir.DigitsType(base=base, maximum=maximum, signed=signed):
            return "int64" if signed or maximum <= SAFE_DIGITS[base] else "uint64"
        case ir.OctetsType() | ir.EnclosingType():
            return "binary"
        case ir.PairsType(value=ir.OctetsType()):
            return Pairs("binary")
        case ir.PairsType():
            return Pairs("string")
        case ir.ListType(element=element):
            return Many(_kind(element, owner, protocol))
        case ir.RecordType():
            return _struct(type, owner, protocol)
        case ir.UnionType(options=options, tags=tags, folded=folded):
            numbers = [str(number) for number in range(len(options))]
            order = by_tag(numbers, list(map(bytes.fromhex, tags)), folded=folded)
            return Options(tuple(_option(options[int(number)], owner, protocol) for _, number in order))
    return "string"


def _struct(type: ir.RecordType, owner: str, protocol: ir.Protocol) -> Struct:
    owner = type.rule or owner
    inside = tuple(_column(field, owner, protocol) for field in type.fields if not field.implied)
    return Struct(inside or (_present(f"there is a {type.name}"),))


def _option(type: ir.RecordType, owner: str, protocol: ir.Protocol) -> Option:
    comment = sentence(type.doc) or sentence(type.name.replace("_", " "))
    return Option(type.name, type.class_name, _struct(type, owner, protocol), f"{comment} Null for another.")


def _closed(field: ir.Field, around: frozenset[str] = frozenset()) -> ir.Field:
    """Return a field with `EnclosingType` for each value of the kind of one of the records `around` it."""
    return msgspec.structs.replace(field, type=_closed_type(field.type, around))


def _closed_type(type: ir.Type, around: frozenset[str]) -> Any:
    match type:
        case ir.ListType(element=element):
            return msgspec.structs.replace(type, element=_closed_type(element, around))
        case ir.RecordType(class_name=name, fields=fields) if name not in around:
            inside = tuple(_closed(field, around | {name}) for field in fields)
            return msgspec.structs.replace(type, fields=inside)
        case ir.RecordType(class_name=name):
            return ir.EnclosingType(name)
        case ir.UnionType(name=name, options=options):
            if any(option.class_name in around for option in options):
                return ir.EnclosingType(name)
            records = tuple(_closed_type(option, around) for option in options)
            return msgspec.structs.replace(type, options=records)
    return type
