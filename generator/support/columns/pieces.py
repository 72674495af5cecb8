"""Octets of many elements at once: what the column encoders write with.

What an element of a run becomes is a *component*: octets that are the same for all elements, an integer of so
many octets for each, a block with a row of octets for each, or `Pieces`, which differ in length. Nothing
here, and in what builds on it, runs Python code for each element.
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
"""What the 32 bits of an Arrow binary array's offsets can count."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Octets of different length: those of element i are ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: Whole
    data: NDArray[np.uint8]

    @property
    def sizes(self) -> Whole:
        """The number of octets of each element."""
        return np.diff(self.offsets)

    @property
    def octets(self) -> NDArray[np.uint8]:
        """The octets of all elements, without those before the first and behind the last."""
        return self.data[int(self.offsets[0]) : int(self.offsets[-1])]

    def array(self) -> pa.Array[Any]:
        """The elements as an Arrow array, not copied."""
        small = self.offsets.dtype == np.int32
        offsets = self.offsets if small else self.offsets.astype(np.int64, copy=False)
        return pa.Array.from_buffers(
            pa.binary() if small else pa.large_binary(),
            len(offsets) - 1,
            [None, as_buffer(offsets), as_buffer(self.data)],
        )

    def spread(self, there: Mask) -> Pieces:
        """The same octets where `there` is true, none for the other elements."""
        return Pieces(self.offsets[starts_of(there)], self.data)

    def grouped(self, ends: Whole) -> Pieces:
        """Elements joined in groups, each from one of `ends` to the next."""
        return Pieces(self.offsets[ends], self.data)


@dataclass(frozen=True, slots=True)
class Numbers:
    """An unsigned big-endian integer of `octets` octets for each element."""

    values: Whole
    octets: int


@dataclass(frozen=True, slots=True)
class Block:
    """A row of octets for each element."""

    rows: NDArray[np.uint8]


Fixed = bytes | Numbers | Block
Component = Fixed | Pieces


def as_buffer(values: NDArray[Any]) -> pa.Buffer:
    """Return the memory of an array, not copied."""
    return pa.py_buffer(values.data)


def values_in(buffer: Any, kind: Any) -> NDArray[Any]:
    """Return the memory of a buffer as values of a kind, not copied; none where there is no buffer."""
    return np.empty(0, kind) if buffer is None else np.frombuffer(buffer, kind)


def starts_of(sizes: NDArray[Any]) -> Whole:
    """Return where elements of these sizes begin, and where the last ends: one more than there are sizes."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def pieces_of(array: pa.Array[Any]) -> Pieces:
    """Return the octets of a text or binary array without nulls, not copied."""
    large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    if not len(array):
        return Pieces(np.zeros(1, np.int32), np.empty(0, np.uint8))
    _, offsets, data = array.buffers()
    start, end = array.offset, array.offset + len(array) + 1
    return Pieces(values_in(offsets, np.int64 if large else np.int32)[start:end], values_in(data, np.uint8))


def width_of(component: Component) -> int | Whole:
    """Return how many octets a component has: one number, or one for each element."""
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
    """Return how many octets components have together: one number, or one for each element."""
    total: int | Whole = 0
    for component in components:
        total = total + width_of(component)
    return total


def ranges(begin: Whole, counts: Whole) -> Whole:
    """Return so many numbers for each row, from `begin` on, one row after the other."""
    before = starts_of(counts)
    return np.repeat(begin - before[:-1], counts) + np.arange(int(before[-1]))


def cut(pieces: Pieces, octets: int, fill: int) -> Block:
    """Return the elements as rows of so many octets, filled up behind shorter ones; longer ones are cut."""
    sizes, data = pieces.sizes, pieces.data
    if not len(sizes) or not octets or (sizes == octets).all():
        return Block(pieces.octets.reshape(len(sizes), octets))
    rows = np.full((len(sizes), octets), fill, np.uint8)
    inside = np.arange(octets) < sizes[:, None]
    rows[inside] = data[(pieces.offsets[:-1, None] + np.arange(octets))[inside]]
    return Block(rows)
