# Written by specwire from generator/support/columns/pieces.py. Do not edit; change that file and run `make generate`.
"""Octets of many elements at once: the data types of the column encoders.

Each element of a run becomes a *component*, which is one of four kinds:

- octets that are the same for all elements
- an integer of fixed width for each element
- a block with a row of octets for each element
- `Pieces`, which differ in length

No Python code runs for each element, here or in the modules built on this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Whole = NDArray[np.integer[Any]]
"""Integers of any width."""

Mask = NDArray[np.bool_]

MOST_OCTETS = 2**31 - 1
"""Largest value of the signed 32-bit offsets of an Arrow binary array."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Octets of varying length: element i is ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: Whole
    data: NDArray[np.uint8]

    @property
    def sizes(self) -> Whole:
        """Number of octets of each element."""
        return np.diff(self.offsets)

    @property
    def octets(self) -> NDArray[np.uint8]:
        """Octets of all elements, without those before the first or after the last."""
        return self.data[int(self.offsets[0]) : int(self.offsets[-1])]

    def array(self) -> pa.Array[Any]:
        """Return the elements as an Arrow array, without copying."""
        small = self.offsets.dtype == np.int32
        offsets = self.offsets if small else self.offsets.astype(np.int64, copy=False)
        return pa.Array.from_buffers(
            pa.binary() if small else pa.large_binary(),
            len(offsets) - 1,
            [None, as_buffer(offsets), as_buffer(self.data)],
        )

    def spread(self, there: Mask) -> Pieces:
        """Return the same octets where `there` is true and empty elements elsewhere."""
        return Pieces(self.offsets[starts_of(there)], self.data)

    def grouped(self, ends: Whole) -> Pieces:
        """Return elements joined in groups; each group begins at one of `ends` and ends at the next."""
        return Pieces(self.offsets[ends], self.data)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Unsigned big-endian integer of `octets` octets for each element."""

    values: Whole
    octets: int


@dataclass(frozen=True, slots=True)
class Block:
    """Row of octets for each element."""

    rows: NDArray[np.uint8]


Fixed = bytes | Numbers | Block
Component = Fixed | Pieces


def as_buffer(values: NDArray[Any]) -> pa.Buffer:
    """Return the memory of an array as a buffer, without copying."""
    return pa.py_buffer(values.data)


def values_in(buffer: Any, kind: Any) -> NDArray[Any]:
    """Return a buffer's memory as an array of dtype `kind`, without copying; empty if there is no buffer."""
    return np.empty(0, kind) if buffer is None else np.frombuffer(buffer, kind)


def starts_of(sizes: NDArray[Any]) -> Whole:
    """Return where elements of these sizes begin, and where the last one ends."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def pieces_of(array: pa.Array[Any]) -> Pieces:
    """Return the octets of a text or binary array without nulls, without copying."""
    large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    if not len(array):
        return Pieces(np.zeros(1, np.int32), np.empty(0, np.uint8))
    _, offsets, data = array.buffers()
    start, end = array.offset, array.offset + len(array) + 1
    return Pieces(values_in(offsets, np.int64 if large else np.int32)[start:end], values_in(data, np.uint8))


def width_of(component: Component) -> int | Whole:
    """Return the number of octets of a component: one number, or one for each element."""
    match component:
        case bytes():
            return len(component)
        case Numbers(octets=octets):
            return octets
        case Block(rows=rows):
            return int(rows.shape[1])
        case Pieces():
            return component.sizes


def total_width(components: Sequence[Component]) -> int | Whole:
    """Return the total number of octets of components: one number, or one for each element."""
    total: int | Whole = 0
    for component in components:
        total = total + width_of(component)
    return total


def ranges(begin: Whole, counts: Whole) -> Whole:
    """Return, for each row, `counts` consecutive integers starting at `begin`, concatenated."""
    before = starts_of(counts)
    return np.repeat(begin - before[:-1], counts) + np.arange(int(before[-1]))


def cut(pieces: Pieces, octets: int, fill: int) -> Block:
    """Return the elements as rows of `octets` octets; pad shorter ones with `fill`, truncate longer ones."""
    sizes, data = pieces.sizes, pieces.data
    if not len(sizes) or not octets or (sizes == octets).all():
        return Block(pieces.octets.reshape(len(sizes), octets))
    rows = np.full((len(sizes), octets), fill, np.uint8)
    inside = np.arange(octets) < sizes[:, None]
    rows[inside] = data[(pieces.offsets[:-1, None] + np.arange(octets))[inside]]
    return Block(rows)
