"""Arrays of messages as passed by the caller, and the positions of their frames.

A message is a list of binary values. For a protocol whose messages all have one frame, it may be
the value itself. The decoder works on one buffer of octets and two arrays of positions: the start
of each frame, and the first frame of each row. Lists of binary values are not copied, sliced or
not. Views, dictionaries and fixed-size values are cast first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from specwire.generated.columns.arrow import (
    ArrowType,
    Mask,
    Octets,
    Positions,
    buffer_of,
    numbers_in,
    starts_of,
)

Messages: TypeAlias = "pa.Array[Any] | pa.ChunkedArray[Any]"

ROWS = 1 << 15
"""Number of rows decoded together, so that working arrays fit the cache."""
OCTETS = 1 << 26
"""Largest number of octets decoded together; a row with more is left to the row codec."""
FRAMES = 1 << 12
"""Largest number of frames of a row; a row with more is left to the row codec."""


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of some rows.

    Frame `i` is ``octets[bounds[i]:bounds[i + 1]]``; row `r` begins with frame ``rows[r]``.
    """

    octets: Octets
    buffer: pa.Buffer
    """Buffer that holds `octets`."""
    bounds: Positions
    rows: Positions
    step: int = 0
    """Number of octets of every frame, 0 if frames differ in size."""
    known: Mask | None = None
    """False for frames that are null; None if there are none."""
    found: dict[bytes, Positions] = field(default_factory=dict)
    """Positions of some octets in `octets`, searched for once."""

    def __len__(self) -> int:
        return len(self.rows) - 1

    def extents(self, numbers: Positions, *, ascending: bool = True) -> tuple[Positions, Positions, int]:
        """Return where frames, by number, begin and end, and their distance if it is constant."""
        if ascending and len(numbers) and int(numbers[-1]) - int(numbers[0]) == len(numbers) - 1:
            # These are all frames from first to last, so no lookup is needed.
            first, last = int(numbers[0]), int(numbers[-1])
            return self.bounds[first : last + 1], self.bounds[first + 1 : last + 2], self.step
        return self.bounds[numbers], self.bounds[numbers + 1], 0


@dataclass(frozen=True, slots=True)
class Source:
    """One Arrow array of messages."""

    octets: Octets
    bounds: NDArray[Any]
    rows: NDArray[Any]
    unsure: Mask | None
    """Rows that are null or have a null frame."""

    def __len__(self) -> int:
        return len(self.rows) - 1

    def cut(self, low: int) -> tuple[Frames, Mask | None]:
        """Return the frames of the next rows, starting at row `low`, and the mask of rows to skip."""
        high = min(low + ROWS, len(self))
        if self._octets(low, high) > OCTETS:
            starts = self.bounds[self.rows[low : high + 1]]
            high = low + max(1, int(np.searchsorted(starts, int(starts[0]) + OCTETS, "right")) - 1)
            if self._octets(low, high) > OCTETS:
                return _nothing(high - low), np.ones(high - low, bool)
        rows = self.rows[low : high + 1].astype(np.int64)
        unsure = None if self.unsure is None else self.unsure[low:high]
        crowded = np.diff(rows) > FRAMES
        if crowded.any():
            unsure = crowded if unsure is None else crowded | unsure
        first = int(rows[0])
        bounds = self.bounds[first : int(rows[-1]) + 1].astype(np.int64)
        begin, end = int(bounds[0]), int(bounds[-1])
        octets = self.octets[begin:end]
        bounds -= begin
        rows -= first
        return Frames(octets, buffer_of(octets), bounds, rows, _step(bounds)), unsure

    def _octets(self, low: int, high: int) -> int:
        return int(self.bounds[self.rows[high]]) - int(self.bounds[self.rows[low]])


def _step(bounds: Positions) -> int:
    """Return the distance between neighbouring bounds, 0 if it varies."""
    step = int(bounds[1]) if len(bounds) > 1 else 0
    if step * (len(bounds) - 1) != int(bounds[-1]):
        return 0
    return step if bool((bounds[1:] - bounds[:-1] == step).all()) else 0


def _nothing(rows: int) -> Frames:
    octets = np.zeros(0, np.uint8)
    return Frames(octets, buffer_of(octets), np.zeros(1, np.int64), np.zeros(rows + 1, np.int64))


def as_lists(array: pa.Array[Any], *, single: bool) -> pa.Array[Any]:
    """Return messages as lists of binary values, one list of frames for each message.

    Raises:
        TypeError: the array holds no messages.
    """
    type = array.type
    if isinstance(array, pa.ExtensionArray):
        return as_lists(array.storage, single=single)
    if pa.types.is_null(type):
        return pa.nulls(len(array), pa.list_(pa.binary()))
    if single and _is_octets(type):
        return _lists(array, _as_binary(array), np.arange(len(array) + 1))
    if pa.types.is_list_view(type) or pa.types.is_large_list_view(type):
        sizes = cast(Any, array).value_lengths().fill_null(0)
        rows = starts_of(sizes.to_numpy(zero_copy_only=False))
        return as_lists(_lists(array, cast(Any, array).flatten(), rows), single=single)
    lists = pa.types.is_list(type) or pa.types.is_large_list(type)
    fixed = pa.types.is_fixed_size_list(type)
    if not (lists or fixed) or not (_is_octets(type.value_type) or pa.types.is_null(type.value_type)):
        wanted = "binary values, or lists of them" if single else "lists of binary values"
        raise TypeError(f"{wanted} are wanted, a message each; not {type}")
    values = array.values  # type: ignore[attr-defined]
    if lists and _is_plain(values.type):
        return array
    rows = (array.offset + np.arange(len(array) + 1)) * type.list_size if fixed else _offsets(array)
    return _lists(array, _as_binary(values), rows)


def _is_plain(type: ArrowType) -> bool:
    return bool(pa.types.is_binary(type) or pa.types.is_large_binary(type))


def _is_octets(type: ArrowType) -> bool:
    if pa.types.is_dictionary(type):
        return _is_octets(type.value_type)
    wide = (
        pa.types.is_large_binary(type)
        or pa.types.is_large_string(type)
        or pa.types.is_fixed_size_binary(type)
    )
    views = pa.types.is_binary_view(type) or pa.types.is_string_view(type)
    return bool(wide or views or pa.types.is_binary(type) or pa.types.is_string(type))


def _lists(array: pa.Array[Any], values: pa.Array[Any], rows: NDArray[Any]) -> pa.Array[Any]:
    """Return lists of `values`, null where `array` is null."""
    valid = buffer_of(np.packbits(_valid(array), bitorder="little")) if array.null_count else None
    bounds = buffer_of(rows.astype(np.int64))
    return pa.Array.from_buffers(pa.large_list(values.type), len(array), [valid, bounds], children=[values])


def open_source(lists: pa.Array[Any]) -> Source:
    """Return the positions of the octets of `lists`, an array returned by `as_lists`."""
    rows = _offsets(lists)
    values = lists.values  # type: ignore[attr-defined]
    bounds = _offsets(values)
    data = values.buffers()[2]
    octets = np.zeros(0, np.uint8) if data is None else numbers_in(data, np.uint8)
    unsure = ~_valid(lists) if lists.null_count else None
    if values.null_count:
        nulls = starts_of(~_valid(values))
        partly = nulls[rows[1:]] != nulls[rows[:-1]]
        unsure = partly if unsure is None else unsure | partly
    return Source(octets, bounds, rows, unsure)


def _as_binary(values: pa.Array[Any]) -> pa.Array[Any]:
    """Return values as binary; text needs no copy."""
    if _is_plain(values.type):
        return values
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        type = pa.binary() if pa.types.is_string(values.type) else pa.large_binary()
        return pa.Array.from_buffers(type, len(values), values.buffers(), offset=values.offset)
    if pa.types.is_dictionary(values.type):
        return _as_binary(values.dictionary_decode())  # type: ignore[attr-defined]
    if pa.types.is_string_view(values.type):
        values = values.cast(pa.binary_view())
    return values.cast(pa.large_binary())


def _offsets(array: pa.Array[Any]) -> NDArray[Any]:
    """Return the offsets of a list array or a binary array."""
    wide = pa.types.is_large_list(array.type) or pa.types.is_large_binary(array.type)
    dtype = np.int64 if wide else np.int32
    if not len(array):
        return np.zeros(1, dtype)
    return numbers_in(array.buffers()[1], dtype)[array.offset : array.offset + len(array) + 1]


def _valid(array: pa.Array[Any]) -> Mask:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False), bool)
