"""Frames that every message has, in the fast decoders; `decoding_parts` handles optional parts.

Octets that the dispatch has compared are not compared again. A frame that contains octets is a view
if they are not copied. All other frames with several fields are bytes.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TypeGuard

import msgspec

from specwire.generator import ir
from specwire.generator.emit.decoding_fields import FieldDecoder, drop_nul, is_fixed
from specwire.generator.emit.decoding_state import Decoder, MessageDecoder
from specwire.generator.emit.decoding_wholes import is_whole, limits, may_end_with_nul, text_of, whole_value
from specwire.generator.emit.local_names import LocalNames
from specwire.generator.emit.python import fixed_size, octets_literal
from specwire.generator.emit.records import holds_octets, lends_slices


def compared_octets(decoder: MessageDecoder, position: int) -> int | None:
    """Return how many octets of the frame at `position` the dispatch has compared; None for all."""
    count = len(decoder.message.parts)
    for selector in decoder.protocol.selectors:
        if selector.pattern:
            return _constants_in_front(decoder.message) if position == 0 else 0
        if position == selector.frame % count:
            return selector.octets
    return 0


def _constants_in_front(message: ir.Message) -> int:
    """Return the number of constant octets at the start of the first frame; patterns contain them all."""
    constants = takewhile(lambda field: field.constant, message.fields)
    return sum(fixed_size(field.type) or 0 for field in constants)


def is_certain(part: ir.Part) -> TypeGuard[ir.Frame]:
    """Return whether a part is always one frame at a fixed index, independent of flags."""
    return isinstance(part, ir.Frame) and isinstance(part.presence, ir.Always) and not part.presence.mask


def flags_attribute(message: ir.Message) -> str:
    """Return the attribute whose bits announce parts; empty if there is none."""
    return next(
        (f.attribute for f in message.fields if isinstance(f.type, ir.IntegerType) and f.type.bitmask), ""
    )


def take_frame(decoder: Decoder, part: ir.Frame, frame: str, covered: int | None) -> None:
    """Decode one frame."""
    fields = list(part.fields)
    if len(fields) == 1 and is_whole(fields[0].type) and not fields[0].optional:
        _whole_frame(decoder, fields[0], frame, covered)
        return
    octets = [_constant_octets(f.type) for f in fields]
    if all(o is not None for o in octets):
        whole = b"".join(o for o in octets if o is not None)
        decoder.refuse_if(f"{frame} != {octets_literal(whole)}")
        return
    known = covered != 0 and bool(heads(decoder.protocol))
    take_fields(decoder, fields, frame, covered or 0, copied=known)


def take_fields(
    decoder: Decoder, fields: list[ir.Field], frame: str, skip: int, at: str = "", *, copied: bool = False
) -> None:
    """Decode the fields of a frame: as a view if it contains octets that are not copied, else as bytes.

    A frame that is `copied` is already bytes.
    """
    lines = decoder.lines
    view = any(holds_octets(found.type) for found in fields)
    if view or (not copied and not all(map(is_fixed, fields))):
        if not frame.isidentifier():
            whole, frame = frame, decoder.names.fresh("head", "frame")
            lines.add(f"{frame} = {whole}")
        with lines.block(f"if not {_copy(decoder.names)}:" if view else f"if type({frame}) is not bytes:"):
            lines.add(f"{frame} = {'view_of' if view else 'bytes'}({frame})")
    FieldDecoder(decoder, frame, skip, view=view, at=at).run(fields)


def _whole_frame(decoder: Decoder, found: ir.Field, frame: str, covered: int | None) -> None:
    match found.type:
        case ir.ConstantType(hex=""):
            decoder.refuse_if(frame)
        case ir.ConstantType() as constant:
            decoder.refuse_if(f"{frame} != {octets_literal(constant.octets)}")
        case ir.KeywordType(options=options):
            if covered is not None:
                decoder.refuse_if(f"{frame} not in {tuple(o.encode() for o in options)!r}")
            decoder.values[found.attribute] = whole_value(found.type, frame)
        case _:
            for limit in limits(found.type, frame):
                decoder.refuse_if(limit)
            if may_end_with_nul(found.type):
                assign_whole(decoder, found, frame)
            decoder.values[found.attribute] = (
                found.attribute if may_end_with_nul(found.type) else whole_value(found.type, frame)
            )


def assign_whole(decoder: Decoder, found: ir.Field, frame: str) -> None:
    """Assign a value that fills its frame to the variable of its name."""
    if may_end_with_nul(found.type):
        decoder.lines.add(f"{found.attribute} = {text_of(frame)}")
        drop_nul(decoder.lines, found.attribute)
    else:
        decoder.lines.add(f"{found.attribute} = {whole_value(found.type, frame)}")


def check_elements(decoder: MessageDecoder, found: ir.Field, frames: str, least: int = 0) -> None:
    """Refuse frames of a stack or rest that are too short or too long; all have at least `least` octets."""
    type = found.type
    if isinstance(type, ir.OctetsType) and type.minimum <= least:
        type = msgspec.structs.replace(type, minimum=0)
    for limit in limits(type, "frame"):
        decoder.refuse_if(f"any({limit} for frame in {frames})")


def _constant_octets(type: ir.Type) -> bytes | None:
    return type.octets if isinstance(type, ir.ConstantType) else None


def heads(protocol: ir.Protocol) -> tuple[int, ...]:
    """Return the indices of frames that identify the message and are therefore always bytes.

    Empty if one of them could contain octets.
    """
    if lends_slices(protocol):
        return ()
    return tuple(selector.frame for selector in protocol.selectors if not selector.pattern)


def copy_parameter(message: ir.Message) -> str:
    """Return the name of the decoder's parameter that says whether to copy octets; empty if it has none."""
    return _copy(LocalNames(field.attribute for field in message.fields))


def _copy(names: LocalNames) -> str:
    return names.local("copy")
