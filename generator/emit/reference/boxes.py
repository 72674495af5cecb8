"""Wire format of values as boxes: the common description behind drawings and tables.

A `Box` is a run of octets of known or unknown size. A `Group` is a sequence of boxes, which occurs
once or several times, or a choice between them. The `match` in `boxes_of` covers every type of the
IR, so the type checker reports a missing case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal, assert_never

import msgspec

from specwire.generator import ir

Kind = Literal["constant", "value", "size", "padding"]


@dataclass(frozen=True, slots=True)
class Box:
    """Octets that belong together. If `octets` is None, `note` describes their number."""

    label: str
    octets: int | None
    kind: Kind = "value"
    note: str = ""
    bits: tuple[Bits, ...] = ()
    """Values in the bits of an integer, the most significant first."""


@dataclass(frozen=True, slots=True)
class Bits:
    """Some bits of an integer."""

    label: str
    width: int
    kind: Kind = "value"


@dataclass(frozen=True, slots=True)
class Group:
    """Boxes in sequence, or a choice of one of them if they are `alternatives`.

    `times` says how often the group occurs if that is not once.
    """

    label: str
    items: tuple[Item, ...]
    times: str = ""
    alternatives: bool = False

    @property
    def caption(self) -> str:
        """Caption above the group."""
        return f"{self.label} {self.times}".strip()


Item = Box | Group


def boxes_of(name: str, type: ir.Type, counter: str = "") -> tuple[Item, ...]:
    """Return the boxes of a value; `name` is its name on the page, `counter` is what counts it in the run."""
    match type:
        case ir.ConstantType():
            return (Box(f"{name} = {constant_text(type)}", len(type.octets), "constant"),)
        case ir.KeywordType(options=options):
            sizes = {len(option.encode()) for option in options}
            octets = sizes.pop() if len(sizes) == 1 else None
            return (Box(name, octets, note=" or ".join(options)),)
        case ir.IntegerType() | ir.FloatType() | ir.BooleanType() | ir.VarintType() | ir.DigitsType():
            return (_number(name, type),)
        case ir.BitType(octets=octets):
            return (_bits(((name, type),), octets),)
        case ir.PresentType():
            return ()
        case ir.EnclosingType(name=inside):
            return (Box(name, None, note=f"{inside} again"),)
        case ir.UuidType():
            return (Box(name, 16),)
        case ir.TextType(length=length) | ir.OctetsType(length=length):
            return _sized(name, length, counter)
        case ir.JsonType():
            return (Box(name, None, note="to the end"),)
        case ir.PaddingType(octets=octets, fill=fill, multiple=0):
            return (Box(name, octets, "padding", f"filled with 0x{fill}"),)
        case ir.PaddingType(multiple=multiple):
            return (Box(name, None, "padding", f"to a multiple of {multiple} octets"),)
        case ir.SizeType(forms=forms):
            return _size(name, forms)
        case ir.CounterType(number=number):
            return (
                boxes_of(name, number) if isinstance(number, ir.BitType) else (_number(name, number, "size"),)
            )
        case ir.ChecksumType(number=number):
            return (_number(name, number, "size"),)
        case ir.ListType(element=element):
            return _repeated(name, type, boxes_of(_singular(name, element), element), counter)
        case ir.PairsType():
            return _repeated(name, type, _pair(type), counter)
        case ir.RecordType(fields=fields):
            return (Group(name, run_of(fields)),)
        case ir.UnionType(options=options):
            records = tuple(Group(option.name, run_of(option.fields)) for option in options)
            return (Group(f"{name}: one of", records, alternatives=True),)
        case _:
            assert_never(type)


def run_of(fields: Iterable[ir.Field]) -> tuple[Item, ...]:
    """Return the boxes of consecutive fields."""
    return tuple(item for items in pieces_of(tuple(fields)) for item in items)


def pieces_of(fields: Sequence[ir.Field]) -> tuple[tuple[Item, ...], ...]:
    """Return the boxes of each field; those of one integer of bits, or of one option, together."""
    counters = {
        field.type.counts[0]: field.name + f"-{field.type.plus}" * bool(field.type.plus)
        for field in fields
        if isinstance(field.type, ir.CounterType)
    }
    found: list[tuple[Item, ...]] = []
    position = 0
    while position < len(fields):
        inside = _together(fields[position:])
        found.append(_piece(inside, counters))
        position += len(inside)
    return tuple(found)


def _together(fields: Sequence[ir.Field]) -> Sequence[ir.Field]:
    """Return the first fields, which share an option or an integer of bits."""
    if fields[0].option is not None:
        return tuple(takewhile(lambda field: field.option == fields[0].option, fields))
    number = 1
    while (bits := bits_of(fields[number - 1].type)) and bits.shift and number < len(fields):
        number += 1
    return fields[:number]


def _piece(fields: Sequence[ir.Field], counters: Mapping[str, str]) -> tuple[Item, ...]:
    """Return the boxes of fields that belong together."""
    first = fields[0]
    if first.option is not None:
        plain = tuple(msgspec.structs.replace(field, option=None) for field in fields)
        return (Group("", run_of(plain), times=f"({condition_text(first.option)})"),)
    if bits := bits_of(first.type):
        rows = ((field.name, inside) for field in fields if (inside := bits_of(field.type)))
        return (_bits(tuple(rows), bits.octets),)
    items = boxes_of(first.name, first.type, counters.get(first.attribute, ""))
    return (Group("", items, times="(optional)"),) if first.optional else items


def bits_of(type: ir.Type) -> ir.BitType | None:
    """Return the bits of a field that is some bits of an integer; None for other fields."""
    found = type.number if isinstance(type, ir.CounterType) else type
    return found if isinstance(found, ir.BitType) else None


def condition_text(option: ir.Option) -> str:
    """Return the condition of an option: ``if flags & 0x80 is 0x80``."""
    match option.kind:
        case "octets":
            case = ", in either case" if option.folded else ""
            return f"if the next octets are {constant_text(constant_of(option.octets))}{case}"
        case "number" if option.mask:
            values = " or ".join(f"0x{value:02x}" for value in option.values)
            return f"if {option.field} & 0x{option.mask:02x} is {values}"
        case "number":
            return f"if {option.field} is {' or '.join(map(str, option.values))}"
        case "left" if option.left:
            return f"if more than {option.left} octets are left"
        case "left":
            return "if octets are left"


def constant_of(octets: str) -> ir.ConstantType:
    """Return the constant of octets, given in hexadecimal; with their text if they are printable."""
    text = bytes.fromhex(octets).decode("latin-1")
    return ir.ConstantType(octets, text=text if text.isascii() and text.isprintable() else None)


def constant_text(type: ir.ConstantType) -> str:
    """Return a constant in readable form: a quoted word, or its octets."""
    if type.text is not None:
        return f"“{type.text}”"
    return hex_text(type.octets)


def hex_text(octets: bytes, most: int = 8) -> str:
    """Return octets as ``AA A3``; more than `most` are shortened: ``00 00 00 00 …``."""
    if not octets:
        return "nothing"
    if len(octets) > most:
        return f"{octets[:4].hex(' ').upper()} …"
    return octets.hex(" ").upper()


def fixed_octets(items: Iterable[Item]) -> int | None:
    """Return the total number of octets of the boxes, None if it varies."""
    total = 0
    for item in items:
        if isinstance(item, Box):
            size = item.octets
        else:
            size = None if item.alternatives or item.times else fixed_octets(item.items)
        if size is None:
            return None
        total += size
    return total


def flat(items: Iterable[Item], path: str = "") -> tuple[Box, ...]:
    """Return boxes of fixed size without the groups around them; their names include the groups."""
    found: list[Box] = []
    for item in items:
        if isinstance(item, Group):
            found.extend(flat(item.items, f"{path}{item.label}."))
        else:
            found.append(replace(item, label=path + item.label))
    return tuple(found)


def _bits(rows: Sequence[tuple[str, ir.BitType]], octets: int) -> Box:
    """Return the box of an integer of bits."""
    inside = tuple(Bits(name, type.width, _kind_of_bits(type)) for name, type in rows)
    note = f"{octets} octets, little-endian" if rows[0][1].order == "little" and octets > 1 else ""
    return Box(", ".join(name for name, _ in rows), octets, note=note, bits=inside)


def _kind_of_bits(type: ir.BitType) -> Kind:
    if type.spare:
        return "padding"
    return "constant" if type.constant is not None else "value"


def _number(name: str, type: ir.NumberType, kind: Kind = "value") -> Box:
    match type:
        case ir.IntegerType(octets=octets) | ir.FloatType(octets=octets) | ir.BooleanType(octets=octets):
            return Box(name, octets, kind)
        case ir.VarintType(maximum=maximum):
            return Box(name, None, kind, f"1 to {maximum} octets")
        case ir.DigitsType(minimum=minimum, maximum=maximum, signed=signed):
            if minimum == maximum and not signed:
                return Box(name, minimum, kind)
            return Box(name, None, kind, f"{minimum} to {maximum} digits")


def _sized(name: str, length: ir.Length, counter: str) -> tuple[Box, ...]:
    match length.kind:
        case "fixed":
            return (Box(name, length.octets),)
        case "prefix" if length.prefix:
            return (_number("length", length.prefix, "size"), Box(name, None, note="length octets"))
        case "prefix" | "rest":
            end = f"to the last {length.octets} octets" if length.octets else "to the end"
            return (Box(name, None, note=end),)
        case "counted":
            return (Box(name, None, note=f"{counter} octets"),)
        case "until":
            return (Box(name, None, note=f"up to {length.until}"),)
        case "run":
            least = f"{length.octets} or more " if length.octets else ""
            return (Box(name, None, note=f"{least}allowed characters"),)
        case _:
            assert_never(length.kind)


def _size(name: str, forms: tuple[ir.SizeForm, ...]) -> tuple[Item, ...]:
    written = [_size_form(name, form) for form in forms]
    if len(written) == 1:
        return written[0]
    forms_drawn = tuple(Group(f"form {n}", form) for n, form in enumerate(written, 1))
    return (Group(f"{name}: one of", forms_drawn, alternatives=True),)


def _size_form(name: str, form: ir.SizeForm) -> tuple[Box, ...]:
    integer = (Box(name, form.octets, "size"),) if form.octets else ()
    tag = bytes.fromhex(form.tag)
    return ((Box(hex_text(tag), len(tag), "constant"),) if tag else ()) + integer


def _repeated(
    name: str, type: ir.ListType | ir.PairsType, inside: tuple[Item, ...], counter: str
) -> tuple[Item, ...]:
    """Return the boxes of repeated values, with the constants around each and the number before them."""
    items, count = (*_constant(type.before), *inside, *_constant(type.after)), ir.count_of(type)
    match items:
        case (Group(items=inner, times="", alternatives=False),):
            items = inner  # one frame around a repetition is enough
    if counter:
        return (Group(name, items, times=f"({counter} times)"),)
    if count is None:
        end = f"up to {type.until}" if type.until else "as many as there are"
        return (Group(name, items, times=f"({end})"),)
    return (_number("count", count, "size"), Group(name, items, times="(count times)"))


def _pair(type: ir.PairsType) -> tuple[Item, ...]:
    if type.value is None:
        return boxes_of("name=value", type.name)
    return (*boxes_of("name", type.name), *_constant(type.between), *boxes_of("value", type.value))


def _constant(octets: str) -> tuple[Box, ...]:
    """Return the box of constant octets, given in hexadecimal, if there are any."""
    constant = constant_of(octets)
    return (Box(constant_text(constant), len(constant.octets), "constant"),) if octets else ()


def _singular(name: str, element: ir.Element) -> str:
    return element.name if isinstance(element, ir.RecordType | ir.UnionType) else f"{name}[…]"
