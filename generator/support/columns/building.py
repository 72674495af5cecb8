"""Columns before they become Arrow arrays: positions and numbers of the rows that have them.

A column can be spread over more slots, for rows of other messages or absent records; only positions
move. `build` creates the Arrow array of a type. Only then are octets copied and texts checked. It
also returns the mask of slots whose texts are doubtful: octets that are not UTF-8, or a NUL inside. If
there are any, the array must not be used.
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
    Mask,
    Octets,
    Positions,
    bitmap,
    buffer_of,
    either,
    nulls_of,
    numbers_in,
    starts_of,
    taken,
)

Built: TypeAlias = "tuple[pa.Array[Any], Mask | None]"
"""An array, and the mask of doubtful slots (None: none)."""


class Column(Protocol):
    """Values of some slots."""

    def spread(self, slots: Positions, count: int) -> Column:
        """Return a column of `count` slots that has these values in `slots` and null elsewhere."""
        ...

    def build(self, type: ArrowType) -> Built:
        """Return the array of a type, and the mask of doubtful slots."""
        ...


def spread(column: Column, slots: Positions, count: int) -> Column:
    """Return `column` spread over `slots` of `count`; nulls if there are no slots."""
    return column.spread(slots, count) if len(slots) else Nulls(count)


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

    def spread(self, slots: Positions, count: int) -> Nulls:
        """See `Column`."""
        return Nulls(count)

    def build(self, type: ArrowType) -> Built:
        """See `Column`."""
        return nulls_of(type, self.count), None


@dataclass(frozen=True, slots=True)
class Numbers:
    """Integers, floats or booleans. `valid` is None if no slot is null, here and below."""

    values: NDArray[Any]
    valid: Mask | None = None

    def spread(self, slots: Positions, count: int) -> Numbers:
        """See `Column`."""
        return Numbers(scattered(self.values, slots, count), _there(self.valid, slots, count))

    def build(self, type: ArrowType) -> Built:
        """See `Column`."""
        if pa.types.is_boolean(type):
            found = np.packbits(self.values, bitorder="little")
        else:
            found = np.empty(len(self.values), storage(type))
            store(found, slice(None), self.values)
        buffers = [bitmap(self.valid), buffer_of(found)]
        return pa.Array.from_buffers(type, len(self.values), buffers), None


WIDE = np.dtype([("low", "<u8"), ("high", "<u8")])
"""Layout of a 128-bit decimal."""


def storage(type: ArrowType) -> np.dtype[Any]:
    """Return the numpy type that stores the values of a column of numbers."""
    return WIDE if pa.types.is_decimal(type) else np.dtype(type.to_pandas_dtype())


def store(array: NDArray[Any], where: Any, values: NDArray[Any]) -> None:
    """Store numbers in an array whose type `storage` returned."""
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
    ended: bool = False
    """Texts must not contain NUL."""
    valid: Mask | None = None

    def spread(self, slots: Positions, count: int) -> Slices:
        """See `Column`."""
        start, size = scattered(self.start, slots, count), scattered(self.size, slots, count)
        return Slices(self.octets, self.buffer, start, size, self.ended, _there(self.valid, slots, count))

    def build(self, type: ArrowType) -> Built:
        """See `Column`."""
        offsets, data, plain = copied(self.octets, self.buffer, self.start, self.size)
        buffers = [bitmap(self.valid), buffer_of(offsets), buffer_of(data)]
        array = pa.Array.from_buffers(type, len(self.start), buffers)
        doubt = None if plain or not pa.types.is_string(type) else not_utf8(data, offsets)
        return array, either(doubt, holds_nul(data, offsets)) if self.ended else doubt


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
    valid: Mask | None = None

    def spread(self, slots: Positions, count: int) -> Many:
        """See `Column`."""
        counts = scattered(self.counts, slots, count)
        return Many(counts, self.elements, _there(self.valid, slots, count))

    def build(self, type: ArrowType) -> Built:
        """See `Column`."""
        elements, doubt = self.elements.build(type.value_type)
        offsets = starts_of(self.counts).astype(np.int32)
        buffers = [bitmap(self.valid), buffer_of(offsets)]
        array = pa.Array.from_buffers(type, len(self.counts), buffers, children=[elements])
        if doubt is not None:
            owners = np.searchsorted(offsets, np.flatnonzero(doubt), "right") - 1
            doubt = np.zeros(len(self.counts), bool)
            doubt[owners] = True
        return array, doubt


@dataclass(frozen=True, slots=True)
class Struct:
    """Records: one column for each field. A class without fields has one that is always true."""

    count: int
    columns: Sequence[Column]
    valid: Mask | None = None

    def spread(self, slots: Positions, count: int) -> Struct:
        """See `Column`."""
        columns = [spread(column, slots, count) for column in self.columns]
        return Struct(count, columns, _there(self.valid, slots, count))

    def build(self, type: ArrowType) -> Built:
        """See `Column`."""
        arrays: list[pa.Array[Any]] = []
        doubt: Mask | None = None
        for number, column in enumerate(self.columns or [present(self.count)]):
            array, found = column.build(type.field(number).type)
            arrays.append(array)
            doubt = either(doubt, found)
        return pa.Array.from_buffers(type, self.count, [bitmap(self.valid)], children=arrays), doubt


def present(count: int) -> Numbers:
    """Return the column of a class without fields: always true."""
    return Numbers(np.ones(count, bool))


def not_utf8(octets: Octets, offsets: NDArray[Any]) -> Mask | None:
    """Return the mask of texts that are not UTF-8, None if all are."""
    if not len(octets) or int(octets.max()) < 0x80:
        return None
    doubt = _begin_within(octets, offsets)
    at, end = int(offsets[0]), int(offsets[-1])
    view = octets.data
    while at < end:
        try:
            str(view[at:end], "utf-8")
            break
        except UnicodeDecodeError as error:
            slot = int(np.searchsorted(offsets, at + error.start, "right")) - 1
            doubt[slot] = True
            at = int(offsets[slot + 1])
    for slot in np.flatnonzero(doubt).tolist():
        doubt[slot] = not _is_utf8(view[int(offsets[slot]) : int(offsets[slot + 1])])
    return doubt if doubt.any() else None


def _is_utf8(octets: memoryview) -> bool:
    try:
        str(octets, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _begin_within(octets: Octets, offsets: NDArray[Any]) -> Mask:
    """Return the texts that begin within a character of the joined octets, and those before them."""
    doubt = np.zeros(len(offsets) - 1, bool)
    starts = offsets[:-1]
    some = np.flatnonzero(starts < offsets[1:])
    inside = np.flatnonzero((octets[starts[some]] & 0xC0) == 0x80)
    doubt[some[inside]] = True
    doubt[some[np.maximum(inside - 1, 0)]] = True
    return doubt


def holds_nul(octets: Octets, offsets: NDArray[Any]) -> Mask | None:
    """Return the mask of texts that contain NUL, None if there is none."""
    if not len(octets) or int(octets.min()):
        return None
    found = np.zeros(len(offsets) - 1, bool)
    found[np.searchsorted(offsets, np.flatnonzero(octets == 0), "right") - 1] = True
    return found
