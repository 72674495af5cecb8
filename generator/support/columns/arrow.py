"""Conversions between numpy arrays and Arrow buffers, without copying.

Also works around gaps in pyarrow's type stubs, in this one place.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ArrowType: TypeAlias = Any
"""Any Arrow type. The stubs lack the attributes of list and struct types."""


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
