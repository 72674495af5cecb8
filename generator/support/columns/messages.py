"""Reader for all rows of one message: which frame holds each part, and the values in it.

The counterpart of `specwire.generated.refusal` for whole columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from specwire.generated.columns.arrow import ArrowType
from specwire.generated.columns.building import Column, Many, Nulls, Present, spread
from specwire.generated.columns.frames import Frames, Mask, Positions
from specwire.generated.columns.lists import ramp
from specwire.generated.columns.plan import field_types, make_reader, make_steps, octets_of
from specwire.generated.columns.readers import KeywordReader, Reader, Single, Step, Steps
from specwire.generated.columns.runs import Run
from specwire.generated.layout import (
    Field,
    Frame,
    Keyword,
    MessageLayout,
    Part,
    Presence,
    ProtocolLayout,
    Rest,
    Stack,
    Text,
)

ALWAYS = Presence()


class Walk:
    """Position of some rows in their frames.

    `at` is the next frame, `end` is one past the last frame, and `ok` is as in `Run`.
    """

    __slots__ = ("at", "columns", "end", "flags", "frames", "ok")

    def __init__(self, frames: Frames, rows: Positions | None) -> None:
        self.frames = frames
        self.at = frames.rows[:-1] if rows is None else frames.rows[rows]
        self.end = frames.rows[1:] if rows is None else frames.rows[rows + 1]
        self.ok: Mask = np.ones(len(self.at), bool)
        self.flags = np.zeros(0, np.uint8)
        self.columns: list[Column] = []

    def __len__(self) -> int:
        return len(self.at)

    def refuse(self, mask: Mask) -> None:
        """Mark the rows of `mask` as not fitting; they have no frames from now on."""
        if mask.any():
            self.ok = self.ok & ~mask
            self.at, self.end = np.where(mask, 0, self.at), np.where(mask, 0, self.end)

    def run(self, frames: Positions, *, ascending: bool = True) -> Run:
        """Return the octets of frames, by frame number."""
        begin, end, step = self.frames.extents(frames, ascending=ascending)
        return Run(self.frames, begin, end, step=step)

    def next_frame(self) -> Run:
        """Return the next frame of each row and advance past it."""
        missing = self.at >= self.end
        if not missing.any():
            run = self.run(self.at, ascending=bool(self.ok.all()))
            self.at = self.at + 1
            return run
        self.refuse(missing)
        run = self.run(self.at, ascending=False)
        run.refuse(missing)
        self.at = np.where(self.ok, self.at + 1, 0)
        return run

    def part(self, rows: Positions) -> Walk:
        """Return a separate walk over some rows; `join` merges it back."""
        found = Walk(self.frames, np.zeros(0, np.int64))
        found.at, found.end, found.ok = self.at[rows], self.end[rows], self.ok[rows]
        return found

    def join(self, rows: Positions, part: Walk) -> None:
        """Continue in `rows` at the position of `part`."""
        at = self.at.copy()
        at[rows] = part.at
        self.at = at
        self.columns += [spread(column, rows, len(self)) for column in part.columns]
        lost = np.zeros(len(self), bool)
        lost[rows] = ~part.ok
        self.refuse(lost)


PartReader = Callable[[Walk], None]


@dataclass(frozen=True, slots=True)
class FrameReader:
    """Reader of one frame and its fields."""

    steps: Steps

    def __call__(self, walk: Walk) -> None:
        run = walk.next_frame()
        walk.columns += self.steps.read_fields(run)
        run.refuse(run.at != run.end)
        if run.parked:
            walk.refuse(~run.ok)


@dataclass(frozen=True, slots=True)
class FramesReader:
    """Reader of a stack of frames up to an empty one, or of all remaining frames."""

    element: Reader
    stacked: bool
    words: bool
    """Elements are text that may end with NUL. In a stack, an element without NUL must not be empty."""
    type: ArrowType

    def __call__(self, walk: Walk) -> None:
        ends = self._delimiters(walk) if self.stacked else walk.end
        counts = ends - walk.at
        numbers = np.repeat(walk.at, counts) + ramp(counts)
        run = walk.run(numbers)
        column = self.element.read(run)
        run.refuse(run.at != run.end)
        if self.stacked and self.words:
            begin, end = walk.frames.bounds[numbers], walk.frames.bounds[numbers + 1]
            alone = np.flatnonzero(end - begin == 1)
            run.refuse_at(alone[walk.frames.octets[begin[alone]] == 0])
        walk.columns.append(Many(counts, column, self.type))
        walk.at = np.where(walk.ok, ends + self.stacked, 0)
        if not run.ok.all():
            lost = np.zeros(len(walk), bool)
            lost[np.repeat(np.arange(len(walk)), counts)[~run.ok]] = True
            walk.refuse(lost)

    def _delimiters(self, walk: Walk) -> Positions:
        """Return the number of the empty frame that ends each stack."""
        bounds = walk.frames.bounds
        empty = np.append(np.flatnonzero(bounds[1:] == bounds[:-1]), len(bounds))
        ends = empty[np.searchsorted(empty, walk.at)]
        walk.refuse(ends >= walk.end)
        return np.where(walk.ok, ends, 0)


@dataclass(frozen=True, slots=True)
class SometimesReader:
    """Reader of a part announced by flags, or present if there are more frames than `after` needs."""

    reader: PartReader
    presence: Presence
    after: int
    types: tuple[ArrowType, ...]
    """Types of its columns."""

    def __call__(self, walk: Walk) -> None:
        if self.presence.kind == "announced":
            there = walk.flags & self.presence.mask == self.presence.value
        else:
            there = walk.end - walk.at > self.after
        if there.all() and len(there):
            self.reader(walk)
            return
        if not there.any():
            walk.columns += [Nulls(len(walk), type) for type in self.types]
            return
        rows = np.flatnonzero(there)
        part = walk.part(rows)
        self.reader(part)
        walk.join(rows, part)


@dataclass(frozen=True, slots=True)
class FlagsReader:
    """Reader of the octet that says which parts are present: its position and its allowed bits."""

    index: int
    last: bool
    offset: int
    allowed: tuple[tuple[int, tuple[int, ...]], ...]
    absent: int

    def __call__(self, walk: Walk) -> None:
        frame = walk.end - 1 if self.last else walk.at + self.index
        walk.refuse((walk.at >= walk.end) | (frame >= walk.end))
        sure = bool(walk.ok.all())
        run = walk.run(frame if sure else np.where(walk.ok, frame, 0), ascending=sure)
        run.at = run.at + self.offset
        walk.flags = flags = run.record(1)[:, 0]
        wrong = ~run.ok
        if self.absent:
            wrong |= flags & self.absent != 0
        for mask, values in self.allowed:
            bits = flags & mask
            fits = bits == values[0]
            for value in values[1:]:
                fits |= bits == value
            wrong |= ~fits
        walk.refuse(wrong)


@dataclass(frozen=True, slots=True)
class MessageReader:
    """Reader of all parts of a message."""

    name: str
    flags: FlagsReader | None
    parts: tuple[PartReader, ...]

    def read(self, frames: Frames, rows: Positions | None) -> tuple[Mask, list[Column]]:
        """Return the mask of rows that fit, and the columns; these are valid only if all rows fit."""
        walk = Walk(frames, rows)
        if not len(frames.bounds) > 1:
            return np.zeros(len(walk), bool), []
        if self.flags:
            self.flags(walk)
        for part in self.parts:
            part(walk)
        walk.refuse(walk.at != walk.end)
        return walk.ok, walk.columns or [Present(len(walk))]


def make_message(layout: ProtocolLayout, message: MessageLayout, type: ArrowType) -> MessageReader:
    """Return the reader of a message into a struct of `type`."""
    fields = [(part, field) for part in message.parts for field in fields_of(part)]
    arrow = iter([type for _, type in field_types([field for _, field in fields], type)])
    readers: list[PartReader] = []
    for index, part in enumerate(message.parts):
        typed = [(field, next(arrow)) for field in fields_of(part)]
        reader = _make_part(part, typed, _checked(layout, index, len(message.parts)))
        if not isinstance(part, Rest) and part.presence.kind != "always":
            types = tuple(type for _, type in typed if type is not None)
            reader = SometimesReader(reader, part.presence, _required_after(message, index), types)
        readers.append(reader)
    return MessageReader(message.class_name, _make_flags(layout, message), tuple(readers))


def fields_of(part: Part) -> tuple[Field, ...]:
    """Return the fields of a part."""
    return part.fields if isinstance(part, Frame) else (part.field,)


def _checked(layout: ProtocolLayout, index: int, parts: int) -> int | None:
    """Return how many octets of part `index` message selection has compared; None: the whole frame."""
    found = [octets for frame, octets in layout.selectors if frame in (index, index - parts)]
    patterned = any(message.patterns for message in layout.messages)
    return 0 if patterned or not found else found[0]


def _make_part(part: Part, fields: list[tuple[Field, ArrowType | None]], checked: int | None) -> PartReader:
    field, arrow = fields[0]
    if not isinstance(part, Frame):
        assert arrow is not None
        words = isinstance(field.type, Text) and field.type.terminated
        element = make_reader(field.type, arrow.value_type)
        return FramesReader(element, isinstance(part, Stack), words, arrow)
    if isinstance(field.type, Keyword):
        options = tuple(option.encode() for option in field.type.options)
        steps: tuple[Step, ...] = (Single(KeywordReader(options, checked is None)),)
        return FrameReader(Steps(steps))
    known = octets_of(field.type) if checked is None else checked
    return FrameReader(make_steps(fields, checked=known, frame=True))


def _required_after(message: MessageLayout, index: int) -> int:
    """Return the minimum number of frames of the parts after part `index`."""
    behind = [part for part in message.parts[index + 1 :] if not isinstance(part, Rest)]
    return sum(part.presence.kind == "always" for part in behind)


def _make_flags(layout: ProtocolLayout, message: MessageLayout) -> FlagsReader | None:
    for index, part in enumerate(message.parts):
        offset = 0
        for field in part.fields if isinstance(part, Frame) else ():
            if field.flags:
                return _flags_at(layout, message, index, offset)
            offset += octets_of(field.type)
    return None


def _flags_at(layout: ProtocolLayout, message: MessageLayout, index: int, offset: int) -> FlagsReader:
    allowed: dict[int, set[int]] = {}
    for part in message.parts:
        if not isinstance(part, Rest) and part.presence.mask:
            values = allowed.setdefault(part.presence.mask, set())
            values.add(part.presence.value)
            if part.presence.kind == "announced":
                values.add(0)
    known = 0
    for mask in allowed:
        known |= mask
    # One bit that may be 0 or 1 needs no check.
    rows = tuple((mask, tuple(values)) for mask, values in allowed.items() if values != {0, mask & -mask})
    return FlagsReader(index, index == len(message.parts) - 1, offset, rows, layout.announcing & ~known)
