"""Arrow arrays from numpy arrays and back, without copying; columns with one value in every row.

Columns of message types that do not occur are null throughout. They share one block of zeros, which
the operating system maps only when it is read. So they cost almost no time or memory.

Also works around gaps in pyarrow's type stubs, in this one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from mmap import mmap
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ArrowType: TypeAlias = Any
"""Any Arrow type. The stubs lack the attributes of list and struct types."""

Octets = NDArray[np.uint8]
Whole = NDArray[np.integer[Any]]
"""Integers of any width."""
Positions = NDArray[np.int64]
Mask = NDArray[np.bool_]

BLOCK = 1 << 12
WIDEST = 16
"""Largest number of octets that a row uses in a buffer: a 128-bit decimal."""


def buffer_of(array: NDArray[Any]) -> pa.Buffer:
    """Return an array's octets as a buffer."""
    return pa.py_buffer(cast(Any, array))


def numbers_in(buffer: pa.Buffer | None, dtype: Any) -> NDArray[Any]:
    """Return a buffer's content as an array; an empty array if there is no buffer."""
    if buffer is None:
        return np.zeros(0, dtype)
    return cast("NDArray[Any]", np.frombuffer(cast(Any, buffer), dtype))


def allocated(count: int, dtype: Any) -> NDArray[Any]:
    """Return an array in Arrow's memory pool, which reuses the memory of earlier batches."""
    return numbers_in(pa.allocate_buffer(count * np.dtype(dtype).itemsize), dtype)


def bitmap(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Return an Arrow validity bitmap, or None if all slots are valid."""
    return None if valid is None else buffer_of(np.packbits(valid, bitorder="little"))


def taken(
    array: pa.Array[Any], indices: NDArray[Any], absent: NDArray[np.bool_] | None = None
) -> pa.Array[Any]:
    """Return the slots of `array` at `indices`, null where `absent` is true."""
    return array.take(cast(Any, pa.array(indices, mask=cast(Any, absent))))


def nulls_of(type: ArrowType, count: int) -> pa.Array[Any]:
    """Return an array of nulls."""
    return cast("pa.Array[Any]", pa.nulls(count, type))


def repeated(word: str, count: int) -> pa.Array[Any]:
    """Return a column with `word` in every row."""
    octets = np.frombuffer(word.encode(), np.uint8)
    size = len(octets)
    offsets = allocated(count + 1, np.dtype(np.int32))
    data = allocated(count * size, np.dtype(np.uint8))
    ramp = np.arange(BLOCK, dtype=np.int32) * np.int32(size)
    words = np.tile(octets, BLOCK)
    for low in range(0, count + 1, BLOCK):
        rows = min(BLOCK, count + 1 - low)
        np.add(ramp[:rows], low * size, out=offsets[low : low + rows])
        part = data[low * size : (low + BLOCK) * size]
        part[:] = words[: len(part)]
    return pa.Array.from_buffers(pa.string(), count, [None, buffer_of(offsets), buffer_of(data)])


def nulls(types: Sequence[ArrowType], count: int) -> list[pa.Array[Any]]:
    """Return a column of nulls for each type."""
    zeros = pa.py_buffer(mmap(-1, (count + 1) * WIDEST))
    return [_nulls(type, count, zeros) for type in types]


def _nulls(type: ArrowType, count: int, zeros: pa.Buffer) -> pa.Array[Any]:
    buffers: list[pa.Buffer | None] = [zeros]
    children: list[pa.Array[Any]] = []
    if pa.types.is_struct(type):
        children = [_nulls(type.field(number).type, count, zeros) for number in range(type.num_fields)]
    elif pa.types.is_list(type):
        buffers = [zeros, zeros]
        children = [_nulls(type.value_type, 0, zeros)]
    elif pa.types.is_string(type) or pa.types.is_binary(type):
        buffers = [zeros, zeros, pa.py_buffer(b"")]
    else:
        buffers = [zeros, zeros]
    return pa.Array.from_buffers(type, count, buffers, null_count=count, children=children)


def either(*masks: Mask | None) -> Mask | None:
    """Return the union of masks; None if it is empty."""
    found: Mask | None = None
    for mask in masks:
        if mask is not None and mask.any():
            found = mask if found is None else found | mask
    return found


def starts_of(sizes: NDArray[Any]) -> Positions:
    """Return where elements of these sizes begin, and where the last one ends."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def ranges(begin: Whole, counts: Whole) -> Positions:
    """Return, for each row, `counts` consecutive integers starting at `begin`, concatenated."""
    before = starts_of(counts)
    return np.repeat(begin - before[:-1], counts) + np.arange(int(before[-1]))
