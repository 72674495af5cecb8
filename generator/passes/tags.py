"""Tags: the octets that distinguish the messages of a protocol.

The search has this order:

1. the octets with which the first or last frame of every message begins (FILEMQ's signature and
   number, the first three octets of a Flux header), then whole frames that are constant in every
   message (NORFAB's header and command): the shortest run that no two messages share;
2. patterns of the beginning of the first frame (`specwire.generator.passes.heads`): the longest
   pattern that fits identifies the message, so a message with an open name (ZMTP's ``command``) is
   one that no other pattern fits;
3. the shapes of whole messages (`specwire.generator.passes.shapes`), and their senders.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product, takewhile
from math import prod

import msgspec

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostics, Span
from specwire.generator.passes.heads import Detail, find_heads, fits
from specwire.generator.passes.overlaps import overlapping
from specwire.generator.passes.shapes import Alike, with_shapes

MAX_SPELLINGS = 4096
"""Maximum number of different leading frames of one message."""


Found = tuple[tuple[ir.Selector, ...], tuple[ir.Message, ...]]
"""Selectors, and messages with their tags or shapes."""


def find_tags(
    messages: Sequence[ir.Message], enums: Sequence[ir.Enum], diagnostics: Diagnostics, span: Span
) -> Found:
    """Return the selectors and the messages with their tags; E411 if two messages cannot be distinguished.

    If whole octets do not distinguish all messages, constant bits and the permitted values of
    numbers count, too. If letters of the tags may be of either case, the tags and shapes are in
    lower case, and only whole octets count.
    """
    if not is_folded(messages):
        return _best(messages, enums, diagnostics, span)
    selectors, found = _find(tuple(map(_lowered, messages)), diagnostics, span)
    return selectors, tuple(
        msgspec.structs.replace(message, tags=lower.tags, shapes=lower.shapes, shadowed=lower.shadowed)
        for message, lower in zip(messages, found, strict=True)
    )


def _best(
    messages: Sequence[ir.Message], enums: Sequence[ir.Enum], diagnostics: Diagnostics, span: Span
) -> Found:
    """Return the tags with the least detail that distinguishes the most messages."""
    reported = Diagnostics()
    found = _find(messages, reported, span)
    for detail in (Detail(), Detail({enum.name: tuple(dict(enum.members).values()) for enum in enums})):
        if len(messages) == 1 or _doubts(found, reported)[:2] == (0, 0):
            break
        also = Diagnostics()
        finer = _find(messages, also, span, detail)
        if _doubts(finer, also) < _doubts(found, reported):
            found, reported = finer, also
    diagnostics.extend(reported)
    return found


def _doubts(found: Found, reported: Diagnostics) -> tuple[int, int, int]:
    """Return how doubtful a result is: faults, messages that can look like another, minus octets of shapes."""
    messages = found[1]
    octets = sum(
        len(head.octets) for message in messages for shape in message.shapes[:1] for head in shape.frames
    )
    return sum(1 for _ in reported), sum(message.shadowed for message in messages), -octets


def is_folded(messages: Sequence[ir.Message]) -> bool:
    """Whether messages are distinguished by constants whose letters may be of either case."""
    frames = [part for message in messages for part in message.parts if isinstance(part, ir.Frame)]
    leading = (
        takewhile(lambda field: isinstance(field.type, ir.ConstantType | ir.KeywordType), frame.fields)
        for frame in frames
    )
    return any(
        isinstance(field.type, ir.ConstantType | ir.KeywordType) and field.type.folded
        for fields in leading
        for field in fields
    )


def _lowered(message: ir.Message) -> ir.Message:
    """Return a message with its constants in lower case."""
    return msgspec.structs.replace(
        message,
        parts=tuple(
            msgspec.structs.replace(part, fields=tuple(map(_lower_field, part.fields)))
            if isinstance(part, ir.Frame)
            else part
            for part in message.parts
        ),
    )


def _lower_field(field: ir.Field) -> ir.Field:
    match field.type:
        case ir.ConstantType(octets=octets) as type:
            return msgspec.structs.replace(
                field, type=msgspec.structs.replace(type, hex=octets.lower().hex())
            )
        case ir.KeywordType(options=options) as type:
            lower = tuple(option.lower() for option in options)
            return msgspec.structs.replace(field, type=msgspec.structs.replace(type, options=lower))
    return field


def _find(
    messages: Sequence[ir.Message], diagnostics: Diagnostics, span: Span, detail: Detail | None = None
) -> Found:
    for frame in (0, -1):
        heads = [_head(message, frame) for message in messages]
        shortest = min((len(head) for head in heads), default=0)
        tags = [(head[:shortest],) for head in heads]
        if shortest and _distinct(tags):
            return (ir.Selector(frame, shortest),), _tagged(messages, tags)
    whole = [_whole_frames(message) for message in messages]
    count = min((len(frames) for frames in whole), default=0)
    if max((prod(map(len, frames[:count])) for frames in whole), default=0) > MAX_SPELLINGS:
        _report(messages, "have constants in too many spellings", diagnostics, span)
        return (), tuple(messages)
    spellings = [tuple(b"".join(choice) for choice in product(*frames[:count])) for frames in whole]
    used = [index for index in range(count) if any(len(frames[index][0]) for frames in whole)]
    if used and _distinct(spellings):  # frames that are empty in every message distinguish nothing
        return tuple(ir.Selector(index, None) for index in used), _tagged(messages, spellings)
    patterned = _by_patterns(messages, detail)
    if patterned is not None:
        return (ir.Selector(0, 0, pattern=True),), patterned
    shaped = with_shapes(messages, detail)
    if isinstance(shaped, Alike):
        _report(shaped.messages, "cannot be distinguished", diagnostics, span)
        return (), tuple(messages)
    _report_unmarked(shaped, diagnostics, span)
    return (), shaped


def _by_patterns(messages: Sequence[ir.Message], detail: Detail | None) -> tuple[ir.Message, ...] | None:
    """Return the messages with patterns as their tags; None if two patterns are equal, or all are empty."""
    patterns = [_patterns(message, detail) for message in messages]
    rows = [(number, pattern) for number, found in enumerate(patterns) for pattern in found]
    shadowed: set[int] = set()
    by_length: dict[int, list[tuple[int, str]]] = {}
    for row in rows:
        by_length.setdefault(len(row[1]), []).append(row)
    for alike in by_length.values():
        for at, places in overlapping([(pattern,) for _, pattern in alike]):
            number, pattern = alike[at]
            found = (alike[place] for place in places)
            if any(number != other and fits(pattern, same) for other, same in found):
                return None
    for at, places in overlapping([(pattern,) for _, pattern in rows]):
        for place in places:
            (number, pattern), (other, longer) = sorted((rows[at], rows[place]), key=_length)
            if number not in shadowed and number != other and fits(pattern, longer):
                shadowed.add(number)
    if any("" in found for found in patterns):
        return None
    return tuple(
        msgspec.structs.replace(message, tags=found, shadowed=number in shadowed)
        for number, (message, found) in enumerate(zip(messages, patterns, strict=True))
    )


def _length(row: tuple[int, str]) -> int:
    return len(row[1])


def _report_unmarked(messages: Sequence[ir.Message], diagnostics: Diagnostics, span: Span) -> None:
    """Report a message without constants, which matches everything that is no other message."""
    for message in messages if len(messages) > 1 else ():
        if any(not any(head.octets or head.whole for head in shape.frames) for shape in message.shapes):
            diagnostics.warning(
                "W409",
                span,
                f"message '{message.rule}' has no constant: anything that is no other message is read as "
                "this one",
                "if a part of it is constant, declare it in the profile; otherwise list the right "
                "messages under `messages`",
            )


def _patterns(message: ir.Message, detail: Detail | None) -> tuple[str, ...]:
    """Return the patterns with which the first frame of a message can begin."""
    match message.parts[0]:
        case ir.Frame(fields=fields, presence=ir.Always()):
            return tuple(dict.fromkeys(head.pattern for head in find_heads(fields, detail)))
    return ("",)


def _report(messages: Sequence[ir.Message], what: str, diagnostics: Diagnostics, span: Span) -> None:
    names = ", ".join(f"'{message.rule}'" for message in messages)
    diagnostics.error(
        "E411",
        span,
        f"message{'s' if len(messages) > 1 else ''} {names} {what}",
        "specwire can distinguish messages by constant octets and bits at fixed places, "
        "by their number of frames, and by sender: `senders` under [message.NAME]",
    )


def _head(message: ir.Message, index: int) -> bytes:
    """Return the constant octets with which the first or last frame begins."""
    part = message.parts[index]
    if not isinstance(part, ir.Frame) or not isinstance(part.presence, ir.Always):
        return b""
    head = b""
    for field in part.fields:
        if not isinstance(field.type, ir.ConstantType) or field.option is not None:
            break
        head += field.type.octets
    return head


def _whole_frames(message: ir.Message) -> list[tuple[bytes, ...]]:
    """Return the possible octets of each leading frame that is a constant."""
    found: list[tuple[bytes, ...]] = []
    for part in message.parts:
        match part:
            case ir.Frame(fields=(ir.Field(type=ir.ConstantType() as constant),), presence=ir.Always()):
                found.append((constant.octets,))
            case ir.Frame(fields=(ir.Field(type=ir.KeywordType(options=options)),), presence=ir.Always()):
                found.append(tuple(option.encode() for option in options))
            case _:
                break
    return found


def _distinct(tags: Sequence[Sequence[bytes]]) -> bool:
    flat = [tag for spellings in tags for tag in spellings]
    return len(set(flat)) == len(flat)


def _tagged(messages: Sequence[ir.Message], tags: Sequence[Sequence[bytes]]) -> tuple[ir.Message, ...]:
    return tuple(
        msgspec.structs.replace(message, tags=tuple(tag.hex() for tag in spellings))
        for message, spellings in zip(messages, tags, strict=True)
    )
