# Written by specwire from generator/support/columns/building.py. Do not edit; change that file and run `make generate`.
"""Columns before they become Arrow arrays: positions and numbers of the rows that have them.

A column can be spread over more slots, for rows of other messages or absent records; only positions
move. `build` creates the Arrow array. Only then are octets copied and texts checked. It also
returns the slots whose texts are doubtful; if there are any, the array must not be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from specwire.generated.columns import native
from specwire.generated.columns.arrow import (
    ArrowType,
    bitmap,
    buffer_of,
    nulls_of,
    numbers_in,
    taken,
)
from specwire.generated.columns.frames import Mask, Octets, Positions
from specwire.generated.columns.texts import holds_nul, not_utf8

Built: TypeAlias = "tuple[pa.Array[Any], Mask | None]"
"""An array, and the mask of doubtful slots."""


class Column(Protocol):
    """Values of some slots, for a column of Arrow type `type`."""

    @property
    def type(self) -> ArrowType: ...

    def spread(self, slots: Positions, count: int) -> Column:
        """Return a column of `count` slots that has these values in `slots` and null elsewhere."""
        ...

    def build(self) -> Built:
        """Return the Arrow array and the mask of doubtful slots."""
        ...


def spread(column: Column, slots: Positions, count: int) -> Column:
    """Return `column` spread over `slots` of `count`; the column itself if no slot is missing."""
    return column.spread(slots, count) if len(slots) else Nulls(count, column.type)


def scattered(values: NDArray[Any], slots: Positions, count: int) -> NDArray[Any]:
    """Return `count` values: `values` at `slots`, zero elsewhere."""
    found = np.zeros(count, values.dtype)
    found[slots] = values
    return found


def _there(valid: Mask | None, slots: Positions, count: int) -> Mask:
    found = np.zeros(count, bool)
    found[slots] = True if valid is None else valid
    return found


@dataclass(frozen=True, slots=True)
class Nulls:
    """Null in every slot."""

    count: int
    type: ArrowType

    def spread(self, slots: Positions, count: int) -> Nulls:
        """See `Column`."""
        return Nulls(count, self.type)

    def build(self) -> Built:
        """See `Column`."""
        return nulls_of(self.type, self.count), None


@dataclass(frozen=True, slots=True)
class Numbers:
    """Integers. `valid` is None if no slot is null; this holds for the other classes too."""

    values: NDArray[Any]
    type: ArrowType
    valid: Mask | None = None

    def spread(self, slots: Positions, count: int) -> Numbers:
        """See `Column`."""
        return Numbers(scattered(self.values, slots, count), self.type, _there(self.valid, slots, count))

    def build(self) -> Built:
        """See `Column`."""
        found = np.empty(len(self.values), storage(self.type))
        store(found, slice(None), self.values)
        buffers = [bitmap(self.valid), buffer_of(found)]
        return pa.Array.from_buffers(self.type, len(found), buffers), None


WIDE = np.dtype([("low", "<u8"), ("high", "<u8")])
"""Layout of a 128-bit decimal."""


def storage(type: ArrowType) -> np.dtype[Any]:
    """Return the numpy type that stores the values of an integer column."""
    return WIDE if pa.types.is_decimal(type) else np.dtype(f"i{type.bit_width // 8}")


def store(array: NDArray[Any], where: Any, values: NDArray[Any]) -> None:
    """Store integers in an array whose type `storage` returned."""
    if array.dtype == WIDE:
        array["low"][where] = values
        array["high"][where] = 0
    else:
        array[where] = values


@dataclass(frozen=True, slots=True)
class Slices:
    """Octets or texts, each a slice of one buffer, in slot order."""

    octets: Octets
    buffer: pa.Buffer
    start: Positions
    size: Positions
    text: bool
    ended: bool = False
    """Texts must not contain NUL."""
    valid: Mask | None = None

    @property
    def type(self) -> ArrowType:
        """See `Column`."""
        return pa.string() if self.text else pa.binary()

    def spread(self, slots: Positions, count: int) -> Slices:
        """See `Column`."""
        start, size = scattered(self.start, slots, count), scattered(self.size, slots, count)
        valid = _there(self.valid, slots, count)
        return Slices(self.octets, self.buffer, start, size, self.text, self.ended, valid)

    def build(self) -> Built:
        """See `Column`."""
        offsets, data, plain = copied(self.octets, self.buffer, self.start, self.size)
        buffers = [bitmap(self.valid), buffer_of(offsets), buffer_of(data)]
        array = pa.Array.from_buffers(self.type, len(self.start), buffers)
        doubt = None if plain or not self.text else not_utf8(data, offsets)
        return array, either(doubt, holds_nul(data, offsets)) if self.ended else doubt


def either(one: Mask | None, other: Mask | None) -> Mask | None:
    """Return the union of two masks."""
    return other if one is None else one if other is None else one | other


def copied(
    octets: Octets, buffer: pa.Buffer, start: Positions, size: Positions
) -> tuple[NDArray[Any], Octets, bool]:
    """Return slices joined together: offsets, octets, and whether all octets are known to be ASCII."""
    if native.KERNELS is not None:
        return native.copied(octets, start, size)
    count = len(start)
    begin, end = start, start + size
    if not size.all():
        # Empty slices may point anywhere; give each the end of the previous slot.
        end = np.maximum.accumulate(np.where(size > 0, end, 0))
        begin = np.where(size > 0, start, end)
    bounds = np.empty(2 * count + 1, np.int32)
    bounds[0] = 0
    bounds[1::2] = begin
    bounds[2::2] = end
    gaps = pa.Array.from_buffers(pa.binary(), 2 * count, [None, buffer_of(bounds), buffer])
    _, offsets, data = taken(gaps, np.arange(1, 2 * count, 2, dtype=np.int32)).buffers()
    ends = numbers_in(offsets, np.int32)[: count + 1] if count else np.zeros(1, np.int32)
    return ends, numbers_in(data, np.uint8)[: int(ends[-1])], False


@dataclass(frozen=True, slots=True)
class Many:
    """Lists: the number of elements of each slot, and all elements in one column."""

    counts: Positions
    elements: Column
    type: ArrowType
    valid: Mask | None = None

    def spread(self, slots: Positions, count: int) -> Many:
        """See `Column`."""
        counts = scattered(self.counts, slots, count)
        return Many(counts, self.elements, self.type, _there(self.valid, slots, count))

    def build(self) -> Built:
        """See `Column`."""
        elements, doubt = self.elements.build()
        offsets = np.zeros(len(self.counts) + 1, np.int32)
        np.cumsum(self.counts, out=offsets[1:])
        buffers = [bitmap(self.valid), buffer_of(offsets)]
        array = pa.Array.from_buffers(self.type, len(self.counts), buffers, children=[elements])
        if doubt is not None:
            owners = np.searchsorted(offsets, np.flatnonzero(doubt), "right") - 1
            doubt = np.zeros(len(self.counts), bool)
            doubt[owners] = True
        return array, doubt


@dataclass(frozen=True, slots=True)
class Struct:
    """Records: one column for each field."""

    count: int
    columns: tuple[Column, ...]
    type: ArrowType
    valid: Mask | None = None

    def spread(self, slots: Positions, count: int) -> Struct:
        """See `Column`."""
        columns = tuple(spread(column, slots, count) for column in self.columns)
        return Struct(count, columns, self.type, _there(self.valid, slots, count))

    def build(self) -> Built:
        """See `Column`."""
        arrays, doubt = build_all(self.columns)
        array = pa.Array.from_buffers(self.type, self.count, [bitmap(self.valid)], children=arrays)
        return array, doubt


def build_all(columns: Sequence[Column]) -> tuple[list[pa.Array[Any]], Mask | None]:
    """Return the arrays of columns that cover the same slots, and the mask of doubtful slots."""
    arrays: list[pa.Array[Any]] = []
    doubt: Mask | None = None
    for column in columns:
        array, found = column.build()
        arrays.append(array)
        doubt = either(doubt, found)
    return arrays, doubt


@dataclass(frozen=True, slots=True)
class Present:
    """Column of a class without fields: always true."""

    count: int
    valid: Mask | None = None

    @property
    def type(self) -> ArrowType:
        """See `Column`."""
        return pa.bool_()

    def spread(self, slots: Positions, count: int) -> Present:
        """See `Column`."""
        return Present(count, _there(self.valid, slots, count))

    def build(self) -> Built:
        """See `Column`."""
        bits = buffer_of(np.full((self.count + 7) // 8, 255, np.uint8))
        return pa.Array.from_buffers(pa.bool_(), self.count, [bitmap(self.valid), bits]), None
