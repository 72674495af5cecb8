"""Emitter of the fast decoders: straight-line code from frames to messages.

Each run of fields of fixed size is one `struct` unpack. Constants that the dispatch has compared
are skipped. Length checks are postponed to a single check at the end where possible: a slice that
is too short makes a later unpack, or that check, fail. A decoder only detects that something is
wrong, by any exception that `decode` catches. The slow path finds out what.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.generator import ir
from specwire.generator.emit.decoding_fields import FieldDecoder
from specwire.generator.emit.decoding_frames import check_elements, compared_octets, is_certain, take_frame
from specwire.generator.emit.decoding_parts import check_flags, counted, optional
from specwire.generator.emit.decoding_state import Decoder, MessageDecoder
from specwire.generator.emit.decoding_wholes import elements, is_whole
from specwire.generator.emit.python import Lines, octets_literal
from specwire.generator.emit.records import function_name, lends_slices


def decode_function(message: ir.Message, protocol: ir.Protocol) -> tuple[str, dict[str, str]]:
    """Return the body of ``_decode_<message>`` and the struct objects that it uses."""
    decoder = MessageDecoder(message.name, message.fields, protocol, message=message)
    parts = [part for part in message.parts if isinstance(part, ir.Rest) or is_certain(part)]
    if len(parts) == len(message.parts):
        _unpack_frames(decoder, parts)
    else:
        _walk_frames(decoder)
    keywords = keyword_only(message)
    decoder.lines.add(f"return {_construction(decoder, message.class_name, keywords=keywords)}")
    return str(decoder.lines), decoder.structs


def record_function(record: ir.RecordType, protocol: ir.Protocol) -> tuple[str, dict[str, str]]:
    """Return the body of ``_read_<record>(frame, at)``, which returns the record and where it ends."""
    decoder = Decoder(record.class_name, record.fields, protocol)
    frame, at = decoder.names.local("frame"), decoder.names.local("at")
    for name, parameter in ((frame, "frame"), (at, "at")):
        if name != parameter:
            decoder.lines.add(f"{name} = {parameter}")
    view = lends_slices(protocol)
    end = FieldDecoder(decoder, frame, 0, view=view, place=at).record(list(record.fields))
    decoder.lines.add(f"return {_construction(decoder, record.class_name)}, {end}")
    return str(decoder.lines), decoder.structs


def union_function(union: ir.UnionType) -> str:
    """Return the body of ``_read_<union>(frame, at)``, which reads the option that the tag selects."""
    lines = Lines(1)
    for option, tag in zip(union.options, union.tags, strict=True):
        octets = bytes.fromhex(tag)
        with lines.block(f"if frame[at : at + {len(octets)}] == {octets_literal(octets)}:"):
            lines.add(f"return _read_{function_name(option)}(frame, at)")
    lines.add("raise ValueError")
    return str(lines)


def keyword_only(message: ir.Message) -> bool:
    """Return whether a field with a default precedes one without, which requires keyword-only arguments."""
    seen_default = False
    for found in message.fields:
        if found.implied:
            continue
        if found.required and seen_default:
            return True
        seen_default = seen_default or not found.required
    return False


def _construction(decoder: Decoder, class_name: str, *, keywords: bool = False) -> str:
    """Return the expression that creates the message or record from its values."""
    fields = [f for f in decoder.fields if not f.implied]
    arguments = [decoder.values[f.attribute] for f in fields]
    if keywords:
        arguments = [f"{f.attribute}={value}" for f, value in zip(fields, arguments, strict=True)]
    return f"{class_name}({', '.join(arguments)})"


def _unpack_frames(decoder: MessageDecoder, parts: Sequence[ir.Frame | ir.Rest]) -> None:
    """Unpack frames that are always present: one assignment unpacks them and checks their number."""
    names: list[str] = []
    for position, part in enumerate(parts):
        if isinstance(part, ir.Rest):
            names.append(f"*{part.field.attribute}")
        elif compared_octets(decoder, position) is None and isinstance(part.fields[0].type, ir.ConstantType):
            names.append("_")
        elif len(part.fields) == 1 and is_whole(part.fields[0].type) and not part.fields[0].optional:
            names.append(part.fields[0].attribute)
        else:
            names.append(decoder.names.fresh("head" if len(parts) > 1 else "frame", "frame"))
    target = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
    decoder.lines.add(f"{target} = frames")
    for position, (part, name) in enumerate(zip(parts, names, strict=True)):
        if isinstance(part, ir.Rest):
            check_elements(decoder, part.field, part.field.attribute)
            decoder.values[part.field.attribute] = elements(part.field.type, part.field.attribute)
        elif name != "_":
            take_frame(decoder, part, name, compared_octets(decoder, position))
    check_flags(decoder)


def _walk_frames(decoder: MessageDecoder) -> None:
    """Decode parts that may be absent: first the frames that determine presence, then the others in turn."""
    parts = list(decoder.message.parts)
    first = next(i for i, part in enumerate(parts) if not is_certain(part))
    tail = len(parts)
    while is_certain(parts[tail - 1]):
        tail -= 1
    for position, part in enumerate(parts[:first]):
        assert isinstance(part, ir.Frame)
        if compared_octets(decoder, position) is not None or not part.fields[0].constant:
            take_frame(decoder, part, f"frames[{position}]", compared_octets(decoder, position))
    for position, part in enumerate(parts[tail:], start=tail):
        assert isinstance(part, ir.Frame)
        take_frame(decoder, part, f"frames[{position - len(parts)}]", compared_octets(decoder, position))
    check_flags(decoder)
    at = decoder.names.local("at")
    if any(isinstance(part, ir.Frame | ir.Stack) and isinstance(part.presence, ir.Counted) for part in parts):
        counted(decoder, parts, first)
        return
    if first < tail:
        decoder.lines.add(f"{at} = {first}")
    for part in parts[first:tail]:
        optional(decoder, part, at)
    decoder.refuse_if(f"{at if first < tail else first} + {len(parts) - tail} != len(frames)")
