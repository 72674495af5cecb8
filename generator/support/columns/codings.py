"""Numbers and UUIDs of many rows at once, in every coding of `specwire.generated.layout`.

Readers return values, and the mask of rows whose octets are no number of the coding, or refuse these
rows in their run. Writers return octets, and the mask of values that have none. What they reject is
left to the row codec, so a check here may be stricter than its counterpart in `numbers`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from specwire.generated.columns.arrow import Mask, Octets, Positions, Whole, either, starts_of
from specwire.generated.columns.intake import floats, integers_of
from specwire.generated.columns.pieces import Block, Component, Numbers, Pieces
from specwire.generated.columns.runs import Run, integers
from specwire.generated.layout import Boolean, Coding, Digits, Float, Integer, Order, Varint

GROUPS = 10
"""Number of groups of 7 bits that hold 64 bits."""
LONGEST = 64
"""Largest number of digits that are read here."""
MINUS = ord("-")
_VALUES = np.full(256, 255, np.uint8)
"""Value of each octet as a hexadecimal digit, 255 if it is none."""
_VALUES[list(b"0123456789abcdef")] = np.arange(16)
_VALUES[list(b"ABCDEF")] = np.arange(10, 16)
_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
_DASHES = (8, 13, 18, 23)
_PLACES = np.delete(np.arange(36), _DASHES)
"""Places of the digits in the text of a UUID."""
_LITTLE = np.array([3, 2, 1, 0, 5, 4, 7, 6, *range(8, 16)])
"""Order of the octets of a UUID whose first three parts are little-endian."""


def read_fixed(coding: Coding, octets: Octets) -> tuple[NDArray[Any], Mask | None]:
    """Return the numbers that the rows of a matrix are, and the mask of rows that are none."""
    match coding:
        case Integer(members=members, order=order, signed=signed):
            values = integers(octets, order, signed=signed)
            return values, ~among(values, members) if members else None
        case Float(octets=size, order=order):
            return octets.view(f"{'<' if order == 'little' else '>'}f{size}")[:, 0], None
        case Boolean(order=order):
            values = integers(octets, order)
            return values == 1, values > 1
        case Digits(base=base):
            return _from_digits(octets, np.full(len(octets), octets.shape[1]), base)
    raise AssertionError(coding)


def read_varying(run: Run, coding: Coding) -> NDArray[Any]:
    """Return the next number of each row, and advance past it."""
    return _read_varint(run, coding) if isinstance(coding, Varint) else _read_digits(run, coding)


def among(values: NDArray[Any], members: tuple[int, ...]) -> Mask:
    """Return the mask of values that are members; ignores members that do not fit the width."""
    found = np.zeros(len(values), bool)
    limits = np.iinfo(values.dtype)
    for member in members:
        if limits.min <= member <= limits.max:
            found |= values == member
    return found


def _window(run: Run, at: Positions, size: int) -> tuple[Octets, Mask]:
    """Return `size` octets from `at` on in each row, and the mask of those within the row."""
    places = at[:, None] + np.arange(size)
    inside = places < run.end[:, None]
    octets = run.frames.octets if len(run.frames.octets) else np.zeros(1, np.uint8)
    return octets[np.where(inside, places, 0)], inside


def _read_varint(run: Run, coding: Varint) -> NDArray[Any]:
    octets, inside = _window(run, run.at, min(coding.maximum, GROUPS))
    last = inside & (octets < 0x80)
    sizes = np.where(last.any(axis=1), last.argmax(axis=1) + 1, 0)
    run.refuse(sizes == 0)
    values = np.zeros(len(run), np.uint64)
    top = np.zeros(len(run), np.uint8)
    for place in range(octets.shape[1]):
        group = np.where(place < sizes, octets[:, place] & 0x7F, 0)
        digit = np.full(len(run), place) if coding.order == "little" else np.maximum(sizes - 1 - place, 0)
        values |= group.astype(np.uint64) << (7 * digit).astype(np.uint64)
        top |= np.where(digit == GROUPS - 1, group, 0).astype(np.uint8)
    run.take(np.where(run.ok, sizes, 0))
    if coding.signed == "complement":
        run.refuse((top != 0) & (top != 0x7F))
        bits = (7 * np.minimum(sizes, GROUPS - 1)).astype(np.uint64)
        negative = (sizes < GROUPS) & (values >> np.maximum(bits, 1) - np.uint64(1) & np.uint64(1) != 0)
        return np.where(negative, values | ~np.uint64(0) << bits, values).view(np.int64)
    run.refuse(top > 1)
    if coding.signed:
        return (values >> np.uint64(1) ^ -(values & np.uint64(1))).view(np.int64)
    return values


def _read_digits(run: Run, coding: Coding) -> NDArray[Any]:
    assert isinstance(coding, Digits)
    first, inside = _window(run, run.at, 1)
    negative = inside[:, 0] & (first[:, 0] == MINUS) & coding.signed
    octets, inside = _window(run, run.at + negative, min(coding.maximum, LONGEST))
    digits = inside & (_VALUES[octets] < coding.base)
    sizes = np.where(digits.all(axis=1), octets.shape[1], digits.argmin(axis=1))
    run.refuse((sizes < coding.minimum) | ((sizes == LONGEST) & (coding.maximum > LONGEST)))
    values, wrong = _from_digits(octets, sizes, coding.base)
    wrong = wrong | negative & (values == 0)
    if coding.signed:
        wrong |= values > np.where(negative, np.uint64(2**63), np.uint64(2**63 - 1))
        values = np.where(negative, -values, values).view(np.int64)
    run.refuse(wrong)
    run.take(np.where(run.ok, sizes + negative, 0))
    return values


def _from_digits(octets: Octets, sizes: Positions, base: int) -> tuple[NDArray[np.uint64], Mask]:
    """Return the numbers in the first `sizes` octets of each row, and the mask of rows without one."""
    values, wrong = np.zeros(len(octets), np.uint64), np.zeros(len(octets), bool)
    for place in range(octets.shape[1]):
        now = place < sizes
        digit = _VALUES[octets[:, place]].astype(np.uint64)
        digit[~now] = 0
        wrong |= (digit >= base) | now & (values > (np.uint64(2**64 - 1) - digit) // np.uint64(base))
        values = np.where(now, values * np.uint64(base) + digit, values)
    return values, wrong


def uuid_texts(octets: Octets, order: Order) -> Octets:
    """Return UUIDs of 16 octets in canonical form: 36 octets each."""
    octets = octets[:, _LITTLE] if order == "little" else octets
    found = np.full((len(octets), 36), ord("-"), np.uint8)
    found[:, _PLACES[::2]] = _DIGITS[octets >> 4]
    found[:, _PLACES[1::2]] = _DIGITS[octets & 15]
    return found


def uuid_octets(texts: Pieces, order: Order) -> tuple[Block, Mask]:
    """Return the octets of UUIDs in canonical form, and the mask of other texts."""
    wrong = texts.sizes != 36
    places = np.where(wrong, int(texts.offsets[0]), texts.offsets[:-1])[:, None] + np.arange(36)
    found = np.zeros((len(wrong), 36), np.uint8)
    if not wrong.all():
        found[~wrong] = texts.data[places[~wrong]]
    digits = _VALUES[found[:, _PLACES]]
    wrong |= (digits > 15).any(axis=1) | (found[:, _DASHES] != ord("-")).any(axis=1)
    octets = digits[:, ::2] << 4 | digits[:, 1::2]
    return Block(np.ascontiguousarray(octets[:, _LITTLE] if order == "little" else octets)), wrong


def write_column(coding: Coding, array: pa.Array[Any]) -> tuple[tuple[Component, ...], Mask | None]:
    """Return the octets of the numbers of an array without nulls, and the mask of wrong ones."""
    match coding:
        case Float(octets=size, order=order):
            values = floats(array)
            with np.errstate(over="ignore"):
                narrow = values.astype(f"{'<' if order == 'little' else '>'}f{size}")
            return (Block(narrow.view(np.uint8).reshape(-1, size)),), np.isinf(narrow) & ~np.isinf(values)
        case Boolean(octets=size, order=order):
            return (Numbers(integers_of(array, 1)[0], size, order),), None
    low, high = limits(coding)
    values, wrong = integers_of(array, high, low)
    found, outside = write_values(coding, values)
    return found, either(wrong, outside)


def limits(coding: Coding) -> tuple[int, int]:
    """Return the smallest and largest value of a coding of integers or booleans."""
    if isinstance(coding, Boolean):
        return 0, 1
    bits = 8 * coding.octets if isinstance(coding, Integer) else 64
    signed = not isinstance(coding, Float) and bool(coding.signed)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)


def write_values(coding: Coding, values: Whole) -> tuple[tuple[Component, ...], Mask | None]:
    """Return the octets of integers of up to 64 bits, and the mask of those that do not fit."""
    match coding:
        case Integer(octets=size, members=members, order=order):
            wrong = ~among(values, members) if members else None
            if size < 8 and not coding.signed:
                wrong = either(wrong, values >= 256**size)
            return (Numbers(values, size, order),), wrong
        case Varint():
            return _varints(coding, values)
        case Digits():
            return _digits(coding, values)
    raise AssertionError(coding)


def _varints(coding: Varint, values: Whole) -> tuple[tuple[Component, ...], Mask]:
    """Return numbers in the fewest groups of 7 bits."""
    if coding.signed == "complement":
        numbers = values.astype(np.int64)
        limits = [np.int64(1) << np.int64(7 * size - 1) for size in range(1, GROUPS)]
        sizes = 1 + np.sum([(numbers >= limit) | (numbers < -limit) for limit in limits], axis=0)
    else:
        numbers = values.astype(np.uint64)
        if coding.signed:
            numbers = numbers << np.uint64(1) ^ (values.astype(np.int64) >> np.int64(63)).view(np.uint64)
        sizes = 1 + np.sum([numbers >> np.uint64(7 * size) > 0 for size in range(1, GROUPS)], axis=0)
    places = np.arange(GROUPS)
    inside = places < sizes[:, None]
    digits = places if coding.order == "little" else np.maximum(sizes[:, None] - 1 - places, 0)
    groups = (numbers[:, None] >> (7 * digits).astype(numbers.dtype)).astype(np.uint8) & 0x7F
    groups |= np.where(places < sizes[:, None] - 1, 0x80, 0).astype(np.uint8)
    return (Pieces(starts_of(sizes), groups[inside]),), sizes > coding.maximum


def _digits(coding: Digits, values: Whole) -> tuple[tuple[Component, ...], Mask]:
    """Return numbers as text, with leading zeros up to the minimum of digits."""
    negative = values < 0
    rest = values.astype(np.uint64)
    rest = np.where(negative, -rest, rest)
    width = max(20, coding.minimum)
    digits = np.zeros((len(values), width), np.uint8)
    for place in reversed(range(width)):
        digits[:, place] = rest % np.uint64(coding.base)
        rest = rest // np.uint64(coding.base)
    sizes = width - np.where(digits.any(axis=1), (digits != 0).argmax(axis=1), width)
    sizes = np.maximum(sizes, coding.minimum)
    inside = np.arange(width) >= width - sizes[:, None]
    texts = Pieces(starts_of(sizes), _DIGITS[digits[inside]])
    signs = Pieces(starts_of(negative), np.full(int(negative.sum()), MINUS, np.uint8))
    return (signs, texts) if negative.any() else (texts,), sizes > coding.maximum
