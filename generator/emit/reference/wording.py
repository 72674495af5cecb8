"""Types, presence and defaults in words, for the tables of the page.

As in `boxes`, every `match` covers all types, so the type checker reports a missing case for a new
IR type.
"""

from __future__ import annotations

from typing import assert_never

from specwire.generator import ir
from specwire.generator.emit.reference.boxes import Box, Item, boxes_of, constant_text


def type_words(type: ir.Type) -> str:
    """Return the kind of a value: ``unsigned integer``, ``text``."""
    match type:
        case ir.ConstantType():
            return f"always {constant_text(type)}" if type.octets else "always empty"
        case ir.KeywordType(options=options):
            return " or ".join(f"“{option}”" for option in options)
        case ir.IntegerType():
            return _integer(type)
        case ir.TextType():
            return _text(type)
        case ir.OctetsType():
            return _octets(type)
        case ir.JsonType():
            return "JSON text"
        case ir.PaddingType(fill=fill):
            return f"padding, written as 0x{fill}"
        case ir.SizeType():
            return "number of octets that follow in this frame or record"
        case ir.ListType(element=element, minimum=minimum):
            return f"list of {type_words(element)}{_at_least(minimum)}"
        case ir.PairsType(split=split, minimum=minimum):
            divided = f", split at the {split} “=”" if split else ""
            return f"dictionary{divided}{_at_least(minimum)}"
        case ir.RecordType(name=name, fields=fields):
            return f"record {name}: {', '.join(field.name for field in fields)}"
        case ir.UnionType(name=name, options=options):
            return f"{name}: one of {', '.join(option.name for option in options)}"
        case _:
            assert_never(type)


def octets_words(name: str, type: ir.Type) -> str:
    """Return the size of a value: ``8``, ``1 + length``, ``4 + count · (1 + length)``."""
    return _sum(boxes_of(name, type))


def presence_words(part: ir.Part, flags: tuple[ir.FlagBit, ...]) -> str:
    """Return the condition of a part as a sentence; empty if it is always present."""
    if isinstance(part, ir.Rest):
        return "All remaining frames, none or more."
    match part.presence:
        case ir.Always(mask=0):
            return ""
        case ir.Always(mask=mask, value=value):
            return f"In every message, announced by the flags: {_bits(mask, value, flags)}."
        case ir.Announced(mask=mask, value=value):
            return f"Present if {_bits(mask, value, flags)}."
        case ir.Counted():
            return "Present if the message has enough frames."
        case _:
            assert_never(part.presence)


def letter_words(part: ir.Part) -> str:
    """Return what the specification requires of the part, beyond what deployed peers follow."""
    letter = None if isinstance(part, ir.Rest) else part.letter
    match letter:
        case None:
            return ""
        case "required":
            return "The letter of the specification requires it."
        case "forbidden":
            return "The letter of the specification forbids it."
        case _:
            assert_never(letter)


def default_words(field: ir.Field, constants: tuple[ir.Constant, ...]) -> str:
    """Return the value of a field that is omitted, or that the field is required."""
    if field.implied:
        return "fixed" if field.constant else "derived"
    if field.required:
        return "required"
    for constant in constants:
        if constant.name in field.sentinels and constant.value == field.default:
            return constant.name
    match field.default:
        case None:
            return "absent"
        case tuple():
            return "empty"
        case "":
            return "empty"
        case int(value):
            return str(value)
        case str(value):
            return f"“{value}”"
        case _:
            assert_never(field.default)


def _bits(mask: int, value: int, flags: tuple[ir.FlagBit, ...]) -> str:
    wanted = [
        f"{flag.name} (0x{flag.value:02x}) is {'set' if value & flag.value else 'clear'}"
        for flag in flags
        if mask & flag.value
    ]
    return " and ".join(wanted) or f"flags & 0x{mask:02x} = 0x{value:02x}"


def _integer(type: ir.IntegerType) -> str:
    if type.bitmask:
        return "bits"
    if type.enum:
        return f"enumeration {type.enum}"
    if type.values:
        return " or ".join(str(value) for value in type.values)
    return "unsigned integer"


def _text(type: ir.TextType) -> str:
    if type.padding is not None:
        return f"text, padded with 0x{type.padding}"
    return "text (strict: NUL at its end)" if type.terminated else "text"


def _octets(type: ir.OctetsType) -> str:
    least = f", at least {type.minimum}" if type.minimum else ""
    most = "" if type.maximum is None else f", at most {type.maximum}"
    return f"octets{least}{most}"


def _at_least(minimum: int) -> str:
    return f", {minimum} or more" if minimum else ""


def _sum(items: tuple[Item, ...]) -> str:
    """Return the sizes of boxes as a sum, with fixed sizes added up."""
    fixed = 0
    terms: list[str] = []
    for item in items:
        if isinstance(item, Box):
            fixed += item.octets or 0
            if item.octets is None:
                terms.append("length" if item.note == "length octets" else item.note or "variable")
            continue
        inner = _sum(item.items) if not item.alternatives else " or ".join(_sum((i,)) for i in item.items)
        if not item.times and not item.alternatives and inner.isdigit():
            fixed += int(inner)
        else:
            terms.append(_times(inner, item.times))
    return " + ".join([*([str(fixed)] if fixed or not terms else []), *terms])


def _times(inner: str, times: str) -> str:
    if not times:
        return f"({inner})"
    word = {"(count times)": "count", "(optional)": "optional"}.get(times, "many")
    return f"optional {inner}" if word == "optional" else f"{word} · ({inner})"
