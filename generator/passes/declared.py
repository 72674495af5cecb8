"""Types of rules that the profile declares, if the grammar's shape allows them.

The profile declares how octets are read, never how many there are: the grammar defines lengths,
counts and widths. A declaration that does not fit the rule is E402 and points into the profile.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from msgspec import structs

from specwire.generator import ir
from specwire.generator.abnf.statements import SIGNED, is_little_endian, number_kinds
from specwire.generator.abnf.syntax import Concatenation, Element, Option, Repetition, Rule
from specwire.generator.ir.names import constant_name
from specwire.generator.passes.alternations import name_enum
from specwire.generator.passes.layouts import LARGEST_INTEGER
from specwire.generator.profile.tables import NOTHING_SAID, TypeHint

if TYPE_CHECKING:
    from specwire.generator.passes.types import TypeReader


_REST = ir.Length("rest")
UUID_OCTETS = 16
MOST_GROUPS = 10
"""Octets of a varint of 64 bits."""
MOST_DIGITS: Mapping[int, int] = MappingProxyType({10: 20, 16: 16})
"""Digits of a number of 64 bits, by base."""
PRIMITIVES: Mapping[str, ir.Type] = MappingProxyType(
    {"octets": ir.OctetsType(_REST), "text": ir.TextType(_REST), "json": ir.JsonType()}
)
"""Types of names that only the profile declares: each is the rest of the frame."""


def says_type(hint: TypeHint) -> bool:
    """Whether the profile declares a rule's value, so that no assumption about it is reported."""
    return (
        hint.type is not None
        or hint.constant is not None
        or bool(hint.members)
        or hint.order is not None
        or hint.signed is not None
        or hint.checksum is not None
        or bool(hint.counts)
        or bool(hint.bits)
    )


def read(reader: TypeReader, rule: Rule, hint: TypeHint, shape: ir.Type | None) -> ir.Type | None:
    """Return the type that the profile declares for a rule of that shape; None after E402."""
    hint = _with_comment(reader, rule, hint)
    if hint.members:
        found = _coded(hint, _members(reader, rule, hint, shape))
    elif hint.constant is not None:
        found = constant_of(hint.constant, shape, hint)
    else:
        found = _coded(hint, _retyped(reader, rule, hint, shape or _opaque(reader, rule)))
    if not isinstance(found, str):
        return found
    reader.diagnostics.error(
        "E402",
        reader.profile.place("types", rule.name),
        f"the declaration does not fit rule '{rule}': {found}",
        f"correct it; the rule is defined at {rule.name_span}",
    )
    return None


def _with_comment(reader: TypeReader, rule: Rule, hint: TypeHint) -> TypeHint:
    """Return the hint with the byte order and the sign that only the comment of the rule states.

    A plain ``type = "integer"`` ignores the comment; E423 then demands that the profile states
    them.
    """
    kinds = dict(number_kinds(reader.comment(rule)))
    if not kinds or hint.type in ("integer", "text", "octets", "json", "padding"):
        return hint
    if hint.order is None and is_little_endian(kinds) and reader.octets.count(rule.definition) != 1:
        hint = structs.replace(hint, order="little")
    if hint.signed is None and SIGNED in kinds and hint.type in (None, "decimal", "hexadecimal"):
        hint = structs.replace(hint, signed=True)
    return hint


def _members(reader: TypeReader, rule: Rule, hint: TypeHint, shape: ir.Type | None) -> ir.Type | str:
    if not isinstance(shape, ir.IntegerType):
        return "an enumeration must be an integer"
    width = shape.octets
    least = -(256**width) // 2 if hint.signed else 0
    if not all(least <= value < 256**width + least for value in hint.members.values()):
        return f"a member of the enumeration does not fit {width} octets"
    if len({constant_name(name) for name in hint.members}) < len(hint.members):
        return "two members of the enumeration have the same name"
    found = name_enum(reader, rule, tuple(hint.members.items()), width)
    return found if hint.closed else structs.replace(found, open=True)


def constant_of(
    constant: str | int, shape: ir.Type | None, hint: TypeHint = NOTHING_SAID
) -> ir.ConstantType | str:
    """Return the constant type of a rule with that shape, or the reason why it cannot be
    constant."""
    if hint.type not in (None, "integer", "text", "octets"):
        return f"a constant cannot be declared as {hint.type}: write its octets in the grammar"
    octets = _fixed_octets(shape)
    if isinstance(constant, int) and octets and octets <= LARGEST_INTEGER:
        try:
            raw = constant.to_bytes(octets, hint.order or "big", signed=bool(hint.signed))
        except OverflowError:
            return f"the constant does not fit {octets} octets"
        return ir.ConstantType(raw.hex(), number=constant)
    match shape, constant:
        case ((ir.TextType(length=length) | ir.OctetsType(length=length)), str(text)):
            raw = text.encode()
            if length.number is not None:
                return "a constant needs a length that is a big-endian integer"
            if length.kind == "prefix" and len(raw) < 256**length.octets:
                return ir.ConstantType((len(raw).to_bytes(length.octets, "big") + raw).hex(), text=text)
            if length.kind == "rest" or (length.kind == "fixed" and len(raw) == length.octets):
                return ir.ConstantType(raw.hex(), text=text)
    return "a constant must be a text or an integer that the rule can hold"


def _retyped(reader: TypeReader, rule: Rule, hint: TypeHint, type: ir.Type | None) -> ir.Type | str:
    match hint.type, type:
        case None, _:
            return type or "it is not a number"
        case "float", _ if (octets := _fixed_octets(type)) in (4, 8):
            return ir.FloatType(4 if octets == 4 else 8)
        case "float", _:
            return "a floating-point number must have 4 or 8 octets"
        case "boolean", _ if octets := _fixed_octets(type):
            return ir.BooleanType(octets) if octets <= LARGEST_INTEGER else "a boolean has at most 8 octets"
        case "uuid", _:
            return ir.UuidType() if _fixed_octets(type) == UUID_OCTETS else "a UUID must have 16 octets"
        case "varint", ir.OctetsType(length=ir.Length(kind="rest"), minimum=minimum, maximum=maximum):
            if minimum > 1 or (maximum or 1) > MOST_GROUPS:
                return f"a varint has 1 to {MOST_GROUPS} octets"
            return ir.VarintType("little", maximum or MOST_GROUPS)
        case "varint", ir.IntegerType(octets=1):
            return ir.VarintType("little", 1)
        case "varint", _:
            return "a varint must be a repetition such as 1*4OCTET"
        case (("decimal" | "hexadecimal"), _):
            return _digits(reader, rule, hint)
        case "padding", ir.OctetsType(length=ir.Length(kind="rest")) if hint.multiple:
            return ir.PaddingType(0, _fill(hint), hint.multiple)
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
            any_octets = isinstance(rule.definition, Repetition) and reader.octets.count(
                rule.definition.element
            )
            pattern = None if any_octets or length.kind == "fixed" else reader.octets.pattern(rule.definition)
            return ir.TextType(length, pattern, padding=_fill(hint) if padded else None)
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


def _coded(hint: TypeHint, type: ir.Type | str | None) -> ir.Type | str | None:
    """Return a number with the byte order and the sign that the profile declares."""
    order = hint.order or "big"
    match type:
        case ir.IntegerType():
            if hint.signed == "zigzag":
                return "only a varint can be zigzag"
            written = type.values or (type.enum and not hint.members)
            if written and type.octets > 1 and (order == "little" or hint.signed):
                return "the grammar writes its values as octets, which have no byte order; declare `members`"
            return structs.replace(type, order=order, signed=bool(hint.signed))
        case ir.VarintType():
            signed = "complement" if hint.signed is True else hint.signed or None
            return structs.replace(type, order=hint.order or "little", signed=signed)
        case ir.FloatType() | ir.BooleanType() | ir.UuidType() if not hint.signed:
            return structs.replace(type, order=order)
        case ir.DigitsType() if hint.order is None:
            return type
        case _ if hint.order is not None or hint.signed:
            return "only a number has a byte order or a sign"
    return type


def _fixed_octets(type: ir.Type | None) -> int | None:
    match type:
        case ir.IntegerType(octets=octets):
            return octets
        case ir.OctetsType(length=ir.Length(kind="fixed", octets=octets)):
            return octets
        case ir.TextType(length=ir.Length(kind="fixed", octets=octets)):
            return octets
    return None


def _digits(reader: TypeReader, rule: Rule, hint: TypeHint) -> ir.DigitsType | str:
    """Return the number that a repetition of digits is; an option of ``-`` before them makes it
    signed."""
    element: Element = rule.definition
    signed = bool(hint.signed)
    match element:
        case Concatenation(items=(Option(element=sign), Repetition() as digits)) if (
            reader.octets.constant(sign) == b"-"
        ):
            element, signed = digits, True
    base: Literal[10, 16] = 10 if hint.type == "decimal" else 16
    most = MOST_DIGITS[base]
    if not isinstance(element, Repetition):
        element = Repetition(1, 1, element, element.span)
    allowed = b"0123456789" if base == 10 else b"0123456789abcdefABCDEF"
    if not reader.octets.is_class(element.element) or not (
        reader.octets.octet_class(element.element) <= frozenset(allowed)
    ):
        return f"a {hint.type} number must be a repetition of digits"
    maximum = most if element.maximum is None else element.maximum
    if not 1 <= element.minimum <= maximum <= most:
        return f"a {hint.type} number has 1 to {most} digits"
    return ir.DigitsType(base, element.minimum, maximum, signed)


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
