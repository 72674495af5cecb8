"""Readers of lists and dictionaries: all rows read their next element together, until each has had its last.

Where an element begins is only known when the one before it has been read. So all rows go on in step, and
those that are through drop out. The elements of all rows are then put in the order of the rows, and read as
rows of their own. Elements of fixed size need no walk at all.

A few rows with very many elements would make a step of each element; they are left to the row codec.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from specwire.generated.columns import native
from specwire.generated.columns.arrow import ArrowType, buffer_of
from specwire.generated.columns.building import Column, Many, Present, Slices, Struct, copied
from specwire.generated.columns.frames import Mask, Positions
from specwire.generated.columns.readers import OctetsReader, Reader, TextReader
from specwire.generated.columns.runs import Run
from specwire.generated.layout import Text

PATIENCE = 64
"""Elements that rows read in step however few rows they are."""
EQUALS = ord("=")
FEW = 32
"""Rows that are too few to go on in step for long."""


def ramp(counts: Positions) -> Positions:
    """Return the numbers from 0 up to each of `counts`, one after the other."""
    first = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(first, counts)


def read_count(run: Run, octets: int, minimum: int) -> Positions | None:
    """Return how many elements there are, which take an octet each at least; None where the run's end says."""
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
    """Read the elements of every row, `step` one of each; go on behind them.

    Returns:
        How many elements each row has, and what `step` found in the order of the rows.
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
    """Read the entries of every row, a text or octets for each of the `sides`; the result is as of `walk`."""
    if native.KERNELS is not None and all(map(_is_plain, sides)):
        return _read_natively(run, counts, sides)

    def entry(part: Run) -> tuple[Positions, ...]:
        found = [side.read(part) for side in sides]
        return () if run.skim else tuple(p for slices in found for p in (slices.start, slices.size))

    skim = run.skim
    count, found = walk(run, counts, entry)
    return count, found if found or skim else (np.zeros(0, np.int64),) * (2 * len(sides))


def _is_plain(side: TextReader | OctetsReader) -> bool:
    """Whether a value is a length and so many octets, and nothing else is asked of it."""
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
    """What was found of the first elements, the second ones and so on, in the order of the rows."""
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
    """A list; `octets` is the size of an element where it is fixed."""

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
    """A dictionary of names and values, each with octets of its own."""

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
    """A dictionary whose names and values share a text each, divided at its first or last ``=``."""

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
        """The two sides of each entry; entries without ``=`` are refused."""
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
        """Where each entry is divided, and which have no ``=`` at all."""
        if len(equals) == len(begin) and bool(((equals >= begin) & (equals < end)).all()):
            return equals, np.zeros(len(begin), bool)
        if not len(equals):
            return begin, np.ones(len(begin), bool)
        first = self.split == "first"
        number = np.searchsorted(equals, begin) if first else np.searchsorted(equals, end) - 1
        at = equals[np.clip(number, 0, len(equals) - 1)]
        return at, (at < begin) | (at >= end)
