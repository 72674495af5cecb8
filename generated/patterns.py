# Written by specwire from generator/support/patterns.py. Do not edit; change that file and run `make generate`.
"""Message selection by patterns of how the first frame begins.

A pattern is hexadecimal, with ``??`` for any octet. The longest matching pattern decides. So a
message whose name is open matches only if no message with a fixed name does.
"""

from __future__ import annotations

from specwire.generated.errors import DecodeError
from specwire.generated.layout import (
    Constant,
    Field,
    Frame,
    Integer,
    MessageLayout,
    Octets,
    Padding,
    ProtocolLayout,
    Size,
    Span,
    Text,
    Type,
)
from specwire.generated.words import octets_word, one_of, show

ANY = "??"


def match_pattern(layout: ProtocolLayout, octets: bytes) -> tuple[MessageLayout, str] | None:
    """Return the message with the longest pattern that matches `octets`, and the pattern, or None."""
    fitting = [
        (message, pattern)
        for message in layout.messages
        for pattern in message.patterns
        if _fitting(pattern, octets) == len(pattern) // 2
    ]
    return max(fitting, key=lambda row: len(row[1]), default=None)


def fixed_octets(pattern: str) -> list[bytes | None]:
    """Return the octets of a pattern, None for any octet."""
    pieces = [pattern[at : at + 2] for at in range(0, len(pattern), 2)]
    return [None if piece == ANY else bytes.fromhex(piece) for piece in pieces]


def explain_pattern(layout: ProtocolLayout, frame: bytes) -> DecodeError:
    """Return the error for a first frame that matches no pattern: where the nearest patterns fail."""
    rows = [(message, pattern) for message in layout.messages for pattern in message.patterns]
    at = max(_fitting(pattern, frame) for _, pattern in rows)
    nearest = [(message, pattern) for message, pattern in rows if _fitting(pattern, frame) == at]
    field, start = _field_at(*nearest[0], at)
    options = tuple(dict.fromkeys(_word(pattern, start) for _, pattern in nearest))
    expected, found = one_of(options), show(frame[start : start + max(map(len, options))])
    size = _octets_of(field.type, nearest[0][1][2 * start :])
    if at == len(frame) and size and not all(options):
        # The pattern allows any octet here; the frame is too short.
        expected, found = octets_word(size), str(len(frame) - start)
    return DecodeError(
        protocol=layout.protocol, message_name=None, field=field.name, frame=0, offset=start,
        kind="length" if at == len(frame) else "tag", expected=expected, found=found,
        rule=f"{layout.edition} {field.rule}",
    )  # fmt: skip


def _fitting(pattern: str, octets: bytes) -> int:
    """Return how many octets of a pattern match, from the first on."""
    for at, fixed in enumerate(fixed_octets(pattern)):
        if at == len(octets) or fixed not in (None, octets[at : at + 1]):
            return at
    return len(pattern) // 2


def _word(pattern: str, start: int) -> bytes:
    """Return the contiguous octets that a pattern fixes from octet `start` on."""
    word = b""
    for fixed in fixed_octets(pattern)[start:]:
        if fixed is None:
            break
        word += fixed
    return word


def _field_at(message: MessageLayout, pattern: str, at: int) -> tuple[Field, int]:
    """Return the field of octet `at` of the first frame, and where the field begins in the pattern."""
    head = message.parts[0]
    assert isinstance(head, Frame)
    start, field = 0, head.fields[0]
    for field in head.fields:
        size = _octets_of(field.type, pattern[2 * start :])
        if size is None or at < start + size:
            break
        start += size
    return field, start


def _octets_of(type: Type, pattern: str) -> int | None:
    """Return how many octets of a pattern a value covers, None if its size varies."""
    match type:
        case Constant(octets=octets):
            return len(octets)
        case Integer(octets=number) | Padding(octets=number):
            return number
        case Octets(span=Span(kind="fixed", octets=number)) | Text(span=Span(kind="fixed", octets=number)):
            return number
        case Size(forms=forms):
            return next((len(tag) + n for tag, n in forms if pattern.startswith(tag.hex())), None)
    return None
