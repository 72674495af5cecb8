"""Columns of a whole array, collected from blocks of a few thousand rows.

Numbers are written directly into one array for all rows. Other columns are concatenated at the
end. Slots of other messages are null. A column larger than one Arrow array raises ValueError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from specwire.generated.columns.arrow import (
    ArrowType,
    Mask,
    Positions,
    allocated,
    bitmap,
    buffer_of,
    either,
    nulls_of,
    numbers_in,
    taken,
)
from specwire.generated.columns.building import Column, Nulls, Numbers, storage, store

LARGEST = 2**31 - 1
"""Largest number of octets, or elements, of one column: its offsets are signed 32-bit integers."""


class GatheredNumbers:
    """Column of integers or floats."""

    def __init__(self, type: ArrowType, count: int) -> None:
        self.type = type
        self.values = allocated(count, storage(type))
        self.filled = 0
        self.valid: Mask | None = None

    def prepare(self, column: Column) -> tuple[Any, Mask | None]:
        """Return the argument for `put`, and the mask of doubtful slots."""
        return column, None

    def put(self, low: int, piece: Numbers | Nulls) -> None:
        """Store the numbers of the slots from `low` on."""
        self._fill(low)
        if isinstance(piece, Nulls):
            return
        self.filled += len(piece.values)
        where = slice(low, self.filled)
        store(self.values, where, piece.values)
        if piece.valid is not None and self.valid is None:
            self.valid = np.zeros(len(self.values), bool)
            self.valid[:low] = True
        if self.valid is not None:
            self.valid[where] = True if piece.valid is None else piece.valid

    def array(self, valid: pa.Buffer | None) -> pa.Array[Any]:
        """Return the column; `valid` is the validity bitmap if no nulls were stored."""
        self._fill(len(self.values))
        own = valid if self.valid is None else bitmap(self.valid)
        return pa.Array.from_buffers(self.type, len(self.values), [own, buffer_of(self.values)])

    def _fill(self, low: int) -> None:
        """Fill the rows since the last piece with nulls."""
        if low > self.filled:
            store(self.values, slice(self.filled, low), np.zeros(1, np.int64))
            if self.valid is None:
                self.valid = np.zeros(len(self.values), bool)
                self.valid[: self.filled] = True
            self.filled = low


class GatheredArrays:
    """Column of any other type."""

    def __init__(self, type: ArrowType, count: int) -> None:
        self.type = type
        self.count = count
        self.filled = 0
        self.pieces: list[pa.Array[Any]] = []

    def prepare(self, column: Column) -> tuple[Any, Mask | None]:
        """Return the argument for `put`, None for nulls, and the mask of doubtful slots."""
        return (None, None) if isinstance(column, Nulls) else column.build(self.type)

    def put(self, low: int, piece: pa.Array[Any] | None) -> None:
        """Store the array of the slots from `low` on; None for nulls, which are created later."""
        if piece is None:
            return
        self._fill(low)
        self.pieces.append(piece)
        self.filled += len(piece)

    def array(self, valid: pa.Buffer | None) -> pa.Array[Any]:
        """Return the column."""
        self._fill(self.count)
        pieces, self.pieces = self.pieces, []
        return concatenated(pieces)

    def _fill(self, low: int) -> None:
        """Fill the rows since the last piece with nulls."""
        if low > self.filled:
            self.pieces.append(nulls_of(self.type, low - self.filled))
            self.filled = low


class GatheredMessage:
    """Struct column of one message."""

    def __init__(self, type: ArrowType, count: int) -> None:
        self.type = type
        fields = [type.field(number).type for number in range(type.num_fields)]
        self.columns: list[GatheredNumbers | GatheredArrays] = [
            GatheredNumbers(field, count) if _is_number(field) else GatheredArrays(field, count)
            for field in fields
        ]

    def put(self, low: int, columns: Sequence[Column]) -> Mask | None:
        """Store the columns of the slots from `low` on, or return the mask of slots with doubtful texts."""
        doubt: Mask | None = None
        pieces: list[Any] = []
        for gathered, column in zip(self.columns, columns, strict=True):
            piece, found = gathered.prepare(column)
            pieces.append(piece)
            doubt = either(doubt, found)
        if doubt is None:
            for gathered, piece in zip(self.columns, pieces, strict=True):
                gathered.put(low, piece)
        return doubt

    def array(self, there: Mask) -> pa.Array[Any]:
        """Return the struct, null where `there` is false."""
        valid = None if there.all() else bitmap(there)
        columns = [gathered.array(valid) for gathered in self.columns]
        return pa.Array.from_buffers(self.type, len(there), [valid], children=columns)


def _is_number(type: ArrowType) -> bool:
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type))


def concatenated(arrays: Sequence[pa.Array[Any]]) -> pa.Array[Any]:
    """Return arrays of one type as one array.

    Raises:
        ValueError: the result would exceed the size of one array.
    """
    if len(arrays) == 1:
        return arrays[0]
    _check_extent(arrays[0].type, arrays)
    return pa.concat_arrays(arrays)


def _check_extent(type: ArrowType, arrays: Sequence[pa.Array[Any]]) -> None:
    if pa.types.is_string(type) or pa.types.is_binary(type) or pa.types.is_list(type):
        extent = sum(_extent(array) for array in arrays)
        if extent > LARGEST:
            what = "elements" if pa.types.is_list(type) else "octets"
            raise ValueError(
                f"{extent} {what} in one column, of which an Arrow array can hold {LARGEST}: pass smaller arrays"
            )
    if pa.types.is_list(type):
        _check_extent(type.value_type, [array.values for array in arrays])  # type: ignore[attr-defined]
    for number in range(type.num_fields if pa.types.is_struct(type) else 0):
        _check_extent(type.field(number).type, [array.field(number) for array in arrays])  # type: ignore[attr-defined]


def _extent(array: pa.Array[Any]) -> int:
    """Return the last offset of an array."""
    buffer = array.buffers()[1]
    if buffer is None or not len(array):
        return 0
    offsets = numbers_in(buffer, np.int32)
    return int(offsets[array.offset + len(array)]) - int(offsets[array.offset])


def merged(array: pa.Array[Any] | None, some: pa.Array[Any], slots: Positions, count: int) -> pa.Array[Any]:
    """Return `array` (None: nulls) with the values of `some` in `slots`."""
    if array is None:
        indices = np.zeros(count, np.int64)
        there = np.zeros(count, bool)
        indices[slots], there[slots] = np.arange(len(some)), True
        return taken(some, indices, ~there)
    indices = np.arange(count)
    indices[slots] = count + np.arange(len(some))
    return taken(concatenated([array, some]), indices)
