"""Optional parts in the fast decoders: announced by flags, or determined by the number of frames."""

from __future__ import annotations

import msgspec

from specwire.generator import ir
from specwire.generator.emit.decoding_frames import assign_whole, check_elements, flags_attribute, take_fields
from specwire.generator.emit.decoding_state import MessageDecoder
from specwire.generator.emit.decoding_wholes import (
    elements,
    is_whole,
    limits,
    may_end_with_nul,
    text_of,
    whole_value,
)
from specwire.generator.emit.python import announcing_bits, element_annotation


def counted(decoder: MessageDecoder, parts: list[ir.Part], first: int) -> None:
    count = decoder.names.local("total")
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
        with decoder.lines.block(f"if {count} > {position}:"), decoder.names.scope():
            if is_whole(found.type):
                for limit in limits(found.type, f"frames[{position}]"):
                    decoder.refuse_if(limit)
                value = whole_value(found.type, f"frames[{position}]")
            else:
                value = _inside(decoder, part, f"frames[{position}]")
            decoder.lines.add(f"{found.attribute} = {value}")
        decoder.values[found.attribute] = found.attribute


def check_flags(decoder: MessageDecoder) -> None:
    """Check for bits of parts that the message lacks, and for bits that must be set together."""
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


def optional(decoder: MessageDecoder, part: ir.Part, at: str) -> None:
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
    test = f"if {flags} & 0x{mask:02x}{'' if single else f' == 0x{value:02x}'}:"
    with lines.block(test), decoder.names.scope():
        _take(decoder, part, found, at)


def _take(decoder: MessageDecoder, part: ir.Frame | ir.Stack, found: ir.Field, at: str) -> None:
    lines = decoder.lines
    if isinstance(part, ir.Stack):
        _take_stack(decoder, found, at)
        return
    if is_whole(found.type):
        for limit in limits(found.type, f"frames[{at}]"):
            decoder.refuse_if(limit)
        assign_whole(decoder, found, f"frames[{at}]")
    else:
        lines.add(f"{found.attribute} = {_inside(decoder, part, f'frames[{at}]')}")
    lines.add(f"{at} += 1")


def _take_stack(decoder: MessageDecoder, found: ir.Field, at: str) -> None:
    lines, name, end = decoder.lines, found.attribute, decoder.names.local("end")
    lines.add(f'{end} = frames.index(b"", {at})')
    frames = f"frames[{at}:{end}]"
    check_elements(decoder, found, frames, least=1)
    if may_end_with_nul(found.type):
        # Most stacks are empty, and a conversion of an empty slice costs time.
        lines.add(f"{name} = tuple([{text_of('frame')} for frame in {frames}]) if {at} < {end} else ()")
        with lines.block(f'if {name} and "\\0" in "".join({name}):'):
            lines.add(f"{name} = tuple(map(without_nul, {name}))")
            # A frame of a single NUL: encoded without it, it would end the stack.
            decoder.refuse_if(f'"" in {name}')
    else:
        lines.add(f"{name} = {elements(found.type, frames)}")
    lines.add(f"{at} = {end} + 1")


def _inside(decoder: MessageDecoder, part: ir.Frame, frame: str) -> str:
    """Decode an optional frame that its value does not simply fill; return the value.

    The value uses separate variable names, as the field's name holds the value or None.
    """
    (found,) = part.fields
    inner = msgspec.structs.replace(
        found, attribute=decoder.names.fresh("value", element_annotation(found.type))
    )
    take_fields(decoder, [inner], frame, 0, decoder.names.fresh("place", "int"))
    return decoder.values.pop(inner.attribute)
