"""Numbers whose octets vary: groups of 7 bits, and digits as text.

Readers return a value and the position after it. They raise ValueError or IndexError for octets
that are no such number, and writers OverflowError or TypeError for values that have no octets. All
values fit in 64 bits.
"""

from __future__ import annotations

from operator import index
from typing import Literal, SupportsIndex

Order = Literal["big", "little"]
Sign = Literal["zigzag", "complement"]

_BITS = 64
_DIGITS = {10: frozenset(b"0123456789"), 16: frozenset(b"0123456789abcdefABCDEF")}


def read_varint(
    octets: bytes | memoryview, at: int, maximum: int, order: Order = "little", signed: Sign | None = None
) -> tuple[int, int]:
    """Read groups of 7 bits, at most `maximum` octets; the high bit is set in all but the last."""
    value, shift = 0, 0
    for end in range(at + 1, at + maximum + 1):
        octet = octets[end - 1]
        group = octet & 0x7F
        value = value << 7 | group if order == "big" else value | group << shift
        shift += 7
        if octet < 0x80:
            return _signed_value(value, shift, signed), end
    raise ValueError(f"more than {maximum} octets")


def _signed_value(value: int, bits: int, signed: Sign | None) -> int:
    """Return the value of groups with `bits` bits in total; refuse one that does not fit in 64
    bits."""
    if signed == "complement":
        if value >> bits - 1:
            value -= 1 << bits
        if not -(1 << _BITS - 1) <= value < 1 << _BITS - 1:
            raise ValueError("more than 64 bits")
        return value
    if value >> _BITS:
        raise ValueError("more than 64 bits")
    return value >> 1 ^ -(value & 1) if signed == "zigzag" else value


def write_varint(
    value: SupportsIndex, maximum: int, order: Order = "little", signed: Sign | None = None
) -> bytes:
    """Return a number as the fewest groups of 7 bits."""
    number = index(value)
    low, high = (-(1 << _BITS - 1), 1 << _BITS - 1) if signed else (0, 1 << _BITS)
    if not low <= number < high:
        raise OverflowError("more than 64 bits")
    if signed == "zigzag":
        number = number << 1 if number >= 0 else ~(number << 1)
    groups = [number & 0x7F]
    number >>= 7
    while number if signed != "complement" else number != -(groups[-1] >> 6):
        groups.append(number & 0x7F)
        number >>= 7
    if len(groups) > maximum:
        raise OverflowError(f"more than {maximum} octets")
    if order == "big":
        groups.reverse()
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def read_digits(
    octets: bytes | memoryview,
    at: int,
    base: Literal[10, 16],
    minimum: int,
    maximum: int,
    signed: bool,
    stop: int | None = None,
) -> tuple[int, int]:
    """Read digits up to the first octet that is not a digit, at most `maximum` of them and none
    from `stop` on.

    A signed number may be negative.
    """
    start = at + 1 if signed and octets[at] == 0x2D else at
    digits, end = _DIGITS[base], start
    last = len(octets) if stop is None else stop
    while end < last and end - start < maximum and octets[end] in digits:
        end += 1
    if end - start < minimum:
        raise ValueError(f"fewer than {minimum} digits")
    value = int(bytes(octets[start:end]), base)
    if start > at:
        value = -value
        if not value:
            raise ValueError("-0")
    if not _fits(value, signed):
        raise ValueError("more than 64 bits")
    return value, end


def write_digits(
    value: SupportsIndex, base: Literal[10, 16], minimum: int, maximum: int, signed: bool
) -> bytes:
    """Return a number as text, with leading zeros up to `minimum` digits."""
    number = index(value)
    if not _fits(number, signed):
        raise OverflowError("more than 64 bits, or negative")
    text = f"{abs(number):0{minimum}d}" if base == 10 else f"{abs(number):0{minimum}x}"
    if len(text) > maximum:
        raise OverflowError(f"more than {maximum} digits")
    return ("-" * (number < 0) + text).encode()


def _fits(value: int, signed: bool) -> bool:
    return -(1 << _BITS - 1) <= value < 1 << _BITS - 1 if signed else 0 <= value < 1 << _BITS
