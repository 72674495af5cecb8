"""Rows of frames under construction: from several sources, in any order, to Arrow lists.

Each message type is written separately and raw frames are copied. This module puts all of them in
row order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pyarrow as pa

from specwire.generated.columns.intake import elements, plain, there
from specwire.generated.columns.joining import concatenated
from specwire.generated.columns.pieces import Mask, Whole, as_buffer, pieces_of, ranges, starts_of
from specwire.generated.columns.writing_parts import Frames

FRAMES: Any = pa.list_(pa.binary())

_NONE = np.zeros(0, np.int64)


@dataclass(slots=True)
class Rows:
    """Rows under construction."""

    which: Whole
    """Message number of each row, -1 for none."""
    order: Whole
    """Position of each row among all written rows; -1 if the row is null."""
    doubtful: Mask
    sources: list[Frames] = field(default_factory=list)
    written: int = 0

    def add(self, frames: Frames, places: Whole) -> None:
        """Store `frames` as the rows at `places`, replacing earlier ones."""
        self.order[places] = np.arange(self.written, self.written + len(places))
        self.written += len(places)
        self.sources.append(frames)


def in_order(rows: Rows) -> tuple[Frames, Mask | None]:
    """Return the frames of all rows in order, and which rows are not null (None: all)."""
    known = rows.order >= 0
    if len(rows.sources) == 1 and known.all() and not rows.doubtful.any():
        return rows.sources[0], None
    octets = concatenated([source.rows for source in rows.sources])
    counts = np.concatenate([_NONE, *(source.counts for source in rows.sources)])
    sizes = np.concatenate([_NONE, *(source.sizes for source in rows.sources)])
    taken = np.zeros(len(known), np.int64)
    taken[known] = counts[rows.order[known]]
    places = ranges(starts_of(counts)[np.where(known, rows.order, 0)], taken)
    each = [
        np.ones(len(source.sizes), np.bool_) if source.known is None else source.known
        for source in rows.sources
    ]
    some = any(source.known is not None for source in rows.sources)
    order: Any = pa.array(rows.order, mask=~known)
    ordered = Frames(
        rows=pieces_of(octets.take(order)),
        counts=taken,
        sizes=sizes[places],
        known=np.concatenate(each)[places] if some else None,
    )
    return ordered, None if known.all() else known


def raw_frames(column: pa.Array[Any]) -> Frames:
    """Return the frames of an array of lists without nulls; single frames may be null."""
    starts, values = elements(column)
    values = plain(values)
    known = there(values) if values.null_count else None
    if known is not None:
        values = values.fill_null(b"") if not pa.types.is_null(values.type) else pa.array([b""] * len(values))
    pieces = pieces_of(values)
    return Frames(pieces.grouped(starts), np.diff(starts), pieces.sizes, known)


def as_lists(frames: Frames, known: Mask | None) -> pa.ListArray[Any]:
    """Return rows of frames as an Arrow array of lists; rows that are not `known` are null."""
    nulls = None if frames.known is None else pa.array(frames.known).buffers()[1]
    ends = starts_of(frames.sizes).astype(np.int32)
    buffers = [nulls, as_buffer(ends), as_buffer(frames.rows.octets)]
    values = pa.Array.from_buffers(pa.binary(), len(frames.sizes), buffers)
    starts: Any = pa.array(starts_of(frames.counts).astype(np.int32))
    mask: Any = None if known is None else pa.array(~known)
    found: pa.ListArray[Any] = pa.ListArray.from_arrays(starts, values, type=FRAMES, mask=mask)
    return found


def one_array(chunks: list[pa.ListArray[Any]]) -> pa.ListArray[Any]:
    """Return the rows of all chunks as one array."""
    found: Any = pa.concat_arrays(chunks) if chunks else pa.array([], FRAMES)
    return cast("pa.ListArray[Any]", found)


def chunked(chunks: list[pa.ListArray[Any]]) -> pa.ChunkedArray[Any]:
    """Return the rows of all chunks as a chunked array."""
    found: pa.ChunkedArray[Any] = pa.chunked_array(chunks, FRAMES)
    return found
