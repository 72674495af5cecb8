"""Columns that say the same in every row, which cost next to nothing: one word, or null.

The columns of messages that do not occur are null throughout. They share one stretch of zeros that the
operating system maps when somebody looks at it, so they take neither time nor memory, however many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from mmap import mmap
from typing import Any

import numpy as np
import pyarrow as pa

from specwire.generated.columns.arrow import ArrowType, allocated, buffer_of

BLOCK = 1 << 12
WIDEST = 16
"""Octets that a row takes in a buffer at most: a decimal of 128 bits."""


def repeated(word: str, count: int) -> pa.Array[Any]:
    """Return a column that has the same word in every row."""
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
