"""Readers of values: each reads one kind of value in all rows of a run, and advances past it.

The counterpart of `specwire.generated.reader` for whole columns. Checks and results are
the same, but without error messages. A row that does not fit is refused (`Run.refuse`) and left to
the row codec, which raises the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from specwire.generated.columns.arrow import ArrowType
from specwire.generated.columns.building import Column, Numbers, Present, Slices, Struct, spread
from specwire.generated.columns.frames import Octets, Positions
from specwire.generated.columns.runs import Run, differs, gather, integers
from specwire.generated.layout import Constant, Integer, Padding, Span
from specwire.generated.layout import Octets as OctetsType
from specwire.generated.layout import Text as TextType


class Reader(Protocol):
    """Reader of one value in each row of a run."""

    def read(self, run: Run) -> Column:
        """Return the column and advance past the values; for a skimmed run the column has no meaning."""
        ...


class Step(Protocol):
    """Reader of some fields in each row of a run."""

    def read_fields(self, run: Run) -> list[Column]:
        """Return a column for each field that has one, and advance past the fields."""
        ...


@dataclass(frozen=True, slots=True)
class TextReader:
    """Reader of text. UTF-8 is checked when the column is built."""

    type: TextType

    def read(self, run: Run) -> Slices:
        """See `Reader`."""
        start, size = run.span(self.type.span)
        if not run.skim:
            size = trimmed(run, self.type, start, size)
        return Slices(run.frames.octets, run.frames.buffer, start, size, True, self.type.terminated)


def trimmed(run: Run, type: TextType, start: Positions, size: Positions) -> Positions:
    """Return the sizes of texts without their padding and without one NUL at the end."""
    octets = run.frames.octets
    if type.padding is not None:
        record = gather(octets, start, type.span.octets)
        behind = (record != type.padding[0])[:, ::-1]
        size = np.where(behind.any(axis=1), type.span.octets - behind.argmax(axis=1), 0)
    if type.terminated and len(octets):
        last = np.maximum(start + size - 1, 0)
        size = size - ((size > 0) & (octets[last] == 0))
    return size


@dataclass(frozen=True, slots=True)
class OctetsReader:
    """Reader of opaque octets."""

    type: OctetsType

    def read(self, run: Run) -> Slices:
        """See `Reader`."""
        type = self.type
        start, size = run.span(type.span)
        if type.minimum:
            run.refuse(size < type.minimum)
        if type.maximum is not None:
            run.refuse(size > type.maximum)
        return Slices(run.frames.octets, run.frames.buffer, start, size, False)


JSON = TextReader(TextType(Span("rest")))
"""Reader of JSON text. Only UTF-8 is checked."""


@dataclass(frozen=True, slots=True)
class KeywordReader:
    """Reader of one of several words that fill a frame; `known` if message selection checked the word."""

    options: tuple[bytes, ...]
    known: bool

    def read(self, run: Run) -> Slices:
        """See `Reader`."""
        start, size = run.span(Span("rest"))
        if not self.known:
            fits = np.zeros(len(run), bool)
            for option in self.options:
                same = size == len(option)
                found = gather(run.frames.octets, np.where(same, start, 0), len(option))
                fits |= same & ~differs(found, 0, option)
            run.refuse(~fits)
        return Slices(run.frames.octets, run.frames.buffer, start, size, True)


Fixed = Constant | Integer | Padding | OctetsType | TextType
"""Value types of fixed size."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Reader of adjacent fields of fixed size, all at once.

    `checked` is the number of octets whose constants message selection has already checked.
    """

    fields: tuple[tuple[int, Fixed, ArrowType | None], ...]
    octets: int
    checked: int = 0

    def read(self, run: Run) -> Column:
        """Read a run of one field."""
        return next(iter(self.read_fields(run)), Present(len(run)))

    def read_fields(self, run: Run) -> list[Column]:
        """See `Step`."""
        start = run.at
        if run.skim or not self._looked_at():
            run.span(Span("fixed", self.octets))
            record = np.zeros((len(run), 0), np.uint8)
        else:
            record = run.record(self.octets)
        if run.skim:
            return []
        found = [self._field(run, record, start, *field) for field in self.fields]
        return [column for column in found if column is not None]

    def _looked_at(self) -> bool:
        """Return whether any octet must be checked; opaque values and padding need no check."""
        return any(
            isinstance(type, Integer)
            or (isinstance(type, Constant) and offset + len(type.octets) > self.checked)
            for offset, type, _ in self.fields
        )

    def _field(
        self, run: Run, record: Octets, start: Positions, offset: int, type: Fixed, arrow: ArrowType | None
    ) -> Column | None:
        match type:
            case Constant(octets=octets):
                if offset + len(octets) > self.checked:
                    run.refuse(differs(record, offset, octets))
                return None
            case Integer(octets=size, members=members) if arrow is not None:
                values = integers(record, offset, size)
                if members:
                    run.refuse(~_among(values, members))
                return Numbers(values, arrow)
            case OctetsType(span=span):
                return self._slices(run, start + offset, span.octets, None)
            case TextType(span=span):
                return self._slices(run, start + offset, span.octets, type)
        return None

    def _slices(self, run: Run, start: Positions, size: int, text: TextType | None) -> Slices:
        sizes = np.full(len(start), size)
        if run.parked:
            start, sizes = np.where(run.ok, start, 0), np.where(run.ok, sizes, 0)
        if text is not None:
            sizes = trimmed(run, text, start, sizes)
        return Slices(run.frames.octets, run.frames.buffer, start, sizes, text is not None)


def _among(values: NDArray[Any], members: Sequence[int]) -> NDArray[np.bool_]:
    found = np.zeros(len(values), bool)
    for member in members:
        if member < 256**values.dtype.itemsize:
            found |= values == member
    return found


@dataclass(frozen=True, slots=True)
class Single:
    """Reader of one field."""

    reader: Reader

    def read_fields(self, run: Run) -> list[Column]:
        """See `Step`."""
        return [self.reader.read(run)]


@dataclass(frozen=True, slots=True)
class Optional:
    """Reader of a field that is absent if the run has ended."""

    step: Step

    def read_fields(self, run: Run) -> list[Column]:
        """See `Step`."""
        there = run.at < run.end
        if there.all() and len(run):
            return self.step.read_fields(run)
        rows = np.flatnonzero(there)
        part = run.part(rows)
        columns = self.step.read_fields(part)
        run.join(rows, part)
        return columns if run.skim else [spread(column, rows, len(run)) for column in columns]


@dataclass(frozen=True, slots=True)
class Sized:
    """Reader of a size that counts the octets that follow in the run.

    It is `whole` if these are all remaining octets.
    """

    forms: tuple[tuple[bytes, int], ...]
    whole: bool

    def read_fields(self, run: Run) -> list[Column]:
        """See `Step`."""
        sizes = np.zeros(len(run), np.int64)
        todo = run.ok.copy()
        # A form without a tag must not begin like any other form.
        for tag, octets in sorted(self.forms, key=lambda form: not form[0]):
            rows = np.flatnonzero(todo & run.begins(tag)) if tag else np.flatnonzero(todo)
            if len(rows):
                part = run.part(rows)
                part.at = part.at + len(tag)
                sizes[rows] = part.size(octets)
                run.join(rows, part)
                todo[rows] = False
        run.refuse(todo)
        if self.whole:
            run.refuse(run.left != sizes)
        else:
            run.end = np.where(run.ok, run.at + sizes, 0)
        return []


@dataclass(frozen=True, slots=True)
class Steps:
    """Reader of the fields of a frame or record, in steps."""

    steps: tuple[Step, ...]

    def read_fields(self, run: Run) -> list[Column]:
        """See `Step`."""
        return [column for step in self.steps for column in step.read_fields(run)]


@dataclass(frozen=True, slots=True)
class RecordReader:
    """Reader of a record inside another run; `sized` if a size in it determines its end."""

    steps: Steps
    type: ArrowType
    sized: bool

    def read(self, run: Run) -> Column:
        """See `Reader`."""
        outer = run.end
        columns = self.steps.read_fields(run)
        if self.sized:
            run.refuse(run.at != run.end)
            run.end = np.where(run.ok, outer, 0) if run.parked else outer
        return Struct(len(run), tuple(columns) or (Present(len(run)),), self.type)


@dataclass(frozen=True, slots=True)
class UnionReader:
    """Reader of one of several records, told apart by their first octets.

    Each alternative has a column, null in the rows of the others.
    """

    tags: tuple[bytes, ...]
    options: tuple[RecordReader, ...]
    type: ArrowType

    def read(self, run: Run) -> Column:
        """See `Reader`."""
        columns: list[Column] = []
        todo = run.ok.copy()
        begins = [run.begins(tag) for tag in self.tags]
        for mask, option in zip(begins, self.options, strict=True):
            rows = np.flatnonzero(todo & mask)
            todo[rows] = False
            part = run.part(rows)
            column = option.read(part)
            run.join(rows, part)
            columns.append(column if run.skim else spread(column, rows, len(run)))
        run.refuse(todo)
        return Struct(len(run), tuple(columns), self.type)
