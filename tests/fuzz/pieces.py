"""Several byte strings in one, for fuzzing: the frames of a message, the messages of an array.

Each piece has its length in front: one octet, or 255 and two octets, big-endian. What is left behind the last
whole piece is the last one, shorter than it says. So every octet string is some list of pieces, nothing is wasted
on inputs that are none, and cutting an input cuts its last frame.
"""

from __future__ import annotations

from collections.abc import Iterable

ESCAPE = 255
LONGEST = 0xFFFF


def join(pieces: Iterable[bytes]) -> bytes:
    """Return the octets that `split` divides into `pieces`.

    Raises:
        OverflowError: a piece is longer than `LONGEST`.
    """
    return b"".join(_head(len(piece)) + piece for piece in pieces)


def _head(length: int) -> bytes:
    if length < ESCAPE:
        return bytes((length,))
    return bytes((ESCAPE,)) + length.to_bytes(2, "big")


def split(octets: bytes) -> list[bytes]:
    """Return the pieces in any octets at all."""
    pieces: list[bytes] = []
    at = 0
    while at < len(octets):
        length, start = octets[at], at + 1
        if length == ESCAPE:
            start = at + 3
            length = int.from_bytes(octets[at + 1 : start], "big")
        pieces.append(octets[start : start + length])
        at = start + length
    return pieces
