"""Classes of a compiled codec for its template: C members, and how arguments are stored in them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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
class _Field:
    """Field of a class and its C member; every text is Cython source."""

    member: Member
    number: int
    doc: str
    default: str | None
    take: str
    """Function that decodes a loop on first access."""

    @property
    def name(self) -> str:
        """Name of the attribute."""
        return self.member.op.slot

    @property
    def is_word(self) -> bool:
        """Whether Cython rejects the name as that of a property."""
        return self.name in CYTHON_WORDS

    @property
    def value(self) -> str:
        """Expression of the value in the member."""
        return f"self.read{self.member.name}__()" if self.take else f"self.{self.member.name}"

    @property
    def read(self) -> str:
        """Expression of the attribute."""
        is_kept = self.member.range or self.take
        return (
            f"{self.value} if self.kept__ is None else self.kept__[{self.number}]" if is_kept else self.value
        )

    @property
    def fits(self) -> str:
        """Condition that an argument fits the member; empty if every object does."""
        given = f"values[{self.number}]"
        if ends := self.member.range:
            least, most = map(c_number, ends)
            return (
                f"fits_signed({given}, {least}, {most}, &value)"
                if ends[0]
                else f"fits({given}, {most}, &value)"
            )
        # Octets in this member mean that the value is not decoded yet; a program may not pass them.
        return f"type(<object>{given}) is not bytes" if self.take else ""

    @property
    def given(self) -> str:
        """Expression of an argument that fits."""
        if ends := self.member.range:
            return "<int64_t>value" if ends[0] else "value"
        return f"<object>values[{self.number}]"


@dataclass(frozen=True, slots=True)
class Class:
    """Message or record class; every attribute is Cython source."""

    name: str
    function: str
    base: str
    doc: str
    constants: tuple[str, ...]
    fields: tuple[_Field, ...]
    keywords: bool = False
    wire_flags: tuple[str, ...] = ()
    """Terms of the complete flags octet."""
    encode: str = ""
    only: str = ""
    """For a message whose values could match another message: the condition that they do."""
    decode: str = ""

    @property
    def names(self) -> str:
        """Names of all fields as a tuple."""
        return _tuple([literal(field.name) for field in self.fields])

    @property
    def values(self) -> str:
        """Values of all fields as a tuple."""
        return _tuple([field.value for field in self.fields])

    @property
    def integers(self) -> bool:
        """Whether a member is a C integer."""
        return any(field.member.range for field in self.fields)


def message_class(
    message: ir.Message, plan: MessagePlan, number: int, protocol: ir.Protocol, functions: Functions
) -> Class:
    """Return the class of a message, number `number` of the protocol."""
    arguments = [f", {sender!r}" if takes_sender(protocol) else "" for sender in readers(message, protocol)]
    spelled = " or ".join(f"_kind_of(made, len(made){argument}) != {number}" for argument in arguments)
    constants = [f"NAME = {literal(message.name)}", f"PROTOCOL = {literal(protocol.name)}"]
    flags = wire_flags(message)
    return Class(
        name=message.class_name,
        function=snake_case(message.name),
        base="NativeMessage",
        doc=class_doc(message, protocol),
        constants=(*constants, *_constants(message.fields)),
        fields=_fields([field for field, _ in frame_fields(message)], message_members(plan), functions),
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
    valued = [field for field in record.fields if not field.implied]
    return Class(
        name=record.class_name,
        function=record_function(record.class_name),
        base="NativeRecord",
        doc=record_doc(record, protocol),
        constants=(*constants, *_constants(record.fields)),
        fields=_fields(valued, record_members(plan.body), functions),
        keywords=keyword_only(record),
    )


def _fields(
    fields: Sequence[ir.Field], members: Mapping[str, Member], functions: Functions
) -> tuple[_Field, ...]:
    found: list[_Field] = []
    for number, field in enumerate(fields):
        member = members[field.attribute]
        doc = paragraph(field_doc(field, member.many, functions.announcing), 8)
        given = None if field.required else default(field) or "None"
        take = f"_take_{functions.loop(member.op)}" if member.is_held and isinstance(member.op, Loop) else ""
        found.append(_Field(member, number, doc, given, take))
    return tuple(found)


def _tuple(items: Sequence[str]) -> str:
    """Return a tuple as Cython source, on several lines if it is long, indented by eight."""
    if len(items) == 1:
        return f"({items[0]},)"
    line = f"({', '.join(items)})"
    if len(line) <= 84:
        return line
    inside = textwrap.fill(", ".join(items) + ",", 96, break_long_words=False, break_on_hyphens=False)
    return f"(\n{textwrap.indent(inside, ' ' * 12)}\n        )"


def _constants(fields: tuple[ir.Field, ...]) -> list[str]:
    """Return class variables, except those hidden by a field of the same name."""
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
