"""Types of rules that the profile declares, if the grammar's shape allows them.

The profile declares how octets are read, never how many there are: the grammar defines lengths, counts and
widths. A declaration that does not fit the rule is E402 and points into the profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from specwire.generator import ir
from specwire.generator.names import constant_name
from specwire.generator.passes.alternations import LARGEST_INTEGER, name_enum
from specwire.generator.profile import TypeHint
from specwire.generator.syntax import Repetition, Rule

if TYPE_CHECKING:
    from specwire.generator.passes.types import TypeReader


_REST = ir.Length("rest")
PRIMITIVES: Mapping[str, ir.Type] = MappingProxyType(
    {"octets": ir.OctetsType(_REST), "text": ir.TextType(_REST), "json": ir.JsonType()}
)
"""Types of names that only the profile declares: each is the rest of the frame."""


def says_type(hint: TypeHint) -> bool:
    """Whether the profile declares a rule's value, so that no assumption about it is reported."""
    return hint.type is not None or hint.constant is not None or bool(hint.members)


def read(reader: TypeReader, rule: Rule, hint: TypeHint, shape: ir.Type | None) -> ir.Type | None:
    """Return the type that the profile declares for a rule of that shape; None after E402."""
    if hint.members:
        found = _members(reader, rule, hint, shape)
    elif hint.constant is not None:
        found = constant_of(hint.constant, shape)
    else:
        found = _retyped(reader, rule, hint, shape or _opaque(reader, rule))
    if not isinstance(found, str):
        return found
    reader.diagnostics.error(
        "E402",
        reader.profile.place("types", rule.name),
        f"the declaration does not fit rule '{rule}': {found}",
        f"correct it; the rule is defined at {rule.name_span}",
    )
    return None


def _members(reader: TypeReader, rule: Rule, hint: TypeHint, shape: ir.Type | None) -> ir.Type | str:
    if not isinstance(shape, ir.IntegerType):
        return "an enumeration must be an integer"
    width = shape.octets
    if not all(0 <= value < 256**width for value in hint.members.values()):
        return f"a member of the enumeration does not fit {width} octets"
    if len({constant_name(name) for name in hint.members}) < len(hint.members):
        return "two members of the enumeration have the same name"
    return name_enum(reader, rule, tuple(hint.members.items()), width)


def constant_of(constant: str | int, shape: ir.Type | None) -> ir.ConstantType | str:
    """Return the constant type of a rule with that shape, or the reason why it cannot be constant."""
    match shape, constant:
        case ir.IntegerType(octets=octets), int(number) if 0 <= number < 256**octets:
            return ir.ConstantType(number.to_bytes(octets, "big").hex(), number=number)
        case ir.OctetsType(length=ir.Length(kind="fixed", octets=octets)), int(number) if (
            octets <= LARGEST_INTEGER and 0 <= number < 256**octets
        ):
            return ir.ConstantType(number.to_bytes(octets, "big").hex(), number=number)
        case ((ir.TextType(length=length) | ir.OctetsType(length=length)), str(text)):
            raw = text.encode()
            if length.kind == "prefix" and len(raw) < 256**length.octets:
                return ir.ConstantType((len(raw).to_bytes(length.octets, "big") + raw).hex(), text=text)
            if length.kind == "rest" or (length.kind == "fixed" and len(raw) == length.octets):
                return ir.ConstantType(raw.hex(), text=text)
    return "a constant must be a text or an integer that the rule can hold"


def _retyped(reader: TypeReader, rule: Rule, hint: TypeHint, type: ir.Type | None) -> ir.Type | str:
    match hint.type, type:
        case "integer", ir.IntegerType(octets=octets):
            return ir.IntegerType(octets)
        case "integer", ir.OctetsType(length=ir.Length(kind="fixed", octets=octets)) if octets <= 8:
            return ir.IntegerType(octets)
        case "integer", _:
            return "an integer must be a number of octets, from 1 to 8"
        case "octets", ir.OctetsType():
            return type
        case "octets", ir.IntegerType(octets=octets):
            return ir.OctetsType(ir.Length("fixed", octets), octets)
        case "octets", ir.TextType(length=ir.Length(kind="rest")) if extent := _extent(reader, rule):
            return ir.OctetsType(ir.Length("fixed", extent), extent)
        case "octets", ir.TextType(length=length):
            return ir.OctetsType(length, _minimum(rule))
        case "text", ir.TextType():
            return type
        case "text", ir.OctetsType(length=length):
            padded = hint.padding is not None and length.kind == "fixed"
            return ir.TextType(length, padding=_fill(hint) if padded else None)
        case "text", ir.IntegerType(octets=octets, enum=None, bitmask=False):
            padding = None if hint.padding is None else _fill(hint)
            return ir.TextType(ir.Length("fixed", octets), padding=padding)
        case "padding", ir.IntegerType(octets=octets) | ir.PaddingType(octets=octets):
            return ir.PaddingType(octets, _fill(hint))
        case "padding", ir.OctetsType(length=ir.Length(kind="fixed", octets=octets)):
            return ir.PaddingType(octets, _fill(hint))
        case "json", ir.JsonType():
            return type
        case "json", ir.TextType(length=ir.Length(kind="rest")) | ir.OctetsType(
            length=ir.Length(kind="rest")
        ):
            return ir.JsonType()
    return f"its definition cannot be read as {hint.type}"


def _fill(hint: TypeHint) -> str:
    """Return the padding octet: NUL unless the profile declares another."""
    return f"{hint.padding or 0:02x}"


def _opaque(reader: TypeReader, rule: Rule) -> ir.Type | None:
    """Return the type of a run that the profile declares to be one value."""
    extent = _extent(reader, rule)
    return ir.OctetsType(ir.Length("fixed", extent), extent) if extent else None


def _extent(reader: TypeReader, rule: Rule) -> int | None:
    return reader.octets.extent(rule.definition)


def _minimum(rule: Rule) -> int:
    return rule.definition.minimum if isinstance(rule.definition, Repetition) else 0
