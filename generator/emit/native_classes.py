"""Classes of a compiled codec for its template: C members, and the conversion of arguments to them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.emit.codec import class_doc, field_doc, record_doc, wire_flags
from specwire.generator.emit.decoding import keyword_only
from specwire.generator.emit.native_frames import decode_function
from specwire.generator.emit.native_parts import encode_function
from specwire.generator.emit.native_types import (
    CYTHON_WORDS,
    Composite,
    Slot,
    c_number,
    literal,
    message_slots,
    record_slots,
)
from specwire.generator.emit.python import announcing_bits, constant_value, default, paragraph
from specwire.generator.emit.records import unions
from specwire.generator.ir.names import snake_case
from specwire.generator.passes.shapes import readers, takes_sender


@dataclass(frozen=True, slots=True)
class _Property:
    """Field of a class, for the template."""

    name: str
    doc: str
    read: str


@dataclass(frozen=True, slots=True)
class Class:
    """Message or record class; every attribute is Cython source."""

    name: str
    function: str
    base: str
    doc: str
    constants: tuple[str, ...]
    names: str
    defaults: tuple[tuple[str, str], ...]
    keywords: bool
    members: tuple[str, ...]
    properties: tuple[_Property, ...]
    hidden: tuple[_Property, ...]
    """Fields whose names Cython rejects as names of properties."""
    lazies: tuple[tuple[str, str, str], ...]
    """Method, member and function of each field that is decoded on first access."""
    values: str
    """Values of all fields as a tuple."""
    wire_flags: tuple[str, ...]
    """Terms of the complete flags octet."""
    fills: tuple[str, ...]
    """Statements that store the constructor's arguments in the members."""
    integers: bool
    """Whether a member is a C integer."""
    unfit: bool
    """Whether some values fit no member."""
    count: int
    encode: str = ""
    only: str = ""
    """For a message whose values could match another message: the condition that they do."""
    decode: str = ""


def message_class(
    message: ir.Message, number: int, protocol: ir.Protocol, names: dict[Composite, str]
) -> Class:
    """Return the class of a message, number `number` of the protocol."""
    arguments = [f", {sender!r}" if takes_sender(protocol) else "" for sender in readers(message, protocol)]
    spelled = " or ".join(f"_kind_of(made, len(made){argument}) != {number}" for argument in arguments)
    constants = [f"NAME = {literal(message.name)}", f"PROTOCOL = {literal(protocol.name)}"]
    return _class(
        message.class_name,
        snake_case(message.name),
        "NativeMessage",
        class_doc(message, protocol),
        [*constants, *_constants(message.fields)],
        message_slots(message),
        protocol,
        names,
        keywords=keyword_only(message),
        flags=wire_flags(message),
        encode=encode_function(message, protocol, names),
        only=spelled if message.shadowed else "",
        decode=decode_function(message, protocol, names),
    )


def record_class(record: ir.RecordType, protocol: ir.Protocol, names: dict[Composite, str]) -> Class:
    """Return the class of a record."""
    constants = [f"NAME = {literal(record.name)}"]
    if any(record in union.options for union in unions(protocol)):
        constants.append("TAGGED = True")
    return _class(
        record.class_name,
        names[record],
        "NativeRecord",
        record_doc(record, protocol),
        [*constants, *_constants(record.fields)],
        record_slots(record),
        protocol,
        names,
    )


def _class(
    name: str,
    function: str,
    base: str,
    doc: str,
    constants: list[str],
    slots: tuple[Slot, ...],
    protocol: ir.Protocol,
    names: dict[Composite, str],
    *,
    keywords: bool = False,
    flags: str = "",
    encode: str = "",
    only: str = "",
    decode: str = "",
) -> Class:
    properties = [_property(slot, number, protocol) for number, slot in enumerate(slots)]
    defaults = tuple((slot.attribute, _default(slot.field)) for slot in slots if not slot.field.required)
    return Class(
        name=name,
        function=function,
        base=base,
        doc=doc,
        constants=tuple(constants),
        names=_tuple([literal(slot.attribute) for slot in slots]),
        defaults=defaults,
        keywords=keywords,
        members=tuple(f"{slot.c_type} {slot.member}" for slot in slots),
        properties=tuple(entry for entry in properties if entry.name not in CYTHON_WORDS),
        hidden=tuple(entry for entry in properties if entry.name in CYTHON_WORDS),
        lazies=tuple(_lazy(slot, names) for slot in slots if slot.is_lazy),
        values=_tuple([_value(slot) for slot in slots]),
        wire_flags=tuple(flags.split(" | ")) if flags else (),
        fills=tuple(_fill(slot, number) for number, slot in enumerate(slots)),
        integers=any(slot.is_integer for slot in slots),
        unfit=any(slot.is_integer or slot.is_lazy for slot in slots),
        count=len(slots),
        encode=encode,
        only=only,
        decode=decode,
    )


def _value(slot: Slot) -> str:
    return f"self.read_{slot.attribute}__()" if slot.is_lazy else f"self.{slot.member}"


def _tuple(items: Sequence[str]) -> str:
    """Return a tuple as Cython source, on several lines if it is long; for an indentation of eight."""
    if len(items) == 1:
        return f"({items[0]},)"
    line = f"({', '.join(items)})"
    if len(line) <= 84:
        return line
    inside = textwrap.fill(", ".join(items) + ",", 96, break_long_words=False, break_on_hyphens=False)
    return f"(\n{textwrap.indent(inside, ' ' * 12)}\n        )"


def _constants(fields: tuple[ir.Field, ...]) -> list[str]:
    """Return class variables, except those hidden by a field of the same name, as in the pure class."""
    taken = CYTHON_WORDS | {found.attribute for found in fields if not found.implied}
    return [
        f"{found.attribute} = {_constant(found.type)}"
        for found in fields
        if isinstance(found.type, ir.ConstantType) and found.type.hex and found.attribute not in taken
    ]


def _constant(type: ir.ConstantType) -> str:
    if type.text is not None:
        return literal(type.text)
    kind, value = constant_value(type)
    return literal(type.octets) if kind == "bytes" else value


def _default(field: ir.Field) -> str:
    return default(field) or "None"


def _property(slot: Slot, number: int, protocol: ir.Protocol) -> _Property:
    doc = paragraph(field_doc(slot.field, slot.many, announcing_bits(protocol)), 8)
    if slot.is_integer:
        read = f"return self.{slot.member} if self.kept__ is None else self.kept__[{number}]"
    elif slot.is_lazy:
        read = f"return self.read_{slot.attribute}__() if self.kept__ is None else self.kept__[{number}]"
    else:
        read = f"return self.{slot.member}"
    return _Property(slot.attribute, doc, read)


def _lazy(slot: Slot, names: dict[Composite, str]) -> tuple[str, str, str]:
    assert isinstance(slot.field.type, ir.ListType | ir.PairsType)
    return f"read_{slot.attribute}__", slot.member, f"_take_{names[slot.field.type]}"


def _fill(slot: Slot, number: int) -> str:
    """Return the statement that stores an argument in its member or records that it does not fit."""
    given = f"<object>values[{number}]"
    if slot.is_integer:
        assert isinstance(slot.field.type, ir.IntegerType)
        most = c_number(256**slot.field.type.octets - 1)
        return f"if fits(values[{number}], {most}, &value):\n        made.{slot.member} = value\n    else:\n        fitting = False"
    if slot.is_lazy:
        # Octets in this member mean that the value is not decoded yet; a program may not pass them.
        return f"if type({given}) is bytes:\n        fitting = False\n    else:\n        made.{slot.member} = {given}"
    return f"made.{slot.member} = {given}"
