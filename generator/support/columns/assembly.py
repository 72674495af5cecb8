"""Frames of whole messages: parts that are present, flags, frame ends, and the order of rows.

The octets of all frames of a message follow each other, and so do the messages. They are joined
once, from the components of every part. The rest is arithmetic: how many frames each message has,
and how many octets each frame has. Each message type is written separately and raw frames are
copied; at the end, one ``take`` puts all rows in order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from specwire.generated.columns.arrow import Mask, Whole, buffer_of, either, ranges, starts_of
from specwire.generated.columns.building import scattered
from specwire.generated.columns.frames import Frames
from specwire.generated.columns.intake import elements, field_of, integers_of, plain, there
from specwire.generated.columns.pieces import Component, Pieces, concatenated, joined, pieces_of, total_width
from specwire.generated.columns.slots import values_of
from specwire.generated.columns.values import beginning
from specwire.generated.columns.writer import Scope, spread
from specwire.generated.named_plan import NamedMessage
from specwire.generated.plan import ManyFrames, OneFrame, Part

FRAMES: Any = pa.list_(pa.binary())
T = TypeVar("T", bound=np.generic)


@dataclass(slots=True)
class _Parts:
    """Output of the parts of a message so far."""

    components: list[Component] = field(default_factory=list)
    counts: list[Whole | int] = field(default_factory=list)
    """For each part, the number of frames of each row."""
    sizes: list[Whole | int] = field(default_factory=list)
    """For each part, the number of octets of each frame."""
    wrong: Mask | None = None


def write_messages(
    message: NamedMessage, announcing: int, array: pa.Array[Any], scope: Scope
) -> tuple[Frames, Mask | None]:
    """Return the frames of the messages in a struct array without nulls, and the wrong rows.

    `announcing` holds the bits of the flags that announce parts.
    """
    writing = _Writing(message, announcing, array, scope)
    parts = _Parts(wrong=writing.contradictions())
    for part in message.parts:
        if isinstance(part, OneFrame):
            writing.frame(parts, part)
        else:
            writing.frames(parts, part)
    counts, sizes = _in_order(parts, len(array))
    return frames_of(joined(parts.components, len(array)), counts, sizes), parts.wrong


def frames_of(rows: Pieces, counts: Whole, sizes: Whole, known: Mask | None = None) -> Frames:
    """Return the frames of rows, from their number in each row and the size of each frame."""
    octets = rows.octets
    return Frames(octets, buffer_of(octets), starts_of(sizes), starts_of(counts), known=known)


class _Writing:
    """Writing of the messages in a struct array."""

    def __init__(self, message: NamedMessage, announcing: int, array: pa.Array[Any], scope: Scope) -> None:
        self.message = message
        self.class_name = message.layout.class_name
        self.announcing = announcing
        self.array = array
        self.scope = scope

    def column(self, slot: str) -> pa.Array[Any]:
        """Return the column of a slot."""
        return plain(field_of(self.array, self.message.fields[slot].name))

    def there(self, part: Part) -> Mask | None:
        """Return the mask of rows in which a part is present; None if it always is."""
        first = next(iter(values_of(part)), None)
        return None if part.presence.kind == "always" or first is None else there(self.column(first.slot))

    def contradictions(self) -> Mask | None:
        """Return the mask of rows whose parts exclude each other or contradict the flags."""
        wrong: Mask | None = None
        absent: Mask | None = None
        readings: dict[int, Whole] = {}
        for part in self.message.parts:
            now = self.there(part)
            if now is None:
                continue
            if self.scope.strict and part.letter:
                # An empty stack may then be omitted with its bit, which the row codec does.
                wrong = either(wrong, ~now if part.letter == "required" else now)
            if part.presence.kind == "counted":
                wrong = either(wrong, None if absent is None else absent & now)
                absent = either(absent, ~now)
            elif isinstance(part, OneFrame):
                mask = part.presence.mask
                readings[mask] = readings.get(mask, np.zeros(len(self.array), np.uint8)) + now
        return either(wrong, *(masks > 1 for masks in readings.values()), self._wrong_flags())

    def announced(self) -> Whole:
        """Return the flag bits that announce the parts present in each message."""
        bits = np.zeros(len(self.array), np.uint8)
        for part in self.message.parts:
            now = self.there(part)
            bits |= np.uint8(part.presence.value) * (np.uint8(1) if now is None else now)
        return bits

    def _wrong_flags(self) -> Mask | None:
        """Return the mask of rows whose flags announce other parts than are present."""
        if self.message.flags is None or not self.announcing:
            return None
        said = self.column(self.message.flags[1].slot)
        now = there(said)
        values, _ = integers_of(said.drop_null(), 255)
        return _expanded((values & self.announcing) != self.announced()[now], now)

    def frame(self, parts: _Parts, part: OneFrame) -> None:
        """Write one frame in the rows in which it is present."""
        now = self.there(part)
        if now is not None and not now.any():
            return
        if now is None or now.all():
            components, wrong = self.scope.struct(self.class_name, part.body, self.array)
            parts.counts.append(1)
            parts.sizes.append(total_width(components))
        else:
            known, few = pa.array(now), int(np.count_nonzero(now))
            written = self.scope.body(part.body, lambda slot: self.column(slot).filter(known), few)
            parts.counts.append(now.astype(np.int64))
            parts.sizes.append(np.broadcast_to(np.asarray(total_width(written[0]), np.int64), few))
            components, wrong = spread(written, now)
        parts.components += components
        parts.wrong = either(parts.wrong, wrong)

    def frames(self, parts: _Parts, part: ManyFrames) -> None:
        """Write frames with one value each, and the delimiter behind them if there is one."""
        column = self.column(part.slot)
        now = there(column)
        missing = ~now if part.presence.kind == "always" else None
        if not now.any():
            parts.wrong = either(parts.wrong, missing)
            return
        starts, values = elements(column.drop_null())
        components, wrong = self.scope.body(part.body, lambda slot: values, len(values))
        pieces = joined(components, len(values))
        sizes, counts = pieces.sizes, np.diff(starts)
        if part.delimiter is not None:
            wrong = either(wrong, (sizes == len(part.delimiter)) & beginning(pieces, part.delimiter))
            ended = np.full(len(sizes) + len(counts), len(part.delimiter))
            ended[np.arange(len(sizes)) + np.repeat(np.arange(len(counts)), counts)] = sizes
            sizes, counts = ended, counts + 1
        in_rows = None if wrong is None else _expanded(np.diff(starts_of(wrong)[starts]) > 0, now)
        parts.components.append(pieces.grouped(starts).spread(now))
        if part.delimiter:
            parts.components += spread(((part.delimiter,), None), now)[0]
        parts.counts.append(_expanded(counts, now))
        parts.sizes.append(sizes)
        parts.wrong = either(parts.wrong, missing, in_rows)


def announced(message: NamedMessage, array: pa.Array[Any], scope: Scope) -> int:
    """Return the flag bits that announce the parts present in the only message of an array."""
    return int(_Writing(message, 0, array, scope).announced()[0])


def _in_order(parts: _Parts, count: int) -> tuple[Whole, Whole]:
    """Return the number of frames of each row, and the sizes of all frames in order."""
    widths = [np.asarray(sizes, np.int64) for sizes in parts.sizes]
    if all(isinstance(counts, int) for counts in parts.counts):
        table = np.empty((count, len(widths)), np.int64)
        for column, width in enumerate(widths):
            table[:, column] = width
        return np.full(count, len(widths)), table.reshape(-1)
    each = [np.broadcast_to(np.asarray(counts, np.int64), (count,)) for counts in parts.counts]
    totals = np.sum(each, axis=0)
    at = starts_of(totals)
    sizes = np.empty(int(at[-1]), np.int64)
    begin = at[:-1].copy()
    for counts, width in zip(each, widths, strict=True):
        sizes[ranges(begin, counts)] = width
        begin += counts
    return totals, sizes


def _expanded(values: NDArray[T], now: Mask) -> NDArray[T]:
    """Return values of the rows where `now` is true for all rows, zero elsewhere."""
    return scattered(values, np.flatnonzero(now), len(now))


@dataclass(slots=True)
class Rows:
    """Rows under construction, from several sources."""

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

    def in_order(self) -> tuple[Frames, Mask | None]:
        """Return the frames of all rows in order, and which rows are not null (None: all)."""
        sources, known = self.sources, self.order >= 0
        if len(sources) == 1 and known.all() and not self.doubtful.any():
            return sources[0], None
        octets = concatenated([Pieces(source.bounds[source.rows], source.octets) for source in sources])
        none = [np.zeros(0, np.int64)]
        counts = np.concatenate(none + [np.diff(source.rows) for source in sources])
        sizes = np.concatenate(none + [np.diff(source.bounds) for source in sources])
        taken = np.zeros(len(known), np.int64)
        taken[known] = counts[self.order[known]]
        places = ranges(starts_of(counts)[np.where(known, self.order, 0)], taken)
        masks = [np.ones(len(s.bounds) - 1, np.bool_) if s.known is None else s.known for s in sources]
        some = any(source.known is not None for source in sources)
        order: Any = pa.array(self.order, mask=~known)
        frames_known = np.concatenate(masks)[places] if some else None
        ordered = frames_of(pieces_of(octets.take(order)), taken, sizes[places], frames_known)
        return ordered, None if known.all() else known


def raw_frames(column: pa.Array[Any]) -> Frames:
    """Return the frames of an array of lists without nulls; single frames may be null."""
    starts, values = elements(column)
    values = plain(values)
    known = there(values) if values.null_count else None
    if known is not None:
        values = values.fill_null(b"") if not pa.types.is_null(values.type) else pa.array([b""] * len(values))
    pieces = pieces_of(values)
    return frames_of(pieces.grouped(starts), np.diff(starts), pieces.sizes, known)


def as_lists(frames: Frames, known: Mask | None) -> pa.ListArray[Any]:
    """Return rows of frames as an Arrow array of lists; rows that are not `known` are null."""
    nulls = None if frames.known is None else pa.array(frames.known).buffers()[1]
    buffers = [nulls, buffer_of(frames.bounds.astype(np.int32)), frames.buffer]
    values = pa.Array.from_buffers(pa.binary(), len(frames.bounds) - 1, buffers)
    starts: Any = pa.array(frames.rows.astype(np.int32))
    mask: Any = None if known is None else pa.array(~known)
    found: pa.ListArray[Any] = pa.ListArray.from_arrays(starts, values, type=FRAMES, mask=mask)
    return found


def one_array(chunks: list[pa.ListArray[Any]]) -> pa.ListArray[Any]:
    """Return the rows of all chunks as one array."""
    found: Any = pa.concat_arrays(chunks) if chunks else pa.array([], FRAMES)
    return cast("pa.ListArray[Any]", found)
