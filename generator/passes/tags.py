"""Which octets tell the messages of a protocol apart.

Looked for in this order: the octets that every message's first or last frame begins with (FILEMQ's
signature and number, the first three octets of a Flux header), then whole frames that are constants in
every message (NORFAB's header and command). The shortest run that no two messages share is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import msgspec

from specwire.generator import ir
from specwire.generator.diagnostics import Diagnostics, Span

MAX_SPELLINGS = 4096
"""Different leading frames of one message that are told apart one by one."""


def find_tags(
    messages: Sequence[ir.Message], diagnostics: Diagnostics, span: Span
) -> tuple[tuple[ir.Selector, ...], tuple[ir.Message, ...]]:
    """Return the selectors and the messages with their tags; E411 where nothing tells two apart."""
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
    spellings = [
        tuple(b"".join(choice) for choice in product(*frames[:count])) for frames in whole
    ]  # fmt: skip
    if count and _distinct(spellings):
        used = [index for index in range(count) if any(len(frames[index][0]) for frames in whole)]
        return tuple(ir.Selector(index, None) for index in used), _tagged(messages, spellings)
    if len(messages) == 1:
        _report(messages, "begins with no constant, so nothing tells it from other octets", diagnostics, span)
    else:
        _report(_alike(messages, spellings), "are told apart by no octets", diagnostics, span)
    return (), tuple(messages)


def _report(messages: Sequence[ir.Message], what: str, diagnostics: Diagnostics, span: Span) -> None:
    names = ", ".join(f"'{message.rule}'" for message in messages)
    diagnostics.error(
        "E411", span, f"message{'s' if len(messages) > 1 else ''} {names} {what}",
        "each message needs a constant of its own at the start of its first or last frame, or frames that are constants",
    )  # fmt: skip


def _head(message: ir.Message, index: int) -> bytes:
    """The constant octets that the first or last frame begins with."""
    part = message.parts[index]
    if not isinstance(part, ir.Frame) or not isinstance(part.presence, ir.Always):
        return b""
    head = b""
    for field in part.fields:
        if not isinstance(field.type, ir.ConstantType):
            break
        head += field.type.octets
    return head


def _whole_frames(message: ir.Message) -> list[tuple[bytes, ...]]:
    """For each leading frame that holds nothing but a constant, its spellings."""
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


def _alike(messages: Sequence[ir.Message], tags: Sequence[Sequence[bytes]]) -> Sequence[ir.Message]:
    """The first two messages that share a tag."""
    seen: dict[bytes, ir.Message] = {}
    for message, spellings in zip(messages, tags, strict=True):
        for tag in spellings:
            if tag in seen and seen[tag] is not message:
                return seen[tag], message
            seen[tag] = message
    return messages
