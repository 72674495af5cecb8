"""Numbers in every coding, for the slow paths: what is wrong with their octets or values, in words."""

from __future__ import annotations

import re
import struct
from operator import index
from reprlib import repr as shorten
from typing import Any, SupportsIndex

from specwire.generated.errors import Kind
from specwire.generated.layout import Boolean, Coding, Digits, Float, Integer, Varint
from specwire.generated.numbers import read_digits, read_varint, write_digits, write_varint
from specwire.generated.words import either, number_of, octets_word, show

Countable = Integer | Varint | Digits
"""Coding of a number that can count octets or items."""


class NumberError(ValueError):
    """Octets that are no number of the coding, or a value that it cannot write."""

    def __init__(self, kind: Kind, expected: str, found: str) -> None:
        super().__init__(kind, expected, found)
        self.kind: Kind = kind
        self.expected = expected
        self.found = found


def most_octets(coding: Coding) -> int:
    """Return the largest number of octets of a number."""
    match coding:
        case Varint(maximum=maximum):
            return maximum
        case Digits(maximum=maximum, signed=signed):
            return maximum + signed
    return coding.octets


def limits(coding: Countable) -> tuple[int, int]:
    """Return the least and the largest value."""
    match coding:
        case Digits(base=base, maximum=maximum, signed=signed):
            most = base**maximum - 1
            return (max(-most, -(2**63)), min(most, 2**63 - 1)) if signed else (0, min(most, 2**64 - 1))
        case Varint(maximum=maximum):
            bits = min(7 * maximum, 64)
        case Integer(octets=octets):
            bits = 8 * octets
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if coding.signed else (0, 2**bits - 1)


def read_number(coding: Coding, octets: bytes) -> tuple[int, int]:
    """Return the number at the start of `octets` (0 for a float), and its number of octets.

    Raises:
        NumberError: the octets begin with no number of this coding.
    """
    allowed: tuple[int, ...] = ()
    match coding:
        case Integer(members=allowed):
            value = int.from_bytes(octets[: coding.octets], coding.order, signed=coding.signed)
        case Varint():
            return _read_varint(coding, octets)
        case Digits():
            return _read_digits(coding, octets)
        case Boolean():
            value, allowed = int.from_bytes(octets[: coding.octets], coding.order), (0, 1)
        case Float():
            value = 0
    if len(octets) < coding.octets:
        raise NumberError("length", octets_word(coding.octets), str(len(octets)))
    if allowed and value not in allowed:
        raise NumberError("range", either(map(str, allowed)), str(value))
    return value, coding.octets


def _read_varint(coding: Varint, octets: bytes) -> tuple[int, int]:
    octets = octets[: coding.maximum]
    size = next((number for number, octet in enumerate(octets, 1) if octet < 0x80), 0)
    if not size and len(octets) < coding.maximum:
        raise NumberError("length", octets_word(len(octets) + 1), str(len(octets)))
    if not size:
        raise NumberError("range", f"a number of at most {octets_word(coding.maximum)}", show(octets))
    try:
        return read_varint(octets, 0, coding.maximum, coding.order, coding.signed)
    except ValueError:
        raise NumberError("range", "a number of at most 64 bits", show(octets[:size])) from None


def _read_digits(coding: Digits, octets: bytes) -> tuple[int, int]:
    base, least, most = coding.base, coding.minimum, coding.maximum
    spelling = b"-?" * coding.signed + (b"[0-9]" if base == 10 else b"[0-9a-fA-F]") + b"{,%d}" % most
    digits = re.match(spelling, octets)
    text = digits[0] if digits else b""
    if len(text.removeprefix(b"-")) < least:
        kind: Kind = "length" if text == octets else "text"
        raise NumberError(kind, f"at least {number_of(least, 'digit')}", show(octets))
    try:
        return read_digits(octets, 0, base, least, most, coding.signed)
    except ValueError:
        expected = "a number of at most 64 bits" if int(text, base) else "0 without a sign"
        raise NumberError("range", expected, show(text)) from None


def write_number(coding: Coding, value: Any) -> bytes:
    """Return the octets of a number.

    Raises:
        NumberError: the coding cannot write the value.
    """
    match coding:
        case Float(octets=octets, order=order):
            try:
                return struct.pack(("<" if order == "little" else ">") + "fd"[octets // 8], value)
            except (OverflowError, struct.error):
                expected = f"a floating-point number of {octets_word(octets)}"
                raise NumberError("range", expected, describe(value)) from None
        case Boolean(octets=octets, order=order):
            if not isinstance(value, bool):
                raise NumberError("range", "False or True", describe(value))
            return int(value).to_bytes(octets, order)
    check_integer(value, limits(coding), coding.members if isinstance(coding, Integer) else ())
    match coding:
        case Integer(octets=octets, order=order, signed=signed):
            return index(value).to_bytes(octets, order, signed=signed)
        case Varint(order=order, maximum=maximum, signed=groups):
            return write_varint(value, maximum, order, groups)
        case Digits(base=base, minimum=minimum, maximum=maximum, signed=signed):
            return write_digits(value, base, minimum, maximum, signed)


def check_integer(value: object, within: tuple[int, int], members: tuple[int, ...] = ()) -> None:
    """Check that a value is an integer in the range `within`, and one of `members` unless it is empty.

    Raises:
        NumberError: it is not.
    """
    if not isinstance(value, SupportsIndex):
        raise NumberError("range", "an integer", describe(value))
    number, (least, most) = index(value), within
    if not least <= number <= most:
        found = str(number) if number.bit_length() <= 128 else describe(number)
        raise NumberError("range", f"{least} to {most}", found)
    if members and number not in members:
        raise NumberError("range", either(map(str, members)), str(number))


def describe(value: object) -> str:
    """Return a value with its type, shortened; a number too long to print is not printed."""
    if value is None:
        return "None"
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    try:
        return f"{type(value).__name__} {shorten(value)}"
    except ValueError:  # A number too long to print, inside a sequence.
        return type(value).__name__
