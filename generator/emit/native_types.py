"""Representation of values in the compiled codec, and its functions for composite types.

An integer that is always present is a C integer. A list or dictionary that can be checked without
creating objects is stored as octets until its first access. Every other value is an object from the
start.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from specwire.generator import ir
from specwire.generator.emit.python import frame_fields, octets_literal
from specwire.generator.emit.records import function_name

C_WIDTHS = (1, 2, 4, 8)
CYTHON_WORDS = frozenset({"cdef", "cimport", "cpdef", "ctypedef", "include"})
"""Words that are reserved in Cython but not in Python."""

Composite = ir.ListType | ir.PairsType | ir.RecordType | ir.UnionType
"""Type whose values contain others; it has its own functions."""


@dataclass(frozen=True, slots=True)
class Slot:
    """Field of a message or record, and the C member that holds its value."""

    field: ir.Field
    many: bool

    @property
    def attribute(self) -> str:
        """Name of the attribute that programs use."""
        return self.field.attribute

    @property
    def member(self) -> str:
        """Name of the C member; field names do not begin with an underscore."""
        return f"_{self.field.attribute}"

    @property
    def c_type(self) -> str:
        """Type of the member."""
        return f"uint{8 * c_width(self.field.type)}_t" if self.is_integer else "object"

    @property
    def is_integer(self) -> bool:
        """Whether the value is a C integer."""
        return isinstance(self.field.type, ir.IntegerType) and not self.many and not self.field.nullable

    @property
    def is_lazy(self) -> bool:
        """Whether the value is stored as octets until its first access."""
        return (
            not self.many
            and isinstance(self.field.type, ir.ListType | ir.PairsType)
            and same_again(self.field.type)
        )


def message_slots(message: ir.Message) -> tuple[Slot, ...]:
    """Return the fields of a message that have values."""
    return tuple(Slot(field, many) for field, many in frame_fields(message))


def record_slots(record: ir.RecordType) -> tuple[Slot, ...]:
    """Return the fields of a record that have values."""
    return tuple(Slot(field, False) for field in record.fields if not field.implied)


def c_width(type: ir.Type) -> int:
    """Return the octets of the C integer that holds a value of an integer type."""
    assert isinstance(type, ir.IntegerType)
    return next(width for width in C_WIDTHS if width >= type.octets)


def c_number(value: int) -> str:
    """Return a number as a C literal in Cython."""
    return f"{value}ULL" if value >= 2**31 else str(value)


def none_of(value: str, members: tuple[int, ...]) -> str:
    """Return the condition that a number is none of `members`."""
    if len(members) == 1:
        return f"{value} != {c_number(members[0])}"
    return f"{value} not in ({', '.join(map(c_number, members))})"


def merged(fields: Sequence[ir.Field]) -> list[ir.Field]:
    """Return the fields of a run with adjacent constants merged."""
    found: list[ir.Field] = []
    for field in fields:
        last = found[-1].type if found else None
        if isinstance(field.type, ir.ConstantType) and isinstance(last, ir.ConstantType):
            both = ir.ConstantType(last.hex + field.type.hex)
            found[-1] = msgspec.structs.replace(found[-1], type=both)
        else:
            found.append(field)
    return found


def literal(value: str | bytes) -> str:
    """Return a text or octets as Cython source, in double quotes if it contains none."""
    source = octets_literal(value) if isinstance(value, bytes) else repr(value)
    if '"' in source:
        return source
    return source.replace("'", '"') if source.count("'") == 2 else source


def same_again(type: ir.Type) -> bool:
    """Return whether encoding always reproduces the octets of a value, and it contains no record."""
    match type:
        case ir.IntegerType() | ir.OctetsType():
            return True
        case ir.TextType(terminated=terminated):
            return not terminated
        case ir.ListType(element=element):
            return same_again(element)
        case ir.PairsType(name=name, value=value):
            return same_again(name) and (value is None or same_again(value))
    return False


def composites(protocol: ir.Protocol) -> dict[Composite, str]:
    """Return every composite type with the name of its functions, inner types first."""
    found: dict[Composite, str] = {}
    for message in protocol.messages:
        for field in message.fields:
            for type in _inside(field.type):
                if type in found:
                    continue
                match type:
                    case ir.ListType():
                        found[type] = f"list_{len(found) + 1}"
                    case ir.PairsType():
                        found[type] = f"pairs_{len(found) + 1}"
                    case _:
                        found[type] = function_name(type)
    return found


def lazies(protocol: ir.Protocol) -> frozenset[ir.Type]:
    """Return the composite types of fields that are stored as octets, and the types inside them."""
    slots = [slot for message in protocol.messages for slot in message_slots(message)]
    for type in composites(protocol):
        slots += record_slots(type) if isinstance(type, ir.RecordType) else ()
    return frozenset(type for slot in slots if slot.is_lazy for type in _inside(slot.field.type))


def _inside(type: ir.Type) -> Iterator[Composite]:
    match type:
        case ir.ListType(element=element):
            yield from _inside(element)
            yield type
        case ir.RecordType(fields=fields):
            for field in fields:
                yield from _inside(field.type)
            yield type
        case ir.UnionType(options=options):
            for option in options:
                yield from _inside(option)
            yield type
        case ir.PairsType():
            yield type
