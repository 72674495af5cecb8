# Written by specwire from generator/support/columns/lists.py. Do not edit; change that file and run `make generate`.
"""Readers of lists and dictionaries: all rows read their next element together.

An element's position is known only after the previous one was read. So all rows advance in step,
and rows that are finished drop out. The elements are then put in row order and read as rows
themselves. Elements of fixed size need no such walk.

With a few rows of very many elements, each step would read few elements. Those rows are left to the
row codec.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from specwire.generated.columns import native
from specwire.generated.columns.arrow import ArrowType, buffer_of
from specwire.generated.columns.building import (
    Column,
    Many,
    Present,
    Slices,
    Struct,
    copied,
)
from specwire.generated.columns.frames import Mask, Positions
from specwire.generated.columns.readers import OctetsReader, Reader, TextReader
from specwire.generated.columns.runs import Run
from specwire.generated.layout import Text

PATIENCE = 64
"""Number of elements that rows read in step, however few rows remain."""
EQUALS = ord("=")
FEW = 32
"""Number of rows below which reading in step stops after `PATIENCE` elements."""


def ramp(counts: Positions) -> Positions:
    """Return the integers from 0 up to each of `counts`, concatenated."""
    first = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(first, counts)


def read_count(run: Run, octets: int, minimum: int) -> Positions | None:
    """Read the number of elements, each at least `minimum` octets; None if the run's end ends the list."""
    if not octets:
        return None
    counts = run.size(octets)
    if minimum:
        run.refuse(counts < minimum)
        counts = np.where(run.ok, counts, 0)
    return counts


def walk(
    run: Run, counts: Positions | None, step: Callable[[Run], tuple[Positions, ...]]
) -> tuple[Positions, tuple[Positions, ...]]:
    """Read the elements of every row, one for each call of `step`, and advance past them.

    Returns:
        The number of elements of each row, and the results of `step` in row order.
    """
    active = np.flatnonzero(run.at < run.end) if counts is None else np.flatnonzero(counts)
    part = run.part(active)
    taken = np.zeros(len(run), np.int64)
    at, lost = run.at.copy(), np.zeros(len(run), bool)
    found: list[tuple[Positions, ...]] = []
    owners: list[Positions] = []
    while len(active):
        if len(found) >= PATIENCE and len(active) < FEW:
            lost[active] = True
            break
        found.append(step(part))
        owners.append(active)
        going: Mask = part.at < part.end if counts is None else counts[active] > len(found)
        going = going & part.ok
        if not going.all():
            done = active[~going]
            at[done], taken[done], lost[done] = part.at[~going], len(found), ~part.ok[~going]
            active, part = active[going], part.part(np.flatnonzero(going))
    taken[active] = len(found)
    run.at = at
    run.refuse(lost)
    return taken, _in_rows(taken, owners, found)


def read_entries(
    run: Run, counts: Positions | None, sides: tuple[TextReader | OctetsReader, ...]
) -> tuple[Positions, tuple[Positions, ...]]:
    """Read the entries of every row, a text or octets for each of `sides`; returns the same as `walk`."""
    if native.KERNELS is not None and all(map(_is_plain, sides)):
        return _read_natively(run, counts, sides)

    def entry(part: Run) -> tuple[Positions, ...]:
        found = [side.read(part) for side in sides]
        return () if run.skim else tuple(p for slices in found for p in (slices.start, slices.size))

    skim = run.skim
    count, found = walk(run, counts, entry)
    return count, found if found or skim else (np.zeros(0, np.int64),) * (2 * len(sides))


def _is_plain(side: TextReader | OctetsReader) -> bool:
    """Return whether a value is a length and that many octets, with no further checks."""
    type = side.type
    if type.span.kind != "prefix":
        return False
    return not type.terminated if isinstance(type, Text) else not type.minimum and type.maximum is None


def _read_natively(
    run: Run, counts: Positions | None, sides: tuple[TextReader | OctetsReader, ...]
) -> tuple[Positions, tuple[Positions, ...]]:
    widths = sides[0].type.span.octets, sides[1].type.span.octets if len(sides) > 1 else 0
    octets, begin = run.frames.octets, run.at
    run.at, taken, ok = native.walked(octets, begin, run.end, counts, widths)
    run.step = 0
    run.refuse(~ok)
    taken = np.where(ok, taken, 0)
    return taken, () if run.skim else native.filled(octets, begin, taken, widths)


def _in_rows(
    taken: Positions, owners: list[Positions], found: list[tuple[Positions, ...]]
) -> tuple[Positions, ...]:
    """Return the results for the first elements, the second ones and so on, in row order."""
    if len(found) == 1:
        return found[0]
    total = int(taken.sum())
    first = np.cumsum(taken) - taken
    places = [first[owner] + number for number, owner in enumerate(owners)]
    ordered: list[Positions] = []
    for pieces in zip(*found, strict=True):
        values = np.empty(total, np.int64)
        for place, piece in zip(places, pieces, strict=True):
            values[place] = piece
        ordered.append(values)
    return tuple(ordered)


@dataclass(frozen=True, slots=True)
class ListReader:
    """Reader of a list. `octets` is the size of an element if it is fixed."""

    count_octets: int
    minimum: int
    element: Reader
    octets: int
    type: ArrowType

    def read(self, run: Run) -> Column:
        """See `Reader`."""
        counts = read_count(run, self.count_octets, self.minimum)
        ends = run.end
        counts, starts = self._evenly(run, counts) if self.octets else self._in_step(run, counts)
        if not self.count_octets and self.minimum:
            run.refuse(counts < self.minimum)
        if run.skim:
            return Present(len(run))
        owners = np.repeat(np.arange(len(run)), counts)
        elements = Run(run.frames, starts, ends[owners])
        column = self.element.read(elements)
        if not elements.ok.all():
            run.refuse_at(owners[~elements.ok])
        return Many(counts, column, self.type)

    def _evenly(self, run: Run, counts: Positions | None) -> tuple[Positions, Positions]:
        room = run.left // self.octets
        if counts is None:
            run.refuse(run.left % self.octets != 0)
            counts = room
        else:
            run.refuse(counts > room)
        counts = np.where(run.ok, counts, 0)
        begin = run.at
        run.at = begin + counts * self.octets
        if run.skim:
            return counts, np.zeros(int(counts.sum()), np.int64)
        return counts, np.repeat(begin, counts) + ramp(counts) * self.octets

    def _in_step(self, run: Run, counts: Positions | None) -> tuple[Positions, Positions]:
        def skip(part: Run) -> tuple[Positions, ...]:
            start = part.at
            self.element.read(part)
            return (start,)

        skim, run.skim = run.skim, True
        taken, starts = walk(run, counts, skip)
        run.skim = skim
        return taken, starts[0] if starts else np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class PairsReader:
    """Reader of a dictionary whose names and values are separate."""

    count_octets: int
    minimum: int
    name: TextReader
    value: TextReader | OctetsReader
    type: ArrowType

    def read(self, run: Run) -> Column:
        """See `Reader`."""
        frames, counts = run.frames, read_count(run, self.count_octets, self.minimum)
        taken, found = read_entries(run, counts, (self.name, self.value))
        if not self.count_octets and self.minimum:
            run.refuse(taken < self.minimum)
        if run.skim:
            return Present(len(run))
        start, size, begin, length = found
        name = Slices(frames.octets, frames.buffer, start, size, True, self.name.type.terminated)
        text = pa.types.is_string(self.type.value_type.field(1).type)
        ended = isinstance(self.value, TextReader) and self.value.type.terminated
        value = Slices(frames.octets, frames.buffer, begin, length, text, ended)
        return Many(taken, Struct(len(start), (name, value), self.type.value_type), self.type)


@dataclass(frozen=True, slots=True)
class SplitReader:
    """Reader of a dictionary whose entries are texts, split at the first or last ``=``."""

    count_octets: int
    minimum: int
    entry: TextReader
    split: Literal["first", "last"]
    type: ArrowType

    def read(self, run: Run) -> Column:
        """See `Reader`."""
        counts = read_count(run, self.count_octets, self.minimum)
        taken, found = read_entries(run, counts, (self.entry,))
        if not self.count_octets and self.minimum:
            run.refuse(taken < self.minimum)
        if run.skim:
            return Present(len(run))
        start, size = found
        return Many(taken, self._divided(run, taken, start, size), self.type)

    def _divided(self, run: Run, taken: Positions, start: Positions, size: Positions) -> Struct:
        """Return the name and value of each entry; refuse entries without ``=``."""
        frames, count = run.frames, len(start)
        if native.KERNELS is not None:
            octets, buffer, begin, end = frames.octets, frames.buffer, start, start + size
            equals = native.divided(octets, start, size, EQUALS, last=self.split == "last")
            undivided = equals < 0
        else:
            ends, octets, _ = copied(frames.octets, frames.buffer, start, size)
            buffer, begin, end = buffer_of(octets), ends[:-1].astype(np.int64), ends[1:].astype(np.int64)
            equals, undivided = self._search(np.flatnonzero(octets == EQUALS), begin, end)
        if undivided.any():
            run.refuse_at(np.repeat(np.arange(len(run)), taken)[undivided])
        ended = self.entry.type.terminated
        name = Slices(octets, buffer, begin, equals - begin, True, ended)
        value = Slices(octets, buffer, equals + 1, end - equals - 1, True, ended)
        return Struct(count, (name, value), self.type.value_type)

    def _search(self, equals: Positions, begin: Positions, end: Positions) -> tuple[Positions, Mask]:
        """Return where each entry is split, and the mask of entries without ``=``."""
        if len(equals) == len(begin) and bool(((equals >= begin) & (equals < end)).all()):
            return equals, np.zeros(len(begin), bool)
        if not len(equals):
            return begin, np.ones(len(begin), bool)
        first = self.split == "first"
        number = np.searchsorted(equals, begin) if first else np.searchsorted(equals, end) - 1
        at = equals[np.clip(number, 0, len(equals) - 1)]
        return at, (at < begin) | (at >= end)
