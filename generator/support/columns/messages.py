"""Reader for all rows of one message: which frame holds each part, and the values in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from specwire.generated.columns.arrow import Mask, Positions, ranges
from specwire.generated.columns.building import Column, Many, Nulls, present, spread
from specwire.generated.columns.frames import Frames
from specwire.generated.columns.reader import LARGEST, Reader
from specwire.generated.columns.runs import Run, differs, gather
from specwire.generated.columns.slots import Records, values_of
from specwire.generated.layout import ProtocolLayout
from specwire.generated.named_plan import NamedMessage
from specwire.generated.plan import (
    Fixed,
    ManyFrames,
    Part,
    TakeText,
    Word,
    flag_values,
)


class Walk:
    """Position of some rows in their frames, and the columns read so far.

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


@dataclass(frozen=True, slots=True)
class Flags:
    """Place of the octet that says which parts are present, and its allowed bits."""

    index: int
    last: bool
    offset: int | None
    """None if it varies; such messages are read one by one."""
    allowed: tuple[tuple[int, tuple[int, ...]], ...]
    """Masks, and the values that each may have."""
    absent: int
    """Bits that announce no part of the message."""

    def read(self, walk: Walk) -> None:
        """Store the flags of each row in `walk`; refuse rows that announce other parts."""
        if self.offset is None:
            walk.flags = np.zeros(len(walk), np.uint8)
            walk.refuse(np.ones(len(walk), bool))
            return
        frame = walk.end - 1 if self.last else walk.at + self.index
        walk.refuse((walk.at >= walk.end) | (frame >= walk.end))
        sure = bool(walk.ok.all())
        run = walk.run(frame if sure else np.where(walk.ok, frame, 0), ascending=sure)
        start = run.forward(self.offset + 1) + self.offset
        start = np.where(run.ok, start, 0) if run.parked else start
        walk.flags = flags = gather(walk.frames.octets, start, 1, run.step)[:, 0]
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


class MessageReader:
    """Reader of all parts of a message."""

    def __init__(self, layout: ProtocolLayout, message: NamedMessage, records: Records) -> None:
        self.message = message
        self.records = records
        self.flags = _flags(layout, message)
        self.known = [_known(layout, message.parts, index) for index in range(len(message.parts))]

    def read(self, frames: Frames, rows: Positions | None) -> tuple[Mask, list[Column]]:
        """Return the mask of rows that fit, and the columns; these are valid only if all rows fit."""
        walk = Walk(frames, rows)
        if not len(frames.bounds) > 1:
            return np.zeros(len(walk), bool), []
        if self.flags:
            self._read_flags(walk, self.flags)
        for index in range(len(self.message.parts)):
            self._part(walk, index)
        walk.refuse(walk.at != walk.end)
        return walk.ok, walk.columns or [present(len(walk))]

    def _read_flags(self, walk: Walk, flags: Flags) -> None:
        """Read the flags; a delimiter may come before their frame."""
        first = self.message.parts[0]
        if flags.last or flags.index == 0 or not isinstance(first, ManyFrames) or first.delimiter is None:
            flags.read(walk)
            return
        behind = walk.part(np.arange(len(walk)))
        behind.at = _delimiters(behind, first.delimiter)
        flags.read(behind)
        walk.flags = behind.flags
        walk.refuse(~behind.ok)

    def _part(self, walk: Walk, index: int) -> None:
        """Read a part where it is present."""
        part = self.message.parts[index]
        presence = part.presence
        match presence.kind:
            case "always":
                there = np.ones(len(walk), bool)
            case "announced":
                there = walk.flags & presence.mask == presence.value
            case "counted":
                there = walk.end - walk.at > self.message.required_after[index]
        if (presence.kind == "always" or there.all()) and len(there):
            self._read(walk, part, self.known[index])
        elif there.any():
            rows = np.flatnonzero(there)
            some = walk.part(rows)
            self._read(some, part, self.known[index])
            walk.join(rows, some)
        else:
            walk.columns += [Nulls(len(walk)) for _ in values_of(part)]

    def _read(self, walk: Walk, part: Part, known: int) -> None:
        if isinstance(part, ManyFrames):
            self._several(walk, part)
            return
        reader = Reader(walk.next_frame(), self.records, known=known)
        reader.visit(part.body)
        reader.run.refuse(reader.run.at != reader.run.end)
        walk.columns += reader.columns
        if reader.run.parked:
            walk.refuse(~reader.run.ok)

    def _several(self, walk: Walk, part: ManyFrames) -> None:
        """Read frames up to the delimiter, or all that remain."""
        ends = walk.end if part.delimiter is None else _delimiters(walk, part.delimiter)
        counts = ends - walk.at
        numbers = ranges(walk.at, counts)
        run = walk.run(numbers)
        reader = Reader(run, self.records)
        reader.visit(part.body)
        run.refuse(run.at != run.end)
        if part.delimiter is not None and any(isinstance(op, TakeText) and op.terminated for op in part.body):
            # Without its NUL, such a text would be the delimiter.
            run.refuse_at(np.flatnonzero(_filled(walk.frames, part.delimiter + b"\0")[numbers]))
        walk.columns.append(Many(counts, reader.columns[0]))
        walk.at = np.where(walk.ok, ends + part.delimited, 0)
        if not run.ok.all():
            lost = np.zeros(len(walk), bool)
            lost[np.repeat(np.arange(len(walk)), counts)[~run.ok]] = True
            walk.refuse(lost)


def _delimiters(walk: Walk, delimiter: bytes) -> Positions:
    """Return the number of the frame `delimiter` that ends the frames of each row."""
    found = np.append(np.flatnonzero(_filled(walk.frames, delimiter)), len(walk.frames.bounds))
    ends = found[np.searchsorted(found, walk.at)]
    walk.refuse(ends >= walk.end)
    return np.where(walk.ok, ends, 0)


def _filled(frames: Frames, octets: bytes) -> Mask:
    """Return the mask of frames that are exactly `octets`."""
    fits: Mask = np.diff(frames.bounds) == len(octets)
    if octets and fits.any():
        begin = np.where(fits, frames.bounds[:-1], 0)
        fits &= ~differs(gather(frames.octets, begin, len(octets)), octets)
    return fits


def _known(layout: ProtocolLayout, parts: Sequence[Part], index: int) -> int:
    """Return how many octets of part `index` message selection has compared."""
    part = parts[index]
    compared = not layout.folded and not any(message.patterns for message in layout.messages)
    if not compared or not isinstance(part.body[0], Fixed | Word):
        return 0
    found = [octets for frame, octets in layout.selectors if frame in (index, index - len(parts))]
    octets = found[0] if found else 0
    return LARGEST if octets is None else octets


def _flags(layout: ProtocolLayout, message: NamedMessage) -> Flags | None:
    if message.flags is None:
        return None
    index, _, offset = message.flags
    return Flags(index, index == len(message.parts) - 1, offset, *_bits(layout, message.parts))


def _bits(
    layout: ProtocolLayout, parts: Sequence[Part]
) -> tuple[tuple[tuple[int, tuple[int, ...]], ...], int]:
    """Return the allowed values of each mask of the flags, and the bits that announce no part."""
    allowed, absent = flag_values(parts, layout.announcing)
    # One bit that may be 0 or 1 needs no check.
    rows = tuple((mask, tuple(values)) for mask, values in allowed.items() if values != {0, mask & -mask})
    return rows, absent
