"""Emitter of ``layout.py``: the protocol's layout as data, for the slow paths."""

from __future__ import annotations

from specwire.generator import ir
from specwire.generator.emit.python import octets_literal
from specwire.generator.emit.write import Emitter, header, render
from specwire.generator.passes.shapes import role_letters, takes_sender, weight


def emit(protocol: ir.Protocol) -> str:
    """Return the source of a package's layout module."""
    announcing = 0
    for bit in protocol.flags:
        announcing |= bit.value if bit.announces else 0
    messages = [_message(message, protocol) for message in protocol.messages]
    shapes = _shapes(protocol)
    names = sorted(
        {word for text in (*messages, *shapes) for word in _used(text)} | {"MessageLayout", "ProtocolLayout"}
    )
    return render(
        "layout.py.j2",
        header=header(
            protocol,
            f"{protocol.edition}: layout of its messages, used to report the exact position of faults.",
        ),
        names=names,
        protocol=repr(protocol.name),
        edition=repr(protocol.edition),
        selectors=repr(tuple((selector.frame, selector.octets) for selector in protocol.selectors)),
        messages=messages,
        announcing=f"0x{announcing:02x}",
        shapes=shapes,
        roles=repr(role_letters(protocol)) if takes_sender(protocol) else "",
        redact="" if protocol.redact is None else repr(protocol.redact),
    )


_NAMES = (
    "ALWAYS", "Constant", "Field", "Frame", "Integer", "Json", "Keyword", "ListOf", "Octets", "Padding", "Pairs",
    "Presence", "Record", "Rest", "Shape", "Size", "Span", "Stack", "Text", "Union",
)  # fmt: skip


def _used(text: str) -> set[str]:
    return {name for name in _NAMES if f"{name}(" in text}


def _shapes(protocol: ir.Protocol) -> list[str]:
    """Return the rows of the shapes, the most specific first."""
    rows = [(message.class_name, shape) for message in protocol.messages for shape in message.shapes]
    rows.sort(key=lambda row: -weight(row[1]))
    return [f"({name!r}, {_shape(shape, takes_sender(protocol))})" for name, shape in rows]


def _shape(shape: ir.Shape, takes_sender: bool) -> str:
    frames = "".join(f"({head.octets!r}, {head.whole}), " for head in shape.frames)
    senders = f", {shape.senders!r}" if shape.senders and takes_sender else ""
    senders += ", by_octets=True" if senders and not shape.needs_sender else ""
    return f"Shape(({frames}), {shape.least}, {shape.most}{senders})"


def _message(message: ir.Message, protocol: ir.Protocol) -> str:
    parts = ", ".join(_part(part, protocol, message) for part in message.parts)
    entry = f"{message.name!r}, {message.class_name!r}, {selected(message, protocol)!r}, ({parts},)"
    if any(selector.pattern for selector in protocol.selectors):
        entry += f", {message.tags!r}"
    return f"MessageLayout({entry})"


def selected(message: ir.Message, protocol: ir.Protocol) -> tuple[tuple[bytes, ...], ...]:
    """Return the octets at the selectors in a message: for each spelling of its tag, one piece each.

    Empty if patterns tell messages apart.
    """
    found: list[tuple[bytes, ...]] = []
    if not protocol.selectors or any(selector.pattern for selector in protocol.selectors):
        return ()
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
    """Return the length of the spelling with which `octets` begin, in a frame that is one constant."""
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


def _field(field: ir.Field, protocol: ir.Protocol, message: ir.Message, owner: str = "") -> str:
    """Return a field; `owner` is the rule of the record that contains it."""
    extra = ", flags=True" if isinstance(field.type, ir.IntegerType) and field.type.bitmask else ""
    extra += ", optional=True" if field.optional else ""
    rule = field.rule or owner or message.name
    type = _type(field.type, protocol, message)
    return f"Field({field.name!r}, {field.attribute!r}, {rule!r}, {type}{extra})"


def _type(type: ir.Type, protocol: ir.Protocol, message: ir.Message) -> str:
    match type:
        case ir.ConstantType():
            words = repr(type.text) if type.text is not None else f"0x{type.hex}" if type.hex else "nothing"
            return f"Constant({octets_literal(type.octets)}, {words!r})"
        case ir.KeywordType(options=options):
            return f"Keyword({options!r})"
        case ir.PaddingType(octets=octets, fill=fill):
            return f"Padding({octets}, {octets_literal(bytes.fromhex(fill))})"
        case ir.SizeType(forms=forms):
            listed = "".join(f"({octets_literal(bytes.fromhex(f.tag))}, {f.octets}), " for f in forms)
            return f"Size(({listed}))"
        case ir.IntegerType():
            return _integer(type, protocol)
        case ir.TextType():
            return _text(type)
        case ir.OctetsType(length=length, minimum=minimum, maximum=maximum):
            least = f", {minimum}" if minimum or maximum is not None else ""
            return f"Octets({_length(length)}{least}{f', {maximum}' if maximum is not None else ''})"
        case ir.JsonType():
            return "Json()"
        case ir.ListType(count_octets=count, element=element, minimum=minimum):
            least = f", {minimum}" if minimum else ""
            return f"ListOf({count}, {_type(element, protocol, message)}{least})"
        case ir.PairsType():
            return _pairs(type, protocol, message)
        case ir.RecordType():
            return _record(type, protocol, message)
        case ir.UnionType(options=options, tags=tags):
            records = "".join(f"{_record(option, protocol, message)}, " for option in options)
            spelled = "".join(f"{octets_literal(bytes.fromhex(tag))}, " for tag in tags)
            return f"Union(({records}), ({spelled}))"


def _integer(type: ir.IntegerType, protocol: ir.Protocol) -> str:
    found = next((enum.members for enum in protocol.enums if enum.name == type.enum), ())
    members = tuple(value for _, value in found) or type.values
    return f"Integer({type.octets}, {members!r})" if members else f"Integer({type.octets})"


def _text(type: ir.TextType) -> str:
    extra = f", {_pattern(type.pattern)}" if type.pattern is not None else ""
    extra += ", terminated=True" if type.terminated else ""
    extra += f", padding={octets_literal(bytes.fromhex(type.padding))}" if type.padding is not None else ""
    return f"Text({_length(type.length)}{extra})"


def _pairs(type: ir.PairsType, protocol: ir.Protocol, message: ir.Message) -> str:
    extra = f", {_type(type.value, protocol, message)}" if type.value else ""
    extra += f", split={type.split!r}" if type.split else ""
    extra += f", rule={type.rule!r}" if type.rule else ""
    extra += f", minimum={type.minimum}" if type.minimum else ""
    return f"Pairs({type.count_octets}, {_type(type.name, protocol, message)}{extra})"


def _record(type: ir.RecordType, protocol: ir.Protocol, message: ir.Message) -> str:
    fields = "".join(f"{_field(field, protocol, message, type.rule or '')}, " for field in type.fields)
    rule = f", {type.rule!r}" if type.rule else ""
    return f"Record({type.class_name!r}, ({fields}){rule})"


def _length(length: ir.Length) -> str:
    if length.until:
        return f"Span({length.kind!r}, until={octets_literal(bytes.fromhex(length.until))})"
    return f"Span({length.kind!r}, {length.octets})" if length.octets else f"Span({length.kind!r})"


def _pattern(pattern: str) -> str:
    return f'rb"{pattern}"'


EMITTER = Emitter("layout.py", emit)
