"""What a value is on the wire, as boxes: the one description that drawings and tables are made from.

A `Box` is a run of octets, of known size or not; a `Group` is boxes that belong together, once, several
times, or one instead of another. The `match` in `boxes_of` knows every type of the IR: a new one is an
error of the type checker here, not a gap on a page.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, assert_never

from specwire.generator import ir

Kind = Literal["constant", "value", "size", "padding"]


@dataclass(frozen=True, slots=True)
class Box:
    """Octets that stand together; `octets` None: as many as `note` says."""

    label: str
    octets: int | None
    kind: Kind = "value"
    note: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Boxes one after the other, or one of them where they are `alternatives`.

    `times` says how often they come where that is not once.
    """

    label: str
    items: tuple[Item, ...]
    times: str = ""
    alternatives: bool = False

    @property
    def caption(self) -> str:
        """What stands above the group."""
        return f"{self.label} {self.times}".strip()


Item = Box | Group


def boxes_of(name: str, type: ir.Type) -> tuple[Item, ...]:
    """Return the boxes of a value; `name` is what the page calls it."""
    match type:
        case ir.ConstantType():
            return (Box(f"{name} = {constant_text(type)}", len(type.octets), "constant"),)
        case ir.KeywordType(options=options):
            sizes = {len(option.encode()) for option in options}
            octets = sizes.pop() if len(sizes) == 1 else None
            return (Box(name, octets, note=" or ".join(options)),)
        case ir.IntegerType(octets=octets):
            return (Box(name, octets),)
        case ir.TextType(length=length):
            return _sized(name, length)
        case ir.OctetsType(length=length):
            return _sized(name, length)
        case ir.JsonType():
            return (Box(name, None, note="to the end"),)
        case ir.PaddingType(octets=octets, fill=fill):
            return (Box(name, octets, "padding", f"filled with 0x{fill}"),)
        case ir.SizeType(forms=forms):
            return _size(name, forms)
        case ir.ListType(count_octets=count, element=element):
            return _counted(name, count, boxes_of(_singular(name, element), element))
        case ir.PairsType(count_octets=count):
            return _counted(name, count, _pair(type))
        case ir.RecordType(fields=fields):
            return (Group(name, run_of(fields)),)
        case ir.UnionType(options=options):
            records = tuple(Group(option.name, run_of(option.fields)) for option in options)
            return (Group(f"{name}: one of", records, alternatives=True),)
        case _:
            assert_never(type)


def run_of(fields: Iterable[ir.Field]) -> tuple[Item, ...]:
    """Return the boxes of fields that stand one after the other."""
    found: list[Item] = []
    for field in fields:
        items = boxes_of(field.name, field.type)
        found.extend((Group("", items, times="(optional)"),) if field.optional else items)
    return tuple(found)


def constant_text(type: ir.ConstantType) -> str:
    """Return a constant as a person writes it: a word in quotes, or its octets."""
    if type.text is not None:
        return f"“{type.text}”"
    return hex_text(type.octets)


def hex_text(octets: bytes, most: int = 8) -> str:
    """Return octets as ``AA A3``; more than `most` of them, cut: ``00 00 00 00 …``."""
    if not octets:
        return "nothing"
    if len(octets) > most:
        return f"{octets[:4].hex(' ').upper()} …"
    return octets.hex(" ").upper()


def fixed_octets(items: Iterable[Item]) -> int | None:
    """Return how many octets the boxes take together, None where that differs."""
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
    """Return boxes of fixed size without the groups around them, which stay in their names."""
    found: list[Box] = []
    for item in items:
        if isinstance(item, Group):
            found.extend(flat(item.items, f"{path}{item.label}."))
        else:
            found.append(Box(path + item.label, item.octets, item.kind, item.note))
    return tuple(found)


def _sized(name: str, length: ir.Length) -> tuple[Box, ...]:
    match length.kind:
        case "fixed":
            return (Box(name, length.octets),)
        case "prefix":
            return (Box("length", length.octets, "size"), Box(name, None, note="length octets"))
        case "rest":
            return (Box(name, None, note="to the end"),)
        case "until":
            return (Box(name, None, note=f"up to {length.until}"),)
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


def _counted(name: str, count: int, items: tuple[Item, ...]) -> tuple[Item, ...]:
    match items:
        case (Group(items=inner, times="", alternatives=False),):
            items = inner  # one frame around what repeats is enough
    if not count:
        return (Group(name, items, times="(as many as there are)"),)
    return (Box("count", count, "size"), Group(name, items, times="(count times)"))


def _pair(type: ir.PairsType) -> tuple[Item, ...]:
    if type.value is None:
        return boxes_of("name=value", type.name)
    return (*boxes_of("name", type.name), *boxes_of("value", type.value))


def _singular(name: str, element: ir.Element) -> str:
    return element.name if isinstance(element, ir.RecordType | ir.UnionType) else f"{name}[…]"
