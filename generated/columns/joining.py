# Written by specwire from generator/support/columns/joining.py. Do not edit; change that file and run `make generate`.
"""Joining the components of runs: the last step of all column encoders.

Adjacent components of fixed width are first packed into one block, so that the join copies few
pieces. The join is Arrow's ``take``. Given concatenated binary arrays, it takes the first element
of each, then the second, and so on. The data of the result is the joined octets. The compiled
`specwire.generated.columns.copying` does the same several times as fast; ``SPECWIRE_PURE=1``
disables it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from specwire.generated.builds import PURE
from specwire.generated.columns.pieces import (
    MOST_OCTETS,
    Component,
    Fixed,
    Numbers,
    Pieces,
    pieces_of,
    width_of,
)

Copy = Callable[[list[Any], list[Any], NDArray[np.int32], NDArray[np.uint8]], None]


def _compiled() -> Copy | None:
    """Return the compiled join, or None if it is missing, of another version, or disabled."""
    if os.environ.get(PURE) == "1":
        return None
    try:
        found = import_module("specwire.generated.columns.copying")
    except ImportError:
        return None
    return found.join if found.BUILD == "1" else None


_COPY = _compiled()


def joined(components: Sequence[Component], count: int) -> Pieces:
    """Return the joined components of each of `count` elements."""
    pieces = _packed(components, count)
    if len(pieces) == 1:
        return pieces[0]
    if not pieces:
        return Pieces(np.zeros(count + 1, np.int32), np.empty(0, np.uint8))
    total = sum(len(piece.octets) for piece in pieces)
    if _COPY is not None and total <= MOST_OCTETS:
        ends, octets = np.empty(count + 1, np.int32), np.empty(total, np.uint8)
        _COPY([piece.offsets for piece in pieces], [piece.data for piece in pieces], ends, octets)
        return Pieces(ends, octets)
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


def _put_numbers(rows: NDArray[np.uint8], at: int, numbers: Numbers) -> None:
    """Write integers into rows at octet `at`; bits beyond their width are dropped."""
    octets = numbers.octets
    if octets in (1, 2, 4, 8) and len(rows):
        kind = np.dtype(f">u{octets}")
        place = np.ndarray(len(rows), kind, rows.data, at, (rows.shape[1],))
        place[:] = numbers.values
    else:
        wide = numbers.values.astype(">u8").view(np.uint8).reshape(-1, 8)
        rows[:, at : at + octets] = wide[:, 8 - octets :]
