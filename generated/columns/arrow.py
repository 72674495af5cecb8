# Written by specwire from generator/support/columns/arrow.py. Do not edit; change that file and run `make generate`.
"""Where numpy and Arrow meet: arrays as buffers and buffers as arrays, of which no octet is copied.

pyarrow's stubs know less than pyarrow does; what they lack is said here, once.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

ArrowType: TypeAlias = Any
"""A type of Arrow's; those of lists and structs have attributes that the stubs give to no type."""


def buffer_of(array: NDArray[Any]) -> pa.Buffer:
    """Return the octets of an array as a buffer."""
    return pa.py_buffer(cast(Any, array))


def numbers_in(buffer: pa.Buffer | None, dtype: Any) -> NDArray[Any]:
    """Return what is in a buffer; nothing where there is none."""
    if buffer is None:
        return np.zeros(0, dtype)
    return cast("NDArray[Any]", np.frombuffer(cast(Any, buffer), dtype))


def allocated(count: int, dtype: Any) -> NDArray[Any]:
    """Return an array in Arrow's memory, which is at hand again when an earlier batch has gone."""
    return numbers_in(pa.allocate_buffer(count * np.dtype(dtype).itemsize), dtype)


def bitmap(valid: NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Return which slots are valid as Arrow has it; None where all are."""
    return None if valid is None else buffer_of(np.packbits(valid, bitorder="little"))


def taken(
    array: pa.Array[Any], indices: NDArray[Any], absent: NDArray[np.bool_] | None = None
) -> pa.Array[Any]:
    """Return the slots of `array` that have these numbers, null where one is `absent`."""
    return array.take(cast(Any, pa.array(indices, mask=cast(Any, absent))))


def nulls_of(type: ArrowType, count: int) -> pa.Array[Any]:
    """Return an array of nulls."""
    return cast("pa.Array[Any]", pa.nulls(count, type))
