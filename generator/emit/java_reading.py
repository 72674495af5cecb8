"""Straight-line Java for valid messages: the statements of a method that reads a message frame by frame.

A frame of constants and plain integers, with a text or octets at its end, has one call for each value, at a known
offset. Frames with other operations are read by these. The method only detects that a message is faulty; its
operations, one after the other, then find the fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from specwire.generator.emit.java_operations import Place, message_kept
from specwire.generator.support import layout
from specwire.generator.support.plan import (
    Body,
    Expect,
    ManyFrames,
    MessagePlan,
    Number,
    Op,
    TakeOctets,
    TakeText,
    fixed_octets,
    operations,
)

WORD = 8
"""Number of octets of a constant that are compared at once."""


def statements(plan: MessagePlan, places: Mapping[str, Place]) -> list[str]:
    """Return the statements that read the parts of a message; none if operations do."""
    if message_kept(plan):
        return []
    found: list[str] = []
    spelled = False
    for number, part in enumerate(plan.parts):
        lines = _items(part, places) if isinstance(part, ManyFrames) else _frame(part.body, places)
        spelled = spelled or bool(lines)
        lines = lines or [f"in.part({number});"]
        if part.presence.kind == "always":
            found += lines
        else:
            found += [f"if (in.has({number}, flags)) {{", *(f"    {line}" for line in lines), "}"]
    return found if spelled else []


def _items(part: ManyFrames, places: Mapping[str, Place]) -> list[str]:
    """Return the statement for texts up to an empty frame; none for other frames."""
    match tuple(operations(part.body)):
        case [TakeText(terminated=terminated) as text] if part.delimiter == b"" and _is_rest(text):
            return [f"in.texts({places[part.slot].column}, {str(terminated).lower()});"]
    return []


def _frame(body: Body, places: Mapping[str, Place]) -> list[str]:
    """Return the statements for a frame; none if one of its operations has no such statement."""
    head = list(operations(body))
    end = head[-1] if head else None
    last = end if isinstance(end, TakeText | TakeOctets) else None
    if last:
        head.pop()
    if not all(map(_is_plain, head)) or (last and not _is_rest(last)):
        return []
    size = sum(fixed_octets(op) or 0 for op in head)
    opened = f"in.openFrame({size});" if last else f"in.openFixed({size});"
    return [opened, *_fixed(head, places), *([_rest(last, size, places)] if last else [])]


def _is_plain(op: Op) -> bool:
    """Whether an operation is a constant, or an unsigned big-endian integer that no other operation needs."""
    match op:
        case Expect(folded=folded):
            return not folded
        case Number(coding=layout.Integer(members=(), order="big", signed=False)):
            return not (op.counts or op.checks or op.bits or op.slot.endswith("#"))
    return False


def _is_rest(op: TakeText | TakeOctets) -> bool:
    """Whether a text without padding or octets extend to the end of the frame."""
    unusual = op.padding if isinstance(op, TakeText) else op.uuid
    return unusual is None and op.extent.kind == "rest" and not op.extent.octets


def _fixed(ops: Sequence[Op], places: Mapping[str, Place]) -> Iterator[str]:
    """Yield the statements for constants, adjacent ones joined, and integers."""
    offset, constant = 0, b""
    for op in ops:
        if isinstance(op, Expect):
            constant += op.octets
        elif isinstance(op, Number):
            yield from _constants(constant, offset)
            offset, constant = offset + len(constant), b""
            place, octets = places[op.slot], fixed_octets(op) or 0
            yield f"in.number({place.column}, {place.store}, {offset}, {octets});"
            offset += octets
    yield from _constants(constant, offset)


def _constants(octets: bytes, offset: int) -> Iterator[str]:
    for at in range(0, len(octets), WORD):
        piece = octets[at : at + WORD]
        yield f"in.constant({offset + at}, {len(piece)}, 0x{piece.hex()}L);"


def _rest(op: TakeText | TakeOctets, offset: int, places: Mapping[str, Place]) -> str:
    column = places[op.slot].column
    if isinstance(op, TakeText):
        return f"in.text({column}, {offset}, {str(op.terminated).lower()});"
    maximum = "Long.MAX_VALUE" if op.maximum is None else f"{min(op.maximum, 2**63 - 1)}L"
    return f"in.octets({column}, {offset}, {op.minimum}, {maximum});"
