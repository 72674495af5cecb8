"""Writes ``codec.py``: a class for each message, and `decode`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from specwire.generator import ir
from specwire.generator.emit.decoding import decode_function, keyword_only
from specwire.generator.emit.encoding import encode_body
from specwire.generator.emit.layout import selected
from specwire.generator.emit.python import (
    annotation,
    announcing_bits,
    constant_value,
    default,
    frame_fields,
    octets_literal,
    paragraph,
    sentence,
)
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.names import snake_case


@dataclass(frozen=True, slots=True)
class _Class:
    """A message class as the template lays it out; every attribute is Python text."""

    name: str
    doc: str
    options: str
    constants: tuple[str, ...]
    fields: tuple[str, ...]
    wire_flags: str
    encode: str
    """The statements that make ``frames``; for a message without fields the frames themselves."""
    fixed: bool
    """The message has no fields: its frames are always the same."""
    decoder: str
    decode: str


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's codec module."""
    structs: dict[str, str] = {}
    classes = [_class(message, protocol, structs) for message in protocol.messages]
    bodies = "\n".join(entry.encode + entry.decode for entry in classes)
    widths = sorted({int(width) for width in re.findall(r"_U(\d+)\.", bodies)})
    return render(
        "codec.py.j2",
        header=header(protocol, f"{protocol.edition}: messages, and frames to messages and back."),
        name=protocol.name,
        edition=protocol.edition,
        enum_bases=[*(["IntEnum"] if protocol.enums else []), *(["IntFlag"] if protocol.flags else [])],
        enums=protocol.enums,
        flags=[(bit.name, f"0x{bit.value:02x}", paragraph(bit.doc, 4)) for bit in protocol.flags],
        constants=[(c.name, c.value, paragraph(c.doc)) for c in protocol.constants],
        messages=[message.class_name for message in protocol.messages],
        classes=classes,
        structs=[
            *((f"_U{width}", f">{ {8: 'B', 16: 'H', 32: 'I', 64: 'Q'}[width] }") for width in widths),
            *structs.items(),
        ],
        dispatch=_dispatch(protocol),
        entries=_entries(protocol),
        enum_checks=[(f"_{enum.name.upper()}", tuple(v for _, v in enum.members)) for enum in protocol.enums],
        keyword_only=any(keyword_only(message) for message in protocol.messages),
        helpers=[name for name in ("as_octets", "terminated", "without_nul") if f"{name}(" in bodies],
        answers=_answers(protocol),
        unexpected=protocol.unexpected,
        roles=[role.letter for role in protocol.roles],
    )


def _class(message: ir.Message, protocol: ir.Protocol, structs: dict[str, str]) -> _Class:
    encode, written = encode_body(message, protocol)
    decode, read = decode_function(message, protocol)
    structs |= read | written
    fixed = not list(frame_fields(message))
    return _Class(
        name=message.class_name,
        doc=_class_doc(message, protocol),
        options=", frozen=True, gc=False"
        + (", kw_only=True, metaclass=KeywordOnly" if keyword_only(message) else ""),
        constants=tuple(_constants(message, protocol)),
        fields=tuple(_fields(message, protocol)),
        wire_flags=_wire_flags(message),
        encode=encode.strip().removeprefix("frames = ") if fixed else encode,
        fixed=fixed,
        decoder=f"_decode_{snake_case(message.name)}",
        decode=decode,
    )


def _class_doc(message: ir.Message, protocol: ir.Protocol) -> str:
    """Name, meaning, frames and source; each field has a docstring of its own."""
    meaning = sentence(message.doc) or f"Message {message.name} of {protocol.title}."
    line = f", grammar line {message.line}" if message.line else ""
    return f"{paragraph(f'{message.name}: {meaning}', 4)}\n\n    Source: {protocol.edition}, rule {message.rule}{line}."


def _constants(message: ir.Message, protocol: ir.Protocol) -> list[str]:
    lines = [f"NAME: ClassVar[str] = {message.name!r}", f"PROTOCOL: ClassVar[str] = {protocol.name!r}"]
    for found in message.fields:
        if isinstance(found.type, ir.ConstantType) and found.type.hex:
            kind, value = constant_value(found.type)
            lines.append(f"{found.attribute}: ClassVar[{kind}] = {value}")
    if keyword_only(message):
        names = tuple(found.attribute for found, _ in frame_fields(message))
        lines.append(f"__match_args__: ClassVar[tuple[str, ...]] = {names!r}")
    return lines


def _fields(message: ir.Message, protocol: ir.Protocol) -> list[str]:
    lines: list[str] = []
    for found, many in frame_fields(message):
        value = default(found, protocol.constants)
        line = f"{found.attribute}: {annotation(found, many=many)}" + (
            f" = {value}" if value is not None else ""
        )
        doc = paragraph(_field_doc(found, many, announcing_bits(protocol)), 4)
        lines.append(f'{line}\n    """{doc}"""')
    return lines


def _field_doc(found: ir.Field, many: bool, announcing: int) -> str:
    """Meaning first, then what the type cannot say: range, unit, sentinels, absence."""
    words = sentence(found.doc) or sentence(found.name.replace("_", " "))
    facts: list[str] = []
    match found.type:
        case ir.IntegerType(bitmask=True) if announcing:
            facts.append(
                f"without the bits 0x{announcing:02x}, which follow from the other fields; `wire_flags` has all"
            )
        case ir.IntegerType(octets=octets, enum=None):
            facts.append(f"0 to {'2**64 - 1' if octets == 8 else 256**octets - 1}")
        case ir.IntegerType(enum=str() as enum):
            facts.append(f"a value of `{''.join(part.capitalize() for part in enum.split('_'))}`")
        case ir.TextType(length=ir.Length(kind="prefix", octets=octets)):
            facts.append(f"at most {256**octets - 1} octets of UTF-8")
        case ir.PairsType():
            facts.append("(name, value) pairs in wire order")
        case ir.KeywordType(options=options):
            facts.append(" or ".join(options))
    if many:
        facts.append("one item a frame")
    if found.unit:
        facts.append(f"in {found.unit}")
    facts.extend(f"`{name}` is special" for name in found.sentinels)
    if found.nullable:
        facts.append("None where the message has no such frame")
    return f"{words} {sentence('; '.join(facts))}".strip()


def _wire_flags(message: ir.Message) -> str:
    """The expression for the whole flags octet, an empty text for a message without one."""
    flags = next((f for f in message.fields if isinstance(f.type, ir.IntegerType) and f.type.bitmask), None)
    if flags is None:
        return ""
    terms = [f"self.{flags.attribute}"]
    for part in message.parts:
        if isinstance(part, ir.Rest) or isinstance(part.presence, ir.Counted) or not part.presence.value:
            continue
        name = part.fields[0].attribute if isinstance(part, ir.Frame) else part.field.attribute
        bits = f"0x{part.presence.value:02x}"
        always = isinstance(part.presence, ir.Always)
        terms.append(bits if always else f"({bits} if self.{name} is not None else 0)")
    return " | ".join(terms)


def _dispatch(protocol: ir.Protocol) -> str:
    """The expression that finds a message's decoder."""
    parts = [
        f"frames[{selector.frame}]" + ("" if selector.octets is None else f"[:{selector.octets}]")
        for selector in protocol.selectors
    ]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


def _entries(protocol: ir.Protocol) -> list[tuple[str, str]]:
    """The rows of the dispatch table: what `_dispatch` finds, and the decoder."""
    rows: list[tuple[str, str]] = []
    for message in protocol.messages:
        for pieces in selected(message, protocol):
            spelled = [octets_literal(piece) for piece in pieces]
            key = spelled[0] if len(spelled) == 1 else f"({', '.join(spelled)})"
            rows.append((key, f"_decode_{snake_case(message.name)}"))
    return rows


def _answers(protocol: ir.Protocol) -> list[str]:
    """The rows of the answers table: role, message, field, kind, reply."""
    rows: list[str] = []
    for answer in protocol.answers:
        reply = answer.reply or "None"
        rows.append(f"({answer.role!r}, {answer.message!r}, {answer.field!r}, {answer.kind!r}, {reply})")
    return rows


EMITTER = Emitter("codec.py", emit)
