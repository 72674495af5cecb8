"""Conversions between values and octets that `str` and `bytes` alone do not provide."""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import index
from typing import Any, Literal, SupportsIndex

OCTETS = tuple(bytes((octet,)) for octet in range(256))
"""Every single octet, indexed by its value."""


def as_octets(value: object) -> bytes:
    """Return octets as `bytes` for the wire.

    Raises:
        TypeError: `value` is not bytes, bytearray or memoryview.
    """
    if type(value) is bytes:
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"octets wanted, not {type(value).__name__}")


def as_frames(frames: Sequence[bytes]) -> list[bytes]:
    """Return `frames` as immutable octets; views and byte arrays are copied.

    Raises:
        TypeError: `frames` is no sequence (an iterator can be read only once), or an item is not
            octets.
    """
    if not isinstance(frames, Sequence):
        raise TypeError(f"a sequence of frames wanted, not {type(frames).__name__}")
    return [as_octets(frame) for frame in frames]


def unsigned(value: SupportsIndex, octets: int, order: Literal["big", "little"] = "big") -> bytes:
    """Return an unsigned integer as `octets` octets. For widths that `struct` lacks.

    Raises:
        OverflowError: the integer is negative or too large.
        TypeError: the value is no integer.
    """
    return index(value).to_bytes(octets, order)


def twos_complement(value: SupportsIndex, octets: int, order: Literal["big", "little"] = "big") -> bytes:
    """Return an integer in two's complement as `octets` octets. For widths that `struct` lacks.

    Raises:
        OverflowError: the integer is too large or too small.
        TypeError: the value is no integer.
    """
    return index(value).to_bytes(octets, order, signed=True)


def bits_of(value: SupportsIndex, width: int) -> int:
    """Return an unsigned integer that fits in `width` bits.

    Raises:
        OverflowError: the integer is negative or too large.
        TypeError: the value is no integer.
    """
    number = index(value)
    if number >> width:
        raise OverflowError(f"more than {width} bits, or negative")
    return number


def view_of(octets: Any) -> Any:
    """Return a read-only view of octets, whose slices need no copy.

    The return type is Any because the fields that hold the view are declared as `bytes`.
    """
    return memoryview(octets).toreadonly()


def terminated(text: str, strict: bool) -> bytes:
    """Return the octets of a NUL-terminated text; the NUL is written under `strict` only.

    Raises:
        ValueError: the text contains NUL.
    """
    if "\0" in text:
        raise ValueError("NUL inside a text")
    return text.encode() + b"\0" if strict else text.encode()


def without_nul(text: str) -> str:
    """Return `text` without one NUL at its end.

    Raises:
        ValueError: there is another NUL in the text.
    """
    text = text.removesuffix("\0")
    if "\0" in text:
        raise ValueError("NUL inside a text")
    return text


def index_of(frame: bytes | memoryview, end: bytes, at: int) -> int:
    """Return the position of the first `end` from octet `at` on; copies at most twice as much as it
    skips.

    Raises:
        ValueError: `end` does not occur.
    """
    width = 64
    while (found := bytes(frame[at : at + width]).find(end)) < 0:
        if at + width >= len(frame):
            raise ValueError("the octets that end a text are missing")
        width *= 2
    return at + found


def run_end(
    run: re.Pattern[bytes], frame: bytes | memoryview, at: int, least: int, stop: int | None = None
) -> int:
    """Return the end of the octets from octet `at` on that `run` matches, none of them from `stop` on.

    Raises:
        ValueError: there are fewer than `least`, or the frame ends before octet `at`.
    """
    found = run.match(frame, at, len(frame) if stop is None else stop)
    if found is None or found.end() - at < least:
        raise ValueError(f"fewer than {least} octets")
    return found.end()


def padded(text: str, octets: int, fill: bytes) -> bytes:
    """Return a text padded with `fill` to `octets` octets.

    Raises:
        ValueError: the text is longer, or ends like the padding.
    """
    raw = text.encode()
    if len(raw) > octets or raw.endswith(fill):
        raise ValueError("a text that its place cannot hold")
    return raw.ljust(octets, fill)


def sized(octets: bytes, forms: tuple[tuple[bytes, int], ...]) -> bytes:
    """Return octets preceded by their number, in the first form (tag, width of the number) that can
    hold it.

    A form without a tag is skipped if its number would begin like another form's tag.

    Raises:
        OverflowError: no form can hold the number.
    """
    for tag, width in forms:
        if len(octets) < 256**width:
            number = len(octets).to_bytes(width, "big")
            if tag or not any(other and number.startswith(other) for other, _ in forms):
                return tag + number + octets
    raise OverflowError("more octets than their size can say")


def pattern_octets(pattern: str) -> list[tuple[int, int]]:
    """Return each octet of a pattern with the mask of its known half octets, 0 for any octet.

    A pattern is octets in hexadecimal, with ``?`` for any half octet.
    """
    digits = [(int(digit.replace("?", "0"), 16), 0 if digit == "?" else 15) for digit in pattern]
    pairs = zip(digits[::2], digits[1::2], strict=True)
    return [(16 * high + low, 16 * mask + other) for (high, mask), (low, other) in pairs]


def count_fitting(pattern: str, octets: bytes) -> int:
    """Return how many octets of a pattern match, from the first on."""
    for at, (fixed, mask) in enumerate(pattern_octets(pattern)):
        if at == len(octets) or octets[at] & mask != fixed:
            return at
    return len(pattern) // 2


def count_open(pattern: str) -> int:
    """Return how many octets at the start of a pattern can be any octets."""
    return next(
        (at for at in range(len(pattern) // 2) if pattern[2 * at : 2 * at + 2] != "??"), len(pattern) // 2
    )


def pattern_atom(octet: str) -> str:
    """Return one octet of a pattern as a regular expression for octets."""
    if octet == "??":
        return "."
    if "?" not in octet:
        return f"\\x{octet}"
    if octet[1] == "?":
        return f"[\\x{octet[0]}0-\\x{octet[0]}f]"
    return f"[{''.join(f'{chr(92)}x{digit}{octet[1]}' for digit in '0123456789abcdef')}]"


def pattern_start(pattern: str) -> str:
    """Return the octets that a pattern fixes from its first octet on; a half octet if that is all."""
    size = next((at for at in range(0, len(pattern), 2) if "?" in pattern[at : at + 2]), len(pattern))
    half = pattern[:2]
    return half if not size and half != "??" else pattern[:size]
