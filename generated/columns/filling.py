# Written by specwire from generator/support/columns/filling.py. Do not edit; change that file and run `make generate`.
"""Columns with the same value in every row: one word, or null.

Columns of message types that do not occur are null throughout. They share one block of zeros, which
the operating system maps only when it is read. So they cost almost no time or memory.
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
"""Largest number of octets that a row uses in a buffer: a 128-bit decimal."""


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
