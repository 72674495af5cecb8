"""Types, presence and defaults in words, for the tables of the page.

As in `boxes`, every `match` covers all types, so the type checker reports a missing case for a new
IR type.
"""

from __future__ import annotations

from typing import assert_never

from specwire.generator import ir
from specwire.generator.emit.reference.boxes import Box, Item, bits_of, boxes_of, constant_text
from specwire.generator.emit.reference.octets import bits_text


def type_words(type: ir.Type) -> str:
    """Return the kind of a value: ``unsigned integer``, ``text``."""
    match type:
        case ir.ConstantType():
            words = f"always {constant_text(type)}" if type.octets else "always empty"
            return words + _either_case(type.folded)
        case ir.KeywordType(options=options, folded=folded):
            return " or ".join(f"“{option}”" for option in options) + _either_case(folded)
        case ir.IntegerType() | ir.FloatType() | ir.BooleanType() | ir.VarintType() | ir.DigitsType():
            return _number(type)
        case ir.UuidType(order=order):
            return f"UUID{_little(order)}"
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
        case ir.BitType():
            return _some_bits(type)
        case ir.PresentType():
            return "boolean: whether the constants with this condition are present"
        case ir.EnclosingType(name=name):
            return f"{name}, which contains this value"
        case ir.CounterType(number=number, counts=counts, plus=plus):
            more = f", plus {plus}" if plus else ""
            words = _some_bits(number) if isinstance(number, ir.BitType) else _number(number)
            return f"{words}: number of octets or items of {' and '.join(counts)}{more}"
        case ir.ChecksumType(number=number, algorithm=algorithm, over=over):
            return f"{_number(number)}: {algorithm} checksum of {', '.join(over)}"
        case ir.ListType(element=element, minimum=minimum):
            return f"list of {type_words(element)}{_at_least(minimum)}{_up_to(type)}"
        case ir.PairsType(split=split, minimum=minimum):
            divided = f", split at the {split} “=”" if split else ""
            return f"dictionary{divided}{_at_least(minimum)}{_up_to(type)}"
        case ir.RecordType(name=name, fields=fields):
            return f"record {name}: {', '.join(field.name for field in fields)}"
        case ir.UnionType(name=name, options=options, folded=folded):
            return f"{name}: one of {', '.join(option.name for option in options)}{_either_case(folded)}"
        case _:
            assert_never(type)


def octets_words(name: str, type: ir.Type) -> str:
    """Return the size of a value: ``8``, ``3 bits``, ``1 + length``, ``4 + count · (1 + length)``."""
    if bits := bits_of(type):
        return bits_text(bits.width)
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
        case int(value) | float(value):
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


def _number(type: ir.NumberType) -> str:
    match type:
        case ir.IntegerType(octets=octets, order=order):
            return _integer(type) + (_little(order) if octets > 1 else "")
        case ir.FloatType(octets=octets, order=order):
            return f"floating-point number of {8 * octets} bits{_little(order)}"
        case ir.BooleanType(octets=octets, order=order):
            return "boolean: 0 or 1" + (_little(order) if octets > 1 else "")
        case ir.VarintType(order=order, signed=signed):
            sign = f"signed integer ({signed})" if signed else "unsigned integer"
            return (
                f"{sign}, groups of 7 bits, {'last' if order == 'little' else 'first'} group most significant"
            )
        case ir.DigitsType(base=base, signed=signed):
            digits = "decimal" if base == 10 else "hexadecimal"
            return f"{'signed' if signed else 'unsigned'} integer in {digits} digits"


def _integer(type: ir.IntegerType) -> str:
    if type.bitmask:
        return "bits"
    if type.enum:
        return f"enumeration {type.enum}" + (" or another value" if type.open else "")
    if type.values:
        return " or ".join(str(value) for value in type.values)
    return "signed integer" if type.signed else "unsigned integer"


def _some_bits(type: ir.BitType) -> str:
    """Return the place of some bits of an integer, and what they mean."""
    last = type.shift + type.width - 1
    place = f"bits {last} to {type.shift}" if type.width > 1 else f"bit {last}"
    where = f"{place} of {8 * type.octets}{_little(type.order) if type.octets > 1 else ''}"
    return f"{where}: {_meaning(type)}"


def _meaning(type: ir.BitType) -> str:
    if type.spare:
        return "without meaning, written as 0"
    if type.constant is not None:
        return f"always {type.constant}"
    if type.announces:
        return "whether the fields with this condition are present"
    if type.enum:
        return f"enumeration {type.enum}" + (" or another value" if type.open else "")
    if type.values:
        return " or ".join(map(str, type.values))
    return "boolean" if type.boolean else "unsigned integer"


def _either_case(folded: bool) -> str:
    return ", letters in either case" if folded else ""


def _up_to(type: ir.ListType | ir.PairsType) -> str:
    return f", up to 0x{type.until}" if type.until else ""


def _little(order: ir.Order) -> str:
    return ", little-endian" if order == "little" else ""


def _text(type: ir.TextType) -> str:
    if type.length.kind == "run":
        return "text, up to the first character that the rule does not allow"
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
                terms.append(_term(item.note))
            continue
        inner = _sum(item.items) if not item.alternatives else " or ".join(_sum((i,)) for i in item.items)
        if not item.times and not item.alternatives and inner.isdigit():
            fixed += int(inner)
        else:
            terms.append(_times(inner, item.times))
    return " + ".join([*([str(fixed)] if fixed or not terms else []), *terms])


def _term(note: str) -> str:
    """Return the size of a box whose number of octets varies: a name if another box has the number."""
    number = note.removesuffix(" octets")
    return number if number != note and " " not in number else note or "variable"


def _times(inner: str, times: str) -> str:
    if not times:
        return f"({inner})"
    if times == "(optional)" or times.startswith("(if "):
        return f"optional {inner}"
    counted = times.endswith(" times)")
    return f"{times.removeprefix('(').removesuffix(' times)') if counted else 'many'} · ({inner})"
