"""Classes of a compiled codec for its template: C members, and the conversion of arguments to them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace

from specwire.generator import ir
from specwire.generator.emit.bodies import record_function
from specwire.generator.emit.codec import class_doc, field_doc, record_doc, wire_flags
from specwire.generator.emit.decoding import keyword_only
from specwire.generator.emit.native_frames import decode_message, encode_message
from specwire.generator.emit.native_names import (
    CYTHON_WORDS,
    Functions,
    Member,
    c_number,
    literal,
    message_members,
    record_members,
)
from specwire.generator.emit.python import constant_value, default, frame_fields, paragraph
from specwire.generator.emit.records import unions
from specwire.generator.ir.names import snake_case
from specwire.generator.passes.shapes import readers, takes_sender
from specwire.generator.support.plan import Loop, MessagePlan, RecordPlan


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
    members: tuple[str, ...]
    properties: tuple[_Property, ...]
    hidden: tuple[_Property, ...]
    """Fields whose names Cython rejects as names of properties."""
    held: tuple[tuple[str, str, str], ...]
    """Method, member and function of each field that is decoded on first access."""
    values: str
    """Values of all fields as a tuple."""
    fills: tuple[str, ...]
    """Statements that store the constructor's arguments in the members."""
    integers: bool
    """Whether a member is a C integer."""
    unfit: bool
    """Whether some values fit no member."""
    count: int
    keywords: bool = False
    wire_flags: tuple[str, ...] = ()
    """Terms of the complete flags octet."""
    encode: str = ""
    only: str = ""
    """For a message whose values could match another message: the condition that they do."""
    decode: str = ""


def message_class(
    message: ir.Message, plan: MessagePlan, number: int, protocol: ir.Protocol, functions: Functions
) -> Class:
    """Return the class of a message, number `number` of the protocol."""
    arguments = [f", {sender!r}" if takes_sender(protocol) else "" for sender in readers(message, protocol)]
    spelled = " or ".join(f"_kind_of(made, len(made){argument}) != {number}" for argument in arguments)
    constants = [f"NAME = {literal(message.name)}", f"PROTOCOL = {literal(protocol.name)}"]
    members = message_members(plan)
    found = _class(
        message.class_name,
        "NativeMessage",
        (*constants, *_constants(message.fields)),
        [(field, members[field.attribute]) for field, _ in frame_fields(message)],
        functions,
    )
    flags = wire_flags(message)
    return replace(
        found,
        function=snake_case(message.name),
        doc=class_doc(message, protocol),
        keywords=keyword_only(message),
        wire_flags=tuple(flags.split(" | ")) if flags else (),
        encode=encode_message(plan, functions),
        only=spelled if message.shadowed else "",
        decode=decode_message(plan, functions),
    )


def record_class(
    record: ir.RecordType, plan: RecordPlan, protocol: ir.Protocol, functions: Functions
) -> Class:
    """Return the class of a record."""
    constants = [f"NAME = {literal(record.name)}"]
    if any(record in union.options for union in unions(protocol)):
        constants.append("TAGGED = True")
    members = record_members(plan.body)
    found = _class(
        record.class_name,
        "NativeRecord",
        (*constants, *_constants(record.fields)),
        [(field, members[field.attribute]) for field in record.fields if not field.implied],
        functions,
    )
    return replace(found, doc=record_doc(record, protocol))


def _class(
    name: str,
    base: str,
    constants: tuple[str, ...],
    fields: Sequence[tuple[ir.Field, Member]],
    functions: Functions,
) -> Class:
    properties = [_property(field, member, n, functions) for n, (field, member) in enumerate(fields)]
    members = [member for _, member in fields]
    return Class(
        name=name,
        function=record_function(name),
        base=base,
        doc="",
        constants=constants,
        names=_tuple([literal(member.op.slot) for member in members]),
        defaults=tuple(
            (field.attribute, default(field) or "None") for field, _ in fields if not field.required
        ),
        members=tuple(f"{member.c_type} {member.name}" for member in members),
        properties=tuple(entry for entry in properties if entry.name not in CYTHON_WORDS),
        hidden=tuple(entry for entry in properties if entry.name in CYTHON_WORDS),
        held=tuple(
            (f"read{member.name}__", member.name, f"_take_{functions.loop(member.op)}")
            for member in members
            if isinstance(member.op, Loop) and member.is_held
        ),
        values=_tuple([_value(member) for member in members]),
        fills=tuple(_fill(member, number) for number, member in enumerate(members)),
        integers=any(member.range for member in members),
        unfit=any(member.range or member.is_held for member in members),
        count=len(members),
    )


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


def _value(member: Member) -> str:
    return f"self.read{member.name}__()" if member.is_held else f"self.{member.name}"


def _property(field: ir.Field, member: Member, number: int, functions: Functions) -> _Property:
    doc = paragraph(field_doc(field, member.many, functions.announcing), 8)
    kept = f" if self.kept__ is None else self.kept__[{number}]" if member.range or member.is_held else ""
    return _Property(field.attribute, doc, f"return {_value(member)}{kept}")


def _fill(member: Member, number: int) -> str:
    """Return the statement that stores an argument in its member or records that it does not fit."""
    given = f"<object>values[{number}]"
    if ends := member.range:
        least, most = map(c_number, ends)
        call = (
            f"fits_signed(values[{number}], {least}, {most}" if ends[0] else f"fits(values[{number}], {most}"
        )
        value = "<int64_t>value" if ends[0] else "value"
        return (
            f"if {call}, &value):\n        made.{member.name} = {value}\n    else:\n        fitting = False"
        )
    if member.is_held:
        # Octets in this member mean that the value is not decoded yet; a program may not pass them.
        return f"if type({given}) is bytes:\n        fitting = False\n    else:\n        made.{member.name} = {given}"
    return f"made.{member.name} = {given}"
