"""The fast decoders: frames to messages in straight code.

Each run of fields of fixed size is one `struct` unpack; constants that the dispatch has already seen are
skipped; every length check that can wait falls together in a last one, because a slice that is too short
moves no further than an unpack or that check. A decoder only finds out that something is wrong (any of
the errors that `decode` catches); what is wrong is for the slow path to say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TypeGuard

import msgspec

from specwire.generator import ir
from specwire.generator.emit.decoding_fields import FieldDecoder
from specwire.generator.emit.decoding_wholes import elements, is_whole, limits, whole_value
from specwire.generator.emit.python import (
    Lines,
    announcing_bits,
    element_annotation,
    fixed_size,
    octets_literal,
)
from specwire.generator.emit.records import function_name
from specwire.generator.names import constant_name


@dataclass
class Decoder:
    """One decoder in the making: its lines, its struct objects, and the value of each field so far."""

    name: str
    """Of the message or record, for the names of struct objects."""
    fields: tuple[ir.Field, ...]
    protocol: ir.Protocol
    lines: Lines = field(default_factory=lambda: Lines(1))
    structs: dict[str, str] = field(default_factory=dict)
    """Name of a struct object -> its format."""
    values: dict[str, str] = field(default_factory=dict)
    """Field attribute -> expression for its value."""
    used: Counter[str] = field(default_factory=Counter)

    def local(self, name: str) -> str:
        """Return a local name that no field has."""
        return f"{name}_" if name in {f.attribute for f in self.fields} else name

    def fresh(self, name: str) -> str:
        """Return a local name that no field has and that nobody was given before."""
        self.used[name] += 1
        number = f"_{self.used[name]}" if self.used[name] > 1 else ""
        return self.local(f"{name}{number}")

    def refuse_if(self, condition: str) -> None:
        """Add a check."""
        with self.lines.block(f"if {condition}:"):
            self.lines.add("raise ValueError")

    def struct(self, suffix: str, codes: str) -> str:
        """Return the name of a struct object of that format."""
        stem = name = f"_READ_{constant_name(self.name)}{suffix}"
        number = 1
        while self.structs.get(name, f">{codes}") != f">{codes}":
            number += 1
            name = f"{stem}_{number}"
        self.structs[name] = f">{codes}"
        return name


@dataclass
class MessageDecoder(Decoder):
    """The decoder of a message, which has frames."""

    message: ir.Message = field(kw_only=True)


def decode_function(message: ir.Message, protocol: ir.Protocol) -> tuple[str, dict[str, str]]:
    """Return the body of ``_decode_<message>`` and the struct objects that it uses."""
    decoder = MessageDecoder(message.name, message.fields, protocol, message=message)
    parts = [part for part in message.parts if isinstance(part, ir.Rest) or _is_certain(part)]
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
    frame, at = decoder.local("frame"), decoder.local("at")
    for name, parameter in ((frame, "frame"), (at, "at")):
        if name != parameter:
            decoder.lines.add(f"{name} = {parameter}")
    end = FieldDecoder(decoder, frame, 0, place=at).record(list(record.fields))
    decoder.lines.add(f"return {_construction(decoder, record.class_name)}, {end}")
    return str(decoder.lines), decoder.structs


def union_function(union: ir.UnionType) -> str:
    """Return the body of ``_read_<union>(frame, at)``: the option that the tag says is read."""
    lines = Lines(1)
    for option, tag in zip(union.options, union.tags, strict=True):
        octets = bytes.fromhex(tag)
        with lines.block(f"if frame[at : at + {len(octets)}] == {octets_literal(octets)}:"):
            lines.add(f"return _read_{function_name(option)}(frame, at)")
    lines.add("raise ValueError")
    return str(lines)


def keyword_only(message: ir.Message) -> bool:
    """Whether a field with a default precedes one without, so that the class takes keywords only."""
    seen_default = False
    for found in message.fields:
        if found.implied:
            continue
        if found.required and seen_default:
            return True
        seen_default = seen_default or not found.required
    return False


def _construction(decoder: Decoder, class_name: str, *, keywords: bool = False) -> str:
    """The expression that makes the message or record of its values."""
    fields = [f for f in decoder.fields if not f.implied]
    arguments = [decoder.values[f.attribute] for f in fields]
    if keywords:
        arguments = [f"{f.attribute}={value}" for f, value in zip(fields, arguments, strict=True)]
    return f"{class_name}({', '.join(arguments)})"


def _covered(decoder: MessageDecoder, position: int) -> int | None:
    """How many octets of the frame at `position` the dispatch has compared; None for all of them."""
    count = len(decoder.message.parts)
    for selector in decoder.protocol.selectors:
        if selector.pattern:
            return _constants_in_front(decoder.message) if position == 0 else 0
        if position == selector.frame % count:
            return selector.octets
    return 0


def _constants_in_front(message: ir.Message) -> int:
    """How many constant octets the first frame begins with: a pattern holds them all."""
    constants = takewhile(lambda field: field.constant, message.fields)
    return sum(fixed_size(field.type) or 0 for field in constants)


def _unpack_frames(decoder: MessageDecoder, parts: Sequence[ir.Frame | ir.Rest]) -> None:
    """Every frame is always there: one assignment takes them apart and checks their number."""
    names: list[str] = []
    for position, part in enumerate(parts):
        if isinstance(part, ir.Rest):
            names.append(f"*{part.field.attribute}")
        elif _covered(decoder, position) is None and isinstance(part.fields[0].type, ir.ConstantType):
            names.append("_")
        elif len(part.fields) == 1 and is_whole(part.fields[0].type) and not part.fields[0].optional:
            names.append(part.fields[0].attribute)
        else:
            names.append(decoder.fresh("head" if len(parts) > 1 else "frame"))
    target = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
    decoder.lines.add(f"{target} = frames")
    for position, (part, name) in enumerate(zip(parts, names, strict=True)):
        if isinstance(part, ir.Rest):
            _check_elements(decoder, part.field, part.field.attribute)
            decoder.values[part.field.attribute] = elements(part.field, part.field.attribute)
        elif name != "_":
            _frame(decoder, part, name, _covered(decoder, position))
    _check_flags(decoder)


def _walk_frames(decoder: MessageDecoder) -> None:
    """Parts that may be absent: first the frames that tell which are there, then the others in turn."""
    parts = list(decoder.message.parts)
    first = next(i for i, part in enumerate(parts) if not _is_certain(part))
    tail = len(parts)
    while _is_certain(parts[tail - 1]):
        tail -= 1
    for position, part in enumerate(parts[:first]):
        assert isinstance(part, ir.Frame)
        if _covered(decoder, position) is not None or not part.fields[0].constant:
            _frame(decoder, part, f"frames[{position}]", _covered(decoder, position))
    for position, part in enumerate(parts[tail:], start=tail):
        assert isinstance(part, ir.Frame)
        _frame(decoder, part, f"frames[{position - len(parts)}]", _covered(decoder, position))
    _check_flags(decoder)
    at = decoder.local("at")
    if any(isinstance(part, ir.Frame | ir.Stack) and isinstance(part.presence, ir.Counted) for part in parts):
        _counted(decoder, parts, first)
        return
    if first < tail:
        decoder.lines.add(f"{at} = {first}")
    for part in parts[first:tail]:
        _optional(decoder, part, at)
    decoder.refuse_if(f"{at if first < tail else first} + {len(parts) - tail} != len(frames)")


def _is_certain(part: ir.Part) -> TypeGuard[ir.Frame]:
    """Whether a part is one frame at a fixed place: it is always there and no flag has a say in it."""
    return isinstance(part, ir.Frame) and isinstance(part.presence, ir.Always) and not part.presence.mask


def _counted(decoder: MessageDecoder, parts: list[ir.Part], first: int) -> None:
    count = decoder.local("total")
    decoder.lines.add(f"{count} = len(frames)")
    decoder.refuse_if(f"not {first} <= {count} <= {len(parts)}")
    for position, part in enumerate(parts[first:], start=first):
        assert isinstance(part, ir.Frame)
        found = part.fields[0]
        if is_whole(found.type) and not limits(found.type, "frame"):
            value = whole_value(found.type, f"frames[{position}]")
            decoder.values[found.attribute] = f"{value} if {count} > {position} else None"
            continue
        decoder.lines.add(f"{found.attribute}: {element_annotation(found.type)} | None = None")
        with decoder.lines.block(f"if {count} > {position}:"):
            if is_whole(found.type):
                for limit in limits(found.type, f"frames[{position}]"):
                    decoder.refuse_if(limit)
                value = whole_value(found.type, f"frames[{position}]")
            else:
                value = _inside(decoder, part, f"frames[{position}]")
            decoder.lines.add(f"{found.attribute} = {value}")
        decoder.values[found.attribute] = found.attribute


def _check_flags(decoder: MessageDecoder) -> None:
    """Bits that announce what the message has not, and two bits that only go together."""
    flags = flags_attribute(decoder.message)
    groups: dict[int, set[int]] = {}
    for part in decoder.message.parts:
        if isinstance(part, ir.Rest) or isinstance(part.presence, ir.Counted) or not part.presence.mask:
            continue
        values = groups.setdefault(part.presence.mask, set())
        values.add(part.presence.value)
        if isinstance(part.presence, ir.Announced):
            values.add(0)
    known = 0
    for mask, values in groups.items():
        known |= mask
        if values == {mask}:
            decoder.refuse_if(
                f"{flags} & 0x{mask:02x} != 0x{mask:02x}"
                if mask & (mask - 1)
                else f"not {flags} & 0x{mask:02x}"
            )
        elif values != {0, mask} or mask & (mask - 1):
            decoder.refuse_if(f"{flags} & 0x{mask:02x} not in {tuple(sorted(values))!r}")
    absent = announcing_bits(decoder.protocol) & ~known
    if absent and flags:
        decoder.refuse_if(f"{flags} & 0x{absent:02x}")


def flags_attribute(message: ir.Message) -> str:
    """Return the attribute whose bits announce parts, an empty text where there is none."""
    return next(
        (f.attribute for f in message.fields if isinstance(f.type, ir.IntegerType) and f.type.bitmask), ""
    )


def _optional(decoder: MessageDecoder, part: ir.Part, at: str) -> None:
    assert not isinstance(part, ir.Rest)
    lines = decoder.lines
    found = part.fields[0] if isinstance(part, ir.Frame) else part.field
    name = found.attribute
    decoder.values[name] = name
    if isinstance(part.presence, ir.Always):
        _take(decoder, part, found, at)
        return
    assert isinstance(part.presence, ir.Announced)
    flags = flags_attribute(decoder.message)
    mask, value = part.presence.mask, part.presence.value
    kind = element_annotation(found.type)
    kind = f"tuple[{kind}, ...]" if isinstance(part, ir.Stack) else kind
    lines.add(f"{name}: {kind} | None = None")
    single = mask == value and not mask & (mask - 1)
    with lines.block(f"if {flags} & 0x{mask:02x}{'' if single else f' == 0x{value:02x}'}:"):
        _take(decoder, part, found, at)


def _take(decoder: MessageDecoder, part: ir.Frame | ir.Stack, found: ir.Field, at: str) -> None:
    lines = decoder.lines
    if isinstance(part, ir.Stack):
        end = decoder.local("end")
        lines.add(f'{end} = frames.index(b"", {at})')
        _check_elements(decoder, found, f"frames[{at}:{end}]")
        lines.add(f"{found.attribute} = {elements(found, f'frames[{at}:{end}]')}")
        if isinstance(found.type, ir.TextType) and found.type.terminated:
            # A frame of no more than a NUL: written without it, it would end the stack.
            decoder.refuse_if(f'"" in {found.attribute}')
        lines.add(f"{at} = {end} + 1")
        return
    if isinstance(found.type, ir.OctetsType) and is_whole(found.type):
        lines.add(f"{found.attribute} = frames[{at}]")
        for limit in limits(found.type, found.attribute):
            decoder.refuse_if(limit)
        with lines.block(f"if type({found.attribute}) is not bytes:"):
            lines.add(f"{found.attribute} = bytes({found.attribute})")
    elif is_whole(found.type):
        for limit in limits(found.type, f"frames[{at}]"):
            decoder.refuse_if(limit)
        lines.add(f"{found.attribute} = {whole_value(found.type, f'frames[{at}]')}")
    else:
        lines.add(f"{found.attribute} = {_inside(decoder, part, f'frames[{at}]')}")
    lines.add(f"{at} += 1")


def _inside(decoder: MessageDecoder, part: ir.Frame, frame: str) -> str:
    """Take apart a frame that may be absent and that its one value does not simply fill; return the value.

    The value has names of its own: those of the message's fields are for what is there or None.
    """
    (found,) = part.fields
    content = decoder.fresh("content")
    decoder.lines.add(f"{content} = {frame}")
    inner = msgspec.structs.replace(found, attribute=decoder.fresh("value"))
    FieldDecoder(decoder, content, 0, at=decoder.fresh("place")).run([inner])
    return decoder.values.pop(inner.attribute)


def _check_elements(decoder: MessageDecoder, found: ir.Field, frames: str) -> None:
    """Refuse frames of a stack or a rest that are shorter or longer than they may be."""
    for limit in limits(found.type, "frame"):
        decoder.refuse_if(f"any({limit} for frame in {frames})")


def _frame(decoder: Decoder, part: ir.Frame, frame: str, covered: int | None) -> None:
    """Take one frame apart."""
    fields = list(part.fields)
    if len(fields) == 1 and is_whole(fields[0].type):
        _whole_frame(decoder, fields[0], frame, covered)
        return
    octets = [_constant_octets(f.type) for f in fields]
    if all(o is not None for o in octets):
        whole = b"".join(o for o in octets if o is not None)
        decoder.refuse_if(f"{frame} != {octets_literal(whole)}")
        return
    FieldDecoder(decoder, frame, covered or 0).run(fields)


def _whole_frame(decoder: Decoder, found: ir.Field, frame: str, covered: int | None) -> None:
    match found.type:
        case ir.ConstantType(hex=""):
            decoder.refuse_if(frame)
        case ir.ConstantType() as constant:
            decoder.refuse_if(f"{frame} != {octets_literal(constant.octets)}")
        case ir.KeywordType(options=options):
            if covered is not None:
                decoder.refuse_if(f"{frame} not in {tuple(o.encode() for o in options)!r}")
            decoder.values[found.attribute] = f'str({frame}, "utf-8")'
        case ir.OctetsType():
            for limit in limits(found.type, frame):
                decoder.refuse_if(limit)
            decoder.values[found.attribute] = whole_value(found.type, frame)
        case _:
            decoder.values[found.attribute] = whole_value(found.type, frame)


def _constant_octets(type: ir.Type) -> bytes | None:
    return type.octets if isinstance(type, ir.ConstantType) else None
