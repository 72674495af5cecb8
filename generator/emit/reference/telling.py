"""Description of what distinguishes a message from others: octets, or the shape of its frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from specwire.generator import ir
from specwire.generator.emit.reference.boxes import hex_text

LONGEST = 16
"""Largest number of consecutive known octets that are shown in full."""


def told_by(message: ir.Message, roles: Mapping[str, str]) -> tuple[str, ...]:
    """Return what distinguishes the message, one text for each spelling; `roles` are names by letter."""
    tags = tuple(pattern_text(tag) for tag in message.tags if tag)
    return tags or tuple(", ".join(_shape(shape, roles)) for shape in message.shapes)


def pattern_text(pattern: str) -> str:
    """Return a pattern of octets in readable form: ``04 ?? 05 52``, ``FF (any 8) 7F``."""
    pairs = [pattern[at : at + 2] for at in range(0, len(pattern), 2)]
    parts: list[str] = []
    for unknown, run in groupby(pairs, lambda pair: pair.count("?")):
        octets = list(run)
        if not unknown:
            parts.append(hex_text(bytes.fromhex("".join(octets)), LONGEST))
        elif unknown == 1:
            parts += (octet.upper() for octet in octets)
        else:
            parts.append("??" if len(octets) == 1 else f"(any {len(octets)})")
    return " ".join(parts)


def _shape(shape: ir.Shape, roles: Mapping[str, str]) -> Iterator[str]:
    if shape.least == shape.most:
        yield f"{shape.least} frame{'' if shape.least == 1 else 's'}"
    elif shape.most is None:
        yield f"{shape.least} or more frames" if shape.least else "any number of frames"
    else:
        yield f"{shape.least} to {shape.most} frames"
    for number, head in enumerate(shape.frames, 1):
        if head.octets:
            yield f"frame {number} {'is' if head.whole else 'begins with'} {pattern_text(head.octets)}"
        elif head.whole:
            yield f"frame {number} is empty"
    if shape.needs_sender:
        yield f"sent by {' or '.join(roles.get(letter, letter) for letter in shape.senders)}"
