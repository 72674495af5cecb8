"""Building blocks of Python source, shared by emitters: indented lines, types, literals."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING

from specwire.generator import ir

if TYPE_CHECKING:
    from collections.abc import Iterator

STRUCT_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
"""Widths that `struct` reads as an unsigned integer."""


class Lines:
    """Source lines with their indentation."""

    def __init__(self, indent: int = 0) -> None:
        self._lines: list[str] = []
        self._indent = indent

    def add(self, *lines: str) -> None:
        """Append lines at the current indentation."""
        self._lines.extend("    " * self._indent + line for line in lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Append `head` and indent what is added inside."""
        self.add(head)
        self._indent += 1
        yield
        self._indent -= 1

    def __str__(self) -> str:
        return "\n".join(self._lines)


def annotation(
    field: ir.Field, *, many: bool = False, enclosing: Mapping[str, str] = MappingProxyType({})
) -> str:
    """Return the type of a field's attribute; `many` for a stack or rest of frames.

    `enclosing` has the types of the unions that contain themselves, by name.
    """
    base = element_annotation(field.type, enclosing)
    if many:
        base = f"tuple[{base}, ...]"
    return f"{base} | None" if field.nullable else base


def element_annotation(type: ir.Type, enclosing: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the type of a value in Python; `enclosing` is as in `annotation`."""
    match type:
        case ir.BitType(boolean=True) | ir.PresentType():
            return "bool"
        case ir.BitType():
            return "int"
        case ir.IntegerType() | ir.VarintType() | ir.DigitsType():
            return "int"
        case ir.FloatType():
            return "float"
        case ir.BooleanType():
            return "bool"
        case ir.UuidType():
            return "UUID"
        case ir.OctetsType():
            return "bytes"
        case ir.ListType(element=element):
            return f"tuple[{element_annotation(element, enclosing)}, ...]"
        case ir.PairsType(value=ir.OctetsType()):
            return "tuple[tuple[str, bytes], ...]"
        case ir.PairsType():
            return "tuple[tuple[str, str], ...]"
        case ir.RecordType(class_name=name):
            return name
        case ir.UnionType(options=options):
            return " | ".join(option.class_name for option in options)
        case ir.EnclosingType(name=name):
            return enclosing.get(name, name)
    return "str"


def default(field: ir.Field, constants: Iterable[ir.Constant] = ()) -> str | None:
    """Return the source of a field's default, by name if it is a constant; None if it has none."""
    if field.required:
        return None
    for constant in constants:
        if constant.name in field.sentinels and constant.value == field.default:
            return constant.name
    if field.default == "" and isinstance(field.type, ir.OctetsType):
        return 'b""'
    return repr(field.default)


def constant_value(type: ir.ConstantType) -> tuple[str, str]:
    """Return annotation and source of a constant as a class variable: text, number or octets."""
    if type.text is not None:
        return "str", repr(type.text)
    if type.number is not None:
        return "int", str(type.number) if len(type.octets) > 1 else f"0x{type.number:02x}"
    return "bytes", octets_literal(type.octets)


def octets_literal(octets: bytes) -> str:
    """Return a bytes literal in which every control octet is hexadecimal, tabs and line ends included."""
    literal = repr(octets)
    for escape, value in (("\\t", 0x09), ("\\n", 0x0A), ("\\r", 0x0D)):
        literal = literal.replace(escape, f"\\x{value:02x}") if bytes((value,)) in octets else literal
    return literal


def paragraph(text: str, indent: int = 0, width: int = 100) -> str:
    """Return `text` wrapped for a docstring, continuation lines indented, triple quotes escaped."""
    pad = " " * indent
    text = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    text = f'{text[:-1]}\\"' if text.endswith('"') else text
    wrapped = textwrap.wrap(text, width - indent, break_long_words=False, break_on_hyphens=False)
    return f"\n{pad}".join(wrapped)


def sentence(text: str) -> str:
    """Return `text` with a capital and a full stop; an empty text stays empty."""
    text = text.strip()
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?" else ".")


def frame_fields(message: ir.Message) -> Iterable[tuple[ir.Field, bool]]:
    """Yield every field that is not implied, with whether it holds many frames."""
    for part in message.parts:
        if isinstance(part, ir.Frame):
            yield from ((field, False) for field in part.fields if not field.implied)
        else:
            yield part.field, True


def fixed_size(type: ir.Type) -> int | None:
    """Return the fixed number of octets of a type, None if it varies."""
    match type:
        case ir.ConstantType() as constant:
            return len(constant.octets)
        case ir.IntegerType(octets=octets) | ir.FloatType(octets=octets) | ir.BooleanType(octets=octets):
            return octets
        case ir.PaddingType(octets=octets, multiple=0):
            return octets
        case ir.DigitsType(minimum=minimum, maximum=maximum, signed=False) if minimum == maximum:
            return minimum
        case ir.UuidType():
            return 16
        case ir.CounterType(number=number) | ir.ChecksumType(number=number):
            return fixed_size(number)
        case ir.OctetsType(length=length) | ir.TextType(length=length):
            return length.octets if length.kind == "fixed" else None
    return None
