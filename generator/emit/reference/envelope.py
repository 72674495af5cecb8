"""Drawing of a message of several frames: frames from left to right, each with its condition.

A frame with one field shows that field's octets. A frame with several fields shows only its name,
as it has its own drawing.
"""

from __future__ import annotations

from markupsafe import Markup

from specwire.generator import ir
from specwire.generator.emit.reference.boxes import (
    Box,
    Group,
    Item,
    boxes_of,
    constant_of,
    constant_text,
    fixed_octets,
    run_of,
)
from specwire.generator.emit.reference.octets import draw_rows

FRAMES_PER_ROW = 5


def draw_message(message: ir.Message, flags: tuple[ir.FlagBit, ...]) -> Markup:
    """Return the drawing of a message's frames."""
    frames = [_frame(part, flags) for part in message.parts]
    rows = [tuple(frames[start : start + FRAMES_PER_ROW]) for start in range(0, len(frames), FRAMES_PER_ROW)]
    return draw_rows(rows, f"Frames of {message.name}")


def _frame(part: ir.Part, flags: tuple[ir.FlagBit, ...]) -> Item:
    when = _when(part, flags)
    match part:
        case ir.Frame(fields=()):
            return Group(part.name, (Box("empty", 0, "constant", "no octets"),), when)
        case ir.Frame(fields=(field,)) if isinstance(field.type, ir.ConstantType) and not field.type.hex:
            return Group(part.name, (Box("empty", 0, "constant", "no octets"),), when)
        case ir.Frame(fields=(field,)):
            return Group(part.name, boxes_of(field.name, field.type), when)
        case ir.Frame(fields=fields):
            size = fixed_octets(run_of(fields))
            return Group(
                part.name, (Box(f"{len(fields)} fields", size, note="" if size else "see below"),), when
            )
        case ir.Stack(field=field, delimiter=delimiter):
            frames = Group("frames", boxes_of(field.name, field.type), "(none or more)")
            end = Box("empty frame", 0, "constant", "no octets")
            if delimiter:
                end = Box(constant_text(constant_of(delimiter)), len(delimiter) // 2, "constant")
            return Group(part.name, (frames, end), when)
        case ir.Rest(field=field):
            return Group(part.name, boxes_of(field.name, field.type), "(none or more frames)")


def _when(part: ir.Part, flags: tuple[ir.FlagBit, ...]) -> str:
    """Return a short condition for a part; empty if it is always present."""
    presence = ir.Always() if isinstance(part, ir.Rest) else part.presence
    match presence:
        case ir.Always():
            return ""
        case ir.Announced(mask=mask, value=value):
            bits = [f"{'' if value & f.value else 'not '}{f.name}" for f in flags if mask & f.value]
            return f"(if {' and '.join(bits)})"
        case ir.Counted():
            return "(optional)"
