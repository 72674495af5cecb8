"""Shapes of messages: the heads of their first frames, and the number of frames.

Shapes distinguish messages without a constant in a common place: MDP's ``READY`` has three frames,
and ``CLIENT-REQUEST`` has a service name where ``READY`` has its command. If several shapes fit,
the one with the most constant octets is chosen. Two messages with the same shape (MDP's request and
reply), or with shapes that differ only in the sizes of frames, are distinguished by their sender, if
no role sends both.

In a protocol with such messages, `decode` takes the sender, which also excludes messages: a shape
that only other roles send is skipped, and the next one that fits is chosen. A letter that is no
role excludes nothing, because a capture can hold any text there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import msgspec

from specwire.generator import ir
from specwire.generator.passes.heads import Detail, find_heads, fits
from specwire.generator.passes.overlaps import overlapping

MAX_SHAPES = 64
"""Maximum number of shapes of one message."""


@dataclass(frozen=True, slots=True)
class Alike:
    """Two messages that can be distinguished neither by their shapes nor by their senders."""

    messages: tuple[ir.Message, ir.Message]


@dataclass(frozen=True, slots=True)
class _Overlaps:
    """Messages, by number, that can have the same frames as others."""

    needs_sender: set[int]
    """Messages that only their sender distinguishes from another message."""
    shadowed: set[int]
    """Those whose frames can have a shape of another that is chosen first."""


def with_shapes(
    messages: Sequence[ir.Message], detail: Detail | None = None
) -> tuple[ir.Message, ...] | Alike:
    """Return the messages with their shapes, or two that cannot be distinguished."""
    shapes = [_shapes(message, detail) for message in messages]
    overlaps = _find_overlaps(messages, shapes)
    if isinstance(overlaps, Alike):
        return overlaps
    return tuple(
        msgspec.structs.replace(
            message,
            shapes=tuple(
                msgspec.structs.replace(
                    shape, senders=message.senders, needs_sender=number in overlaps.needs_sender
                )
                for shape in shapes[number]
            ),
            shadowed=number in overlaps.shadowed,
        )
        for number, message in enumerate(messages)
    )


def _find_overlaps(messages: Sequence[ir.Message], shapes: Sequence[Sequence[ir.Shape]]) -> _Overlaps | Alike:
    """Return the overlaps of all shapes, or the first two messages that cannot be distinguished."""
    needs_sender: set[int] = set()
    shadowed: set[int] = set()
    rows = [(number, shape) for number, found in enumerate(shapes) for shape in found]
    weights = [weight(shape) for _, shape in rows]
    alike: tuple[int, int] | None = None
    for at, places in overlapping([[head.octets for head in shape.frames] for _, shape in rows]):
        for place in places:
            first, second = min(at, place), max(at, place)
            if alike and first > alike[0]:
                break  # places ascend, and only the first pair is reported
            (n, one), (m, other) = rows[first], rows[second]
            if n == m or (alike and alike <= (first, second)) or not _overlap(one, other):
                continue
            apart = _sent_apart(messages[n], messages[m])
            if apart and _constants(one) == _constants(other):
                needs_sender |= {n, m}
            elif weights[first] != weights[second]:
                shadowed.add(n if weights[first] < weights[second] else m)
            else:
                alike = first, second
                break
    if alike is not None:
        return Alike((messages[rows[alike[0]][0]], messages[rows[alike[1]][0]]))
    return _Overlaps(needs_sender, shadowed)


def takes_sender(protocol: ir.Protocol) -> bool:
    """Whether `decode` needs the sender, because only the sender distinguishes some messages."""
    return any(shape.needs_sender for message in protocol.messages for shape in message.shapes)


def role_letters(protocol: ir.Protocol) -> tuple[str, ...]:
    """Return the letters of all roles: those of the profile, then others in dialogs or messages."""
    letters = [role.letter for role in protocol.roles]
    letters += [letter for dialog in protocol.dialogs for letter in dialog.roles]
    letters += [letter for message in protocol.messages for letter in message.senders]
    return tuple(dict.fromkeys(letters))


def readers(message: ir.Message, protocol: ir.Protocol) -> tuple[str | None, ...]:
    """Return the values of `sender` with which `decode` must return a message: its senders, or only None."""
    return message.senders if takes_sender(protocol) and message.senders else (None,)


def weight(shape: ir.Shape) -> int:
    """Return the number of constant half octets of a shape, plus two for each frame with a known end."""
    return _constants(shape) + 2 * sum(head.whole for head in shape.frames)


def _constants(shape: ir.Shape) -> int:
    """Return the number of constant half octets of a shape."""
    return sum(digit != "?" for head in shape.frames for digit in head.octets)


def _shapes(message: ir.Message, detail: Detail | None) -> tuple[ir.Shape, ...]:
    certain: list[tuple[ir.FrameHead, ...]] = []
    for part in message.parts:
        if not isinstance(part, ir.Frame) or part.presence != ir.Always():
            break
        certain.append(tuple(dict.fromkeys(_heads(part, detail))))
    least, most = 0, 0
    endless = False
    for part in message.parts:
        endless = endless or not isinstance(part, ir.Frame)
        most += 1
        if isinstance(part, ir.Stack) or (isinstance(part, ir.Frame) and part.presence == ir.Always()):
            least += 1
    while prod(map(len, certain)) > MAX_SHAPES:
        certain.pop()
    spellings = product(*certain)
    return tuple(ir.Shape(tuple(frames), least, None if endless else most) for frames in spellings)


def _heads(part: ir.Frame, detail: Detail | None) -> Iterator[ir.FrameHead]:
    """Yield the ways in which a frame can begin."""
    match part.fields:
        case (ir.Field(type=ir.KeywordType(options=options)),):
            yield from (ir.FrameHead(option.encode().hex(), True) for option in options)
            return
    for head in find_heads(part.fields, detail):
        all_octets = head.whole or detail is not None
        yield ir.FrameHead("".join(head.octets) if all_octets else head.pattern, head.whole)


def _overlap(one: ir.Shape, other: ir.Shape) -> bool:
    """Whether the same frames can have both shapes."""
    most = (
        min(shape.most for shape in (one, other) if shape.most is not None)
        if one.most or other.most
        else None
    )
    if most is not None and most < max(one.least, other.least):
        return False
    return all(_alike(a, b) for a, b in zip(one.frames, other.frames, strict=False))


def _alike(one: ir.FrameHead, other: ir.FrameHead) -> bool:
    """Whether a frame can begin and end as both heads require."""
    if one.whole and len(one.octets) < len(other.octets):
        return False
    if other.whole and len(other.octets) < len(one.octets):
        return False
    return fits(one.octets, other.octets)


def _sent_apart(one: ir.Message, other: ir.Message) -> bool:
    return bool(one.senders and other.senders) and not set(one.senders) & set(other.senders)
