"""Layouts of messages as Java expressions: the twin of ``layout.py``, without what only ``strict`` needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from specwire.generator import ir
from specwire.generator.emit.java_source import Call, java_list, java_string
from specwire.generator.passes.shapes import role_letters, takes_sender, weight
from specwire.generator.plan.layouts import selected


def selection_calls(protocol: ir.Protocol) -> tuple[str, list[Call]]:
    """Return the name of the factory method of the protocol, and the data that tell its messages apart."""
    shapes = [(message.class_name, shape) for message in protocol.messages for shape in message.shapes]
    if shapes:
        shapes.sort(key=lambda row: -weight(row[1]))
        roles = role_letters(protocol) if takes_sender(protocol) else ()
        rows = java_list(_shape(name, shape, roles) for name, shape in shapes)
        return "ofShapes", [java_list(map(java_string, roles)), rows]
    if any(selector.pattern for selector in protocol.selectors):
        return "ofPatterns", []
    return "ofTags", [java_list(_selector(selector) for selector in protocol.selectors)]


def message_call(message: ir.Message, protocol: ir.Protocol) -> Call:
    """Return the expression for a message."""
    patterned = any(selector.pattern for selector in protocol.selectors)
    tags = [
        Call("new Tag", tuple(java_string(piece.hex()) for piece in tag))
        for tag in selected(message, protocol)
    ]
    patterns = [java_string(tag) for tag in message.tags] if patterned else []
    parts = tuple(_part(part, protocol, message) for part in message.parts)
    names = (java_string(message.name), java_string(message.class_name))
    return Call("new Message", (*names, java_list(tags), java_list(patterns), *parts))


def _selector(selector: ir.Selector) -> Call:
    if selector.octets is None:
        return Call("Selector.frame", (str(selector.frame),))
    return Call("Selector.octets", (str(selector.frame), str(selector.octets)))


def _shape(class_name: str, shape: ir.Shape, roles: Sequence[str]) -> Call:
    heads = (
        Call("new Shape.Head", (java_string(head.octets), str(head.whole).lower())) for head in shape.frames
    )
    most = -1 if shape.most is None else shape.most
    senders = java_list(map(java_string, shape.senders if roles else ()))
    needs_sender = str(shape.needs_sender).lower()
    return Call(
        "new Shape", (java_string(class_name), str(shape.least), str(most), senders, needs_sender, *heads)
    )


def _part(part: ir.Part, protocol: ir.Protocol, message: ir.Message) -> Call:
    if isinstance(part, ir.Rest):
        return Call("new Rest", (_field(part.field, protocol, message),))
    presence = _presence(part.presence)
    if isinstance(part, ir.Stack):
        return Call("new Stack", (presence, _field(part.field, protocol, message)))
    fields = (_field(field, protocol, message) for field in part.fields)
    return Call("new Frame", (java_string(part.name), presence, *fields))


def _presence(presence: ir.Presence) -> Call | str:
    match presence:
        case ir.Always(mask=0):
            return "Presence.ALWAYS"
        case ir.Always(mask=mask, value=value):
            return Call("Presence.always", (f"0x{mask:02x}", f"0x{value:02x}"))
        case ir.Announced(mask=mask, value=value):
            return Call("Presence.announced", (f"0x{mask:02x}", f"0x{value:02x}"))
        case ir.Counted():
            return Call("Presence.counted")


def _field(field: ir.Field, protocol: ir.Protocol, message: ir.Message, owner: str | None = None) -> Call:
    """Return a field; `owner` is the rule of the record that contains it."""
    rule = java_string(field.rule or owner or message.name)
    found = Call("new Field", (java_string(field.name), rule, _type(field.type, protocol, message)))
    if isinstance(field.type, ir.IntegerType) and field.type.bitmask:
        found = found.followed(".asFlags()")
    return found.followed(".asOptional()") if field.optional else found


def _type(type: ir.Type, protocol: ir.Protocol, message: ir.Message) -> Call:
    match type:
        case ir.ConstantType():
            words = repr(type.text) if type.text is not None else f"0x{type.hex}" if type.hex else "nothing"
            return Call("new Constant", (java_string(type.hex), java_string(words)))
        case ir.KeywordType(options=options):
            return Call("new Keyword", tuple(map(java_string, options)))
        case ir.PaddingType(octets=octets):
            return Call("new Padding", (str(octets),))
        case ir.SizeType(forms=forms):
            return Call("new Size", tuple(_form(form) for form in forms))
        case ir.IntegerType():
            return _integer(type, protocol)
        case ir.TextType():
            return _text(type)
        case ir.OctetsType():
            return _octets(type)
        case ir.JsonType():
            return Call("new Json")
        case ir.ListType(count_octets=count, element=element, minimum=minimum):
            return Call("new ListOf", (str(count), _type(element, protocol, message), str(minimum)))
        case ir.PairsType():
            return _pairs(type, protocol, message)
        case ir.RecordType():
            return _record(type, protocol, message)
        case ir.UnionType(options=options, tags=tags):
            found = (
                (java_string(option.name), java_string(tag), _record(option, protocol, message))
                for option, tag in zip(options, tags, strict=True)
            )
            return Call("new Union", tuple(Call("new Union.Option", arguments) for arguments in found))


def _form(form: ir.SizeForm) -> Call:
    return Call("new Size.Form", (java_string(form.tag), str(form.octets)))


def _integer(type: ir.IntegerType, protocol: ir.Protocol) -> Call:
    return Call("new Unsigned", (str(type.octets), *members(type, protocol)))


def members(type: ir.IntegerType, protocol: ir.Protocol) -> tuple[str, ...]:
    """Return the allowed values of an integer as Java literals; empty if any value is allowed."""
    named = next((enum.members for enum in protocol.enums if enum.name == type.enum), ())
    return tuple(_longs(tuple(value for _, value in named) or type.values))


def _longs(values: Iterable[int]) -> Iterable[str]:
    """Yield unsigned integers as Java literals: in hexadecimal beyond the signed range."""
    return (f"{value}L" if value < 2**63 else f"0x{value:016x}L" for value in values)


def _text(type: ir.TextType) -> Call:
    found = Call("new Text", (_span(type.length),))
    if type.terminated:
        found = found.followed(".terminated()")
    return found.followed(f".padded(0x{type.padding})") if type.padding is not None else found


def _octets(type: ir.OctetsType) -> Call:
    span = _span(type.length)
    if type.maximum is not None:
        return Call("new Octets", (span, str(type.minimum), f"{min(type.maximum, 2**63 - 1)}L"))
    return Call("new Octets", (span, str(type.minimum)) if type.minimum else (span,))


def _pairs(type: ir.PairsType, protocol: ir.Protocol, message: ir.Message) -> Call:
    rule = java_string(type.rule) if type.rule else "null"
    if type.split:
        inside: Call | str = f"Pairs.Split.{type.split.upper()}"
    else:
        assert type.value is not None
        inside = _type(type.value, protocol, message)
    return Call("new Pairs", (str(type.count_octets), _text(type.name), inside, rule, str(type.minimum)))


def _record(type: ir.RecordType, protocol: ir.Protocol, message: ir.Message) -> Call:
    fields = (_field(field, protocol, message, type.rule) for field in type.fields)
    return Call("new Struct", (java_string(type.rule) if type.rule else "null", *fields))


def _span(length: ir.Length) -> Call:
    match length.kind:
        case "until":
            return Call("Span.until", (java_string(length.until),))
        case "rest":
            return Call("Span.rest")
        case kind:
            return Call(f"Span.{kind}", (str(length.octets),))
