"""Writes ``layout.py``: the protocol's layout as data, for the slow paths."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.python import octets_literal
from specwire.generator.emit.write import Emitter, header, render


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's layout module."""
    announcing = 0
    for bit in protocol.flags:
        announcing |= bit.value if bit.announces else 0
    messages = [_message(message, protocol) for message in protocol.messages]
    names = sorted({word for text in messages for word in _used(text)} | {"MessageLayout", "ProtocolLayout"})
    return render(
        "layout.py.j2",
        header=header(protocol, f"{protocol.edition}: the layout of its messages, for precise errors."),
        names=names,
        protocol=repr(protocol.name),
        edition=repr(protocol.edition),
        selectors=repr(tuple((selector.frame, selector.octets) for selector in protocol.selectors)),
        messages=messages,
        announcing=f"0x{announcing:02x}",
    )


_NAMES = (
    "ALWAYS", "Constant", "Field", "Frame", "Integer", "Json", "Keyword", "ListOf", "Octets", "Pairs", "Presence",
    "Rest", "Span", "Stack", "Text",
)  # fmt: skip


def _used(text: str) -> set[str]:
    return {name for name in _NAMES if f"{name}(" in text}


def _message(message: ir.Message, protocol: ir.Protocol) -> str:
    parts = ", ".join(_part(part, protocol, message) for part in message.parts)
    return f"MessageLayout({message.name!r}, {message.class_name!r}, {selected(message, protocol)!r}, ({parts},))"


def selected(message: ir.Message, protocol: ir.Protocol) -> tuple[tuple[bytes, ...], ...]:
    """Return what the selectors find in a message: for each spelling of its tag, a piece for each selector."""
    found: list[tuple[bytes, ...]] = []
    for tag in message.tags:
        octets = bytes.fromhex(tag)
        pieces: list[bytes] = []
        for selector in protocol.selectors:
            size = selector.octets or _frame_size(message, selector.frame, octets)
            pieces.append(octets[:size])
            octets = octets[size:]
        found.append(tuple(pieces))
    return tuple(found)


def _frame_size(message: ir.Message, index: int, octets: bytes) -> int:
    """The length of the spelling that `octets` begin with, in a frame that is one constant."""
    part = message.parts[index]
    assert isinstance(part, ir.Frame)
    type = part.fields[0].type
    options = [type.octets] if isinstance(type, ir.ConstantType) else []
    if isinstance(type, ir.KeywordType):
        options = [option.encode() for option in type.options]
    return next(len(option) for option in options if octets.startswith(option))


def _part(part: ir.Part, protocol: ir.Protocol, message: ir.Message) -> str:
    if isinstance(part, ir.Rest):
        return f"Rest({part.name!r}, {_field(part.field, protocol, message)})"
    extra = _presence(part.presence)
    if part.letter:
        extra += f", letter={part.letter!r}"
    if isinstance(part, ir.Stack):
        return f"Stack({part.name!r}, {_field(part.field, protocol, message)}{extra})"
    fields = "".join(f"{_field(field, protocol, message)}, " for field in part.fields)
    return f"Frame({part.name!r}, ({fields}){extra})"


def _presence(presence: ir.Presence) -> str:
    match presence:
        case ir.Always(mask=0):
            return ""
        case ir.Always(mask=mask, value=value):
            return f", presence=Presence('always', 0x{mask:02x}, 0x{value:02x})"
        case ir.Announced(mask=mask, value=value):
            return f", presence=Presence('announced', 0x{mask:02x}, 0x{value:02x})"
        case ir.Counted():
            return ", presence=Presence('counted')"


def _field(field: ir.Field, protocol: ir.Protocol, message: ir.Message) -> str:
    flags = ", flags=True" if isinstance(field.type, ir.IntegerType) and field.type.bitmask else ""
    rule = field.rule or message.name
    return f"Field({field.name!r}, {field.attribute!r}, {rule!r}, {_type(field.type, protocol)}{flags})"


def _type(type: ir.Type, protocol: ir.Protocol) -> str:
    match type:
        case ir.ConstantType():
            words = repr(type.text) if type.text is not None else f"0x{type.hex}" if type.hex else "nothing"
            return f"Constant({octets_literal(type.octets)}, {words!r})"
        case ir.KeywordType(options=options):
            return f"Keyword({options!r})"
        case ir.IntegerType(octets=octets, enum=enum):
            found = next((e.members for e in protocol.enums if e.name == enum), ())
            members = tuple(value for _, value in found)
            return f"Integer({octets}, {members!r})" if members else f"Integer({octets})"
        case ir.TextType(length=length, pattern=pattern, terminated=terminated):
            shown = f", {_pattern(pattern)}" if pattern is not None else ""
            return f"Text({_length(length)}{shown}{', terminated=True' if terminated else ''})"
        case ir.OctetsType(length=length, minimum=minimum):
            return f"Octets({_length(length)}{f', {minimum}' if minimum else ''})"
        case ir.JsonType():
            return "Json()"
        case ir.ListType(count_octets=count, element=element):
            return f"ListOf({count}, {_type(element, protocol)})"
        case ir.PairsType(count_octets=count, name=name, value=value, split=split, rule=rule):
            rest = f", split={split!r}" if split else f", {_type(value, protocol)}" if value else ""
            rest += f", rule={rule!r}" if rule else ""
            return f"Pairs({count}, {_type(name, protocol)}{rest})"


def _length(length: ir.Length) -> str:
    return f"Span({length.kind!r}, {length.octets})" if length.octets else f"Span({length.kind!r})"


def _pattern(pattern: str) -> str:
    return f'rb"{pattern}"'


EMITTER = Emitter("layout.py", emit)
