"""Encoders of columns of whole messages: which parts are present, the flags, and the frame ends.

The octets of all frames of a message follow each other, and so do the messages. They are joined
once, from the components of every field of every part. The rest is arithmetic: how many frames each
message has, and how many octets each frame has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from specwire.generated.columns.intake import elements, field_of, integers, plain, there
from specwire.generated.columns.joining import joined
from specwire.generated.columns.pieces import (
    Component,
    Mask,
    Pieces,
    Whole,
    ranges,
    starts_of,
    total_width,
)
from specwire.generated.columns.writing import either
from specwire.generated.columns.writing_runs import Writer, spread
from specwire.generated.layout import (
    Field,
    Frame,
    MessageLayout,
    Part,
    ProtocolLayout,
    Rest,
    Stack,
)

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Frames:
    """Frames of some rows.

    Attributes:
        rows: octets of each row, frame after frame.
        counts: number of frames of each row.
        sizes: number of octets of each frame of all rows.
        known: false for frames that are null; None if there are none.
    """

    rows: Pieces
    counts: Whole
    sizes: Whole
    known: Mask | None = None


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
    layout: ProtocolLayout, entry: MessageLayout, array: pa.Array[Any], writer: Writer
) -> tuple[Frames, Mask | None]:
    """Return the frames of the messages in a struct array without nulls, and the mask of wrong rows."""
    parts = _Parts(wrong=_presence_faults(layout, entry, array, writer.strict))
    for part in entry.parts:
        if isinstance(part, Frame):
            _frame(parts, part, array, writer)
        else:
            _several(parts, part, array, writer)
    counts, sizes = _in_order(parts, len(array))
    return Frames(joined(parts.components, len(array)), counts, sizes), parts.wrong


def announced(entry: MessageLayout, array: pa.Array[Any]) -> Whole:
    """Return the flag bits that announce the parts present in each message."""
    bits = np.zeros(len(array), np.uint8)
    for part in entry.parts:
        if not isinstance(part, Rest):
            now = _there(part, array)
            bits |= np.uint8(part.presence.value) * (np.uint8(1) if now is None else now)
    return bits


def flags_field(entry: MessageLayout) -> Field | None:
    """Return the field whose bits announce parts, or None."""
    fields = (one for part in entry.parts if isinstance(part, Frame) for one in part.fields)
    return next((one for one in fields if one.flags), None)


def _presence_faults(
    layout: ProtocolLayout, entry: MessageLayout, array: pa.Array[Any], strict: bool
) -> Mask | None:
    """Return the mask of rows whose parts exclude each other or contradict the flags."""
    wrong: Mask | None = None
    absent: Mask | None = None
    readings: dict[int, Whole] = {}
    for part in entry.parts:
        now = _there(part, array)
        if now is None or isinstance(part, Rest):
            continue
        if strict and part.letter:
            # An empty stack may then be omitted together with its bit, which the row codec does.
            wrong = either(wrong, ~now if part.letter == "required" else now)
        if part.presence.kind == "counted":
            wrong = either(wrong, None if absent is None else absent & now)
            absent = either(absent, ~now)
        elif isinstance(part, Frame):
            mask = part.presence.mask
            readings[mask] = readings.get(mask, np.zeros(len(array), np.uint8)) + now
    return either(wrong, *(masks > 1 for masks in readings.values()), _flags_faults(layout, entry, array))


def _flags_faults(layout: ProtocolLayout, entry: MessageLayout, array: pa.Array[Any]) -> Mask | None:
    """Return the mask of rows whose flags announce other parts than are present."""
    flags = flags_field(entry)
    if flags is None or not layout.announcing:
        return None
    said = plain(field_of(array, flags.name))
    now = there(said)
    values, _ = integers(said.drop_null(), 255)
    other = (values & layout.announcing) != announced(entry, array)[now]
    return either(_among(other, now))


def _there(part: Part, array: pa.Array[Any]) -> Mask | None:
    """Return the mask of rows in which a part is present; None if it always is."""
    fields = part.fields if isinstance(part, Frame) else (part.field,)
    first = next((one for one in fields if not one.implied), None)
    if isinstance(part, Rest) or part.presence.kind == "always" or first is None:
        return None
    return there(plain(field_of(array, first.name)))


def _frame(parts: _Parts, part: Frame, array: pa.Array[Any], writer: Writer) -> None:
    now = _there(part, array)
    if now is None or now.all():
        written = writer.run(part.fields, lambda name: field_of(array, name), len(array))
        parts.counts.append(1)
        parts.sizes.append(total_width(written.components))
    elif not now.any():
        return
    else:
        known, few = pa.array(now), int(np.count_nonzero(now))
        written = writer.run(part.fields, lambda name: field_of(array, name).filter(known), few)
        parts.counts.append(now.astype(np.int64))
        parts.sizes.append(np.broadcast_to(np.asarray(total_width(written.components), np.int64), (few,)))
        written = spread(written, now)
    parts.components += written.components
    parts.wrong = either(parts.wrong, written.wrong)


def _several(parts: _Parts, part: Stack | Rest, array: pa.Array[Any], writer: Writer) -> None:
    """Write the frames of a stack with the empty frame behind them, or all remaining frames."""
    column = plain(field_of(array, part.field.name))
    now = there(column)
    missing = ~now if isinstance(part, Rest) or part.presence.kind == "always" else None
    if not now.any():
        parts.wrong = either(parts.wrong, missing)
        return
    starts, values = elements(column.drop_null())
    written = writer.value(part.field.type, values)
    pieces = joined(written.components, len(values))
    sizes, counts, wrong = pieces.sizes, np.diff(starts), written.wrong
    if isinstance(part, Stack):
        wrong = either(wrong, sizes == 0)
        behind = np.repeat(np.arange(len(counts)), counts)
        ended = np.zeros(len(sizes) + len(counts), np.int64)
        ended[np.arange(len(sizes)) + behind] = sizes
        sizes, counts = ended, counts + 1
    in_rows = None if wrong is None else _among(np.diff(starts_of(wrong)[starts]) > 0, now)
    parts.components.append(pieces.grouped(starts).spread(now))
    parts.counts.append(_among(counts, now))
    parts.sizes.append(sizes)
    parts.wrong = either(parts.wrong, missing, in_rows)


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


def _among(values: NDArray[T], now: Mask) -> NDArray[T]:
    """Expand values of the rows where `now` is true to all rows, zero elsewhere."""
    found = np.zeros(len(now), values.dtype)
    found[now] = values
    return found
