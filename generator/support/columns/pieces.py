"""Octets of many elements at once: what the column encoder writes, and the join of it.

Each value of an element becomes a *component*, which is one of four kinds:

- octets that are the same for all elements
- an integer of fixed width for each element
- a block with a row of octets for each element
- `Pieces`, which differ in length

`joined` is the last step: it puts the components of each element one after the other. Adjacent
components of fixed width are first packed into one block, so that it copies few pieces. The join is
Arrow's ``take``. Given concatenated binary arrays, it takes the first element of each, then the
second, and so on. The data of the result is the joined octets. Compiled code does the same several
times as fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from specwire.generated.columns import native
from specwire.generated.columns.arrow import Mask, Octets, Whole, buffer_of, numbers_in, starts_of
from specwire.generated.layout import Order

MOST_OCTETS = 2**31 - 1
"""Largest value of the signed 32-bit offsets of an Arrow binary array."""


@dataclass(frozen=True)
class Pieces:
    """Octets of varying length: element i is ``data[offsets[i]:offsets[i + 1]]``."""

    offsets: Whole
    data: Octets

    @cached_property
    def sizes(self) -> Whole:
        """Number of octets of each element."""
        return np.diff(self.offsets)

    @property
    def octets(self) -> Octets:
        """Octets of all elements, without those before the first or after the last."""
        return self.data[int(self.offsets[0]) : int(self.offsets[-1])]

    def array(self) -> pa.Array[Any]:
        """Return the elements as an Arrow array, without copying."""
        small = self.offsets.dtype == np.int32
        offsets = self.offsets if small else self.offsets.astype(np.int64, copy=False)
        return pa.Array.from_buffers(
            pa.binary() if small else pa.large_binary(),
            len(offsets) - 1,
            [None, buffer_of(offsets), buffer_of(self.data)],
        )

    def spread(self, there: Mask) -> Pieces:
        """Return the same octets where `there` is true and empty elements elsewhere."""
        return Pieces(self.offsets[starts_of(there)], self.data)

    def grouped(self, ends: Whole) -> Pieces:
        """Return elements joined in groups; each group begins at one of `ends` and ends at the next."""
        return Pieces(self.offsets[ends], self.data)


@dataclass(frozen=True, slots=True)
class Numbers:
    """Integer of `octets` octets for each element; a negative one as two's complement."""

    values: Whole
    octets: int
    order: Order = "big"


@dataclass(frozen=True, slots=True)
class Block:
    """Row of octets for each element."""

    rows: Octets


Fixed = bytes | Numbers | Block
Component = Fixed | Pieces


def pieces_of(array: pa.Array[Any]) -> Pieces:
    """Return the octets of a text or binary array without nulls, without copying."""
    large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    if not len(array):
        return Pieces(np.zeros(1, np.int32), np.empty(0, np.uint8))
    _, offsets, data = array.buffers()
    start, end = array.offset, array.offset + len(array) + 1
    return Pieces(numbers_in(offsets, np.int64 if large else np.int32)[start:end], numbers_in(data, np.uint8))


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
    fixed = sum(width for width in map(width_of, components) if isinstance(width, int))
    varying = [component.sizes for component in components if isinstance(component, Pieces)]
    total = sum(varying[1:], start=varying[0]) if varying else 0
    return total + fixed if fixed else total


def cut(pieces: Pieces, octets: int, fill: int) -> Block:
    """Return the elements as rows of `octets` octets; pad shorter ones with `fill`, truncate longer ones."""
    sizes, data = pieces.sizes, pieces.data
    if not len(sizes) or not octets or (sizes == octets).all():
        return Block(pieces.octets.reshape(len(sizes), octets))
    rows = np.full((len(sizes), octets), fill, np.uint8)
    inside = np.arange(octets) < sizes[:, None]
    rows[inside] = data[(pieces.offsets[:-1, None] + np.arange(octets))[inside]]
    return Block(rows)


def joined(components: Sequence[Component], count: int) -> Pieces:
    """Return the joined components of each of `count` elements."""
    pieces = _packed(components, count)
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return Pieces(np.zeros(count + 1, np.int32), np.empty(0, np.uint8))
    total = sum(len(piece.octets) for piece in pieces)
    if native.KERNELS is not None and total <= MOST_OCTETS:
        data = [piece.data for piece in pieces]
        return Pieces(*native.joined([piece.offsets for piece in pieces], data, count, total))
    size = np.uint32 if len(pieces) * count < 2**32 else np.int64
    order = np.arange(len(pieces) * count, dtype=size).reshape(len(pieces), count).T.ravel()
    places: Any = pa.array(order)
    found = pieces_of(concatenated(pieces).take(places))
    return Pieces(np.ascontiguousarray(found.offsets[:: len(pieces)]), found.data)


def concatenated(pieces: Sequence[Pieces]) -> pa.Array[Any]:
    """Return the elements of all pieces as one binary array."""
    arrays = [piece.array() for piece in pieces]
    small = all(array.type == pa.binary() for array in arrays)
    if not small or sum(len(piece.octets) for piece in pieces) > MOST_OCTETS:
        arrays = [array.cast(pa.large_binary()) for array in arrays]
    return pa.concat_arrays(arrays) if arrays else pa.array([], pa.binary())


def _packed(components: Sequence[Component], count: int) -> list[Pieces]:
    """Return the components, with adjacent ones of fixed width packed into one."""
    found: list[Pieces] = []
    fixed: list[Fixed] = []
    for component in components:
        if not isinstance(component, Pieces):
            fixed.append(component)
        elif component.offsets[0] != component.offsets[-1]:
            found += _block(fixed, count)
            found.append(component)
            fixed = []
    return found + _block(fixed, count)


def _block(fixed: Sequence[Fixed], count: int) -> list[Pieces]:
    """Return one piece that holds the fixed-width components; no piece if they are empty."""
    widths = [int(width_of(component)) for component in fixed]
    if not sum(widths):
        return []
    rows = np.empty((count, sum(widths)), np.uint8)
    at = 0
    for component, width in zip(fixed, widths, strict=True):
        if isinstance(component, Numbers):
            _put_numbers(rows, at, component)
        else:
            octets = np.frombuffer(component, np.uint8) if isinstance(component, bytes) else component.rows
            rows[:, at : at + width] = octets
        at += width
    size = np.int32 if rows.size <= MOST_OCTETS else np.int64
    return [Pieces(np.arange(0, rows.size + 1, rows.shape[1], dtype=size), rows.reshape(-1))]


def _put_numbers(rows: Octets, at: int, numbers: Numbers) -> None:
    """Write integers into rows at octet `at`; bits beyond their width are dropped."""
    octets, order = numbers.octets, "<" if numbers.order == "little" else ">"
    if octets in (1, 2, 4, 8) and len(rows):
        kind = np.dtype(f"{order}u{octets}")
        place = np.ndarray(len(rows), kind, rows.data, at, (rows.shape[1],))
        place[:] = numbers.values
    else:
        wide = numbers.values.astype(f"{order}u8").view(np.uint8).reshape(-1, 8)
        rows[:, at : at + octets] = wide[:, :octets] if order == "<" else wide[:, 8 - octets :]
