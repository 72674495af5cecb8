"""Reader of operations: performs each on all rows of a run at once, and advances past the values.

Checks and results are those of the row codec, but without error messages. A row that does not fit is
refused (`Run.refuse`) and left to the row codec, which raises the error. So checks here may be
stricter. Columns have a meaning only if all rows fit, and those of a skimmed run have none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from specwire.generated.checksums import compute_checksum
from specwire.generated.columns import native
from specwire.generated.columns.arrow import Mask, Octets, Positions, buffer_of, ranges, starts_of
from specwire.generated.columns.building import (
    Column,
    Many,
    Numbers,
    Slices,
    Struct,
    scattered,
    spread,
)
from specwire.generated.columns.codings import among, read_fixed, read_varying, uuid_texts
from specwire.generated.columns.loops import divided, evenly, is_few, plain_entries, scan, walk
from specwire.generated.columns.runs import Run, differs, gather, integers, lowered
from specwire.generated.columns.slots import Enclosed, Records
from specwire.generated.plan import (
    Bit,
    Body,
    Choose,
    Expect,
    Extent,
    Fixed,
    Loop,
    Mark,
    Nest,
    Number,
    Op,
    Optional,
    Pad,
    Region,
    Sized,
    TakeOctets,
    TakeText,
    Verify,
    Visitor,
    When,
    Word,
    fixed_octets,
    is_hidden,
)

WIDEST = 256
"""Largest number of octets of adjacent values that are gathered together."""
DEEPEST = 4
"""Largest number of values of one kind inside each other."""
LARGEST = 1 << 62
"""Limit of a number that counts octets or items."""


def body_octets(body: Body, records: Records) -> int:
    """Return the fixed number of octets of a body, 0 if values differ in size."""
    sizes = [
        body_octets(records.bodies[op.record], records) if isinstance(op, Nest) else fixed_octets(op)
        for op in body
    ]
    return sum(filter(None, sizes)) if all(sizes) else 0


class Reader(Visitor):
    """Reader of a body. `columns` has a column for each slot that is not hidden, in order.

    `known` is the number of octets at the start whose constants message selection has compared.
    `depth` is the number of records around the body, and `enclosed` that of values around it which
    columns hold as octets. In these, texts are checked here, because no column is built from them.
    """

    def __init__(
        self, run: Run, records: Records, *, known: int = 0, depth: int = 0, enclosed: int = 0
    ) -> None:
        self.run = run
        self.records = records
        self.known = known
        self.depth = depth
        self.enclosed = enclosed
        self.begin = run.at
        """Start of the body, for padding."""
        self.columns: list[Column] = []
        self.slots: dict[str, Positions] = {}
        """Values of the hidden slots, and of those in conditions."""
        self.given: dict[str, Mask] = {}
        """Rows that have a value in a slot that not all have."""
        self.marks: dict[str, Positions] = {}

    def operation(self, op: Op | Enclosed) -> None:
        """See `Visitor`."""
        if isinstance(op, Enclosed):
            self._enclosed(op)
        else:
            super().operation(op)

    # Values of fixed size

    def fixed(self, op: Fixed) -> None:
        """See `Visitor`. Octets that are looked at are gathered together if they are few."""
        run, step = self.run, self.run.step
        start = run.forward(op.octets)
        places = list(_places(op))
        looked = [(at, size) for at, size, one in places if self._looks(at, one)]
        low, high = (looked[0][0], sum(looked[-1])) if looked else (0, 0)
        rows = self._gather(start, low, high - low, step) if 0 < high - low <= WIDEST else None
        for at, size, one in places:
            if self._looks(at, one):
                found = (
                    self._gather(start, at, size, step)
                    if rows is None
                    else rows[:, at - low : at - low + size]
                )
                self._looked(one, found)
            elif not run.skim and isinstance(one, TakeText | TakeOctets):
                sizes = np.full(len(run), size)
                self._taken(one, self._behind(start, at), np.where(run.ok, sizes, 0) if run.parked else sizes)
        self.known = 0

    def _gather(self, start: Positions, offset: int, size: int, step: int) -> Octets:
        step = 0 if self.run.parked else step
        return gather(self.run.frames.octets, self._behind(start, offset), size, step)

    def _behind(self, start: Positions, offset: int) -> Positions:
        return np.where(self.run.ok, start + offset, 0) if self.run.parked else start + offset

    def _looks(self, at: int, op: Op) -> bool:
        """Return whether octets at a fixed place are looked at, not only taken or skipped."""
        if self.run.skim:
            return isinstance(op, Number) and (
                bool(op.counts or op.bits) or op.slot in self.records.conditions
            )
        if isinstance(op, Expect):
            return at + len(op.octets) > self.known
        return isinstance(op, Number) or (isinstance(op, TakeOctets) and op.uuid is not None)

    def _looked(self, op: Op, octets: Octets) -> None:
        match op:
            case Expect(octets=wanted, folded=folded):
                self.run.refuse(
                    differs(lowered(octets), wanted.lower()) if folded else differs(octets, wanted)
                )
            case Number(coding=coding):
                values, wrong = read_fixed(coding, octets)
                if wrong is not None:
                    self.run.refuse(wrong)
                self._number(op, values)
            case TakeOctets(uuid=order) if order:
                texts = uuid_texts(octets, order).reshape(-1)
                sizes = np.full(len(octets), 36)
                self.columns.append(Slices(texts, buffer_of(texts), np.arange(len(octets)) * 36, sizes))

    # Values

    def number(self, op: Number) -> None:
        """See `Visitor`."""
        self._number(op, read_varying(self.run, op.coding))

    def _number(self, op: Number, values: NDArray[Any]) -> None:
        for bit in op.bits:
            self._bit(bit, values)
        self._keep(op, values)
        if not is_hidden(op) and not self.run.skim:
            self.columns.append(Numbers(values))

    def _bit(self, bit: Bit, number: NDArray[Any]) -> None:
        """Take some bits of the numbers, which are unsigned."""
        kind = number.dtype.type
        values = number >> kind(bit.shift) & kind((1 << bit.width) - 1)
        if bit.constant is not None:
            self.run.refuse(values != bit.constant)
        elif bit.members:
            self.run.refuse(~among(values, bit.members))
        self._keep(bit, values)
        if not is_hidden(bit) and not self.run.skim:
            self.columns.append(Numbers(values == 1 if bit.boolean else values))

    def _keep(self, op: Number | Bit, values: NDArray[Any]) -> None:
        """Keep the values that later operations need."""
        if op.counts:
            if values.dtype.itemsize == 8:
                self.run.refuse(values > LARGEST)
            self.slots[op.slot] = values.astype(np.int64)
        elif op.slot in self.records.conditions or (isinstance(op, Number) and op.checks):
            self.slots[op.slot] = values.view(np.uint8) if values.dtype == bool else values

    def text(self, op: TakeText) -> None:
        """See `Visitor`."""
        self._taken(op, *self._extent(op.extent))

    def octets(self, op: TakeOctets) -> None:
        """See `Visitor`."""
        self._taken(op, *self._extent(op.extent))

    def _extent(self, extent: Extent) -> tuple[Positions, Positions]:
        run = self.run
        match extent.kind:
            case "slot":
                return run.take(self._counted(extent.slot, extent.plus))
            case "until":
                return run.take(run.until(extent.until))
            case "run":
                return run.take(run.among(extent.among, extent.octets))
        return run.take(run.within(run.left - extent.octets)) if extent.octets else run.rest()

    def _counted(self, slot: str, plus: int) -> Positions:
        """Return how many octets or items a hidden slot counts; an item has at least one octet."""
        return self.run.within(self.slots[slot] - plus if plus else self.slots[slot])

    def _taken(self, op: TakeText | TakeOctets, start: Positions, size: Positions) -> None:
        """Add the column of a text or octets."""
        run = self.run
        if run.skim:
            return
        if isinstance(op, TakeText):
            size = trimmed(run, op, start, size)
        elif op.minimum or op.maximum is not None:
            run.refuse((size < op.minimum) | (size > (LARGEST if op.maximum is None else op.maximum)))
        column = slices(run, op, start, size)
        if self.enclosed and isinstance(op, TakeText):
            _, doubt = column.build(pa.string())
            if doubt is not None:
                run.refuse(doubt)
        self.columns.append(column)

    def word(self, op: Word) -> None:
        """See `Visitor`."""
        run, options = self.run, [option.encode() for option in op.options]
        start, size = run.rest()
        if self.known < LARGEST:
            chosen = np.full(len(run), -1)
            for number, option in enumerate(options):
                same = size == len(option)
                found = gather(run.frames.octets, np.where(same, start, 0), len(option))
                wanted, found = (option.lower(), lowered(found)) if op.folded else (option, found)
                chosen[same & ~differs(found, wanted)] = number
            run.refuse(chosen < 0)
            if op.folded:
                self.columns.append(_spelled(options, chosen))
                return
        self.columns.append(Slices(run.frames.octets, run.frames.buffer, start, size))

    def pad(self, op: Pad) -> None:
        """See `Visitor`."""
        self.run.take(self.run.within((self.begin - self.run.at) % op.multiple))

    # Values inside of others

    def nest(self, op: Nest) -> None:
        """See `Visitor`."""
        self.columns.append(self._record(self.run, op.record))

    def _record(self, run: Run, record: str) -> Struct:
        if self.records.full(self.depth):
            run.refuse(np.ones(len(run), bool))
        inside = self._inner(run, depth=self.depth + 1)
        inside.visit(self.records.bodies[record])
        return Struct(len(run), inside.columns)

    def choose(self, op: Choose) -> None:
        """See `Visitor`. Each option has a column, null in the rows of the others."""
        run = self.run
        todo, begins = run.ok.copy(), [run.begins(tag, folded=op.folded) for tag, _ in op.options]
        columns: list[Column] = []
        for (_, record), mask in zip(op.options, begins, strict=True):
            rows = np.flatnonzero(todo & mask)
            todo[rows] = False
            part = run.part(rows)
            columns.append(spread(self._record(part, record), rows, len(run)))
            run.join(rows, part)
        run.refuse(todo)
        self.columns.append(Struct(len(run), columns))

    def _enclosed(self, op: Enclosed) -> None:
        """Take the octets of a value; leave few rows and many levels to the row codec."""
        run, start = self.run, self.run.at
        if self.enclosed == DEEPEST or is_few(run):
            run.refuse(np.ones(len(run), bool))
        else:
            self._inner(run, enclosed=self.enclosed + 1).visit((op.value,))
        size = np.where(run.ok, run.at - start, 0)
        self.columns.append(Slices(run.frames.octets, run.frames.buffer, start, size))

    def _inner(self, run: Run, *, depth: int = 0, enclosed: int = 0) -> Reader:
        """Return a reader of a body inside this one."""
        enclosed = enclosed or self.enclosed
        return Reader(run, self.records, depth=depth or self.depth, enclosed=enclosed)

    def optional(self, op: Optional) -> None:
        """See `Visitor`."""
        run = self.run
        there = self._holds(op.when)
        if op.boolean and not run.skim:
            self.columns.append(Numbers(there))
        if there.all() and len(run):
            self.visit(op.body)
            return
        rows = np.flatnonzero(there)
        inside = self._inner(run.part(rows))
        inside.begin = self.begin[rows]
        inside.slots, inside.given, inside.marks = (_taken(kept, rows) for kept in self._kept())
        inside.visit(op.body)
        run.join(rows, inside.run)
        self.columns += [spread(column, rows, len(run)) for column in inside.columns]
        inside.given |= {slot: np.ones(len(rows), bool) for slot in inside.slots.keys() - self.slots.keys()}
        for kept, found in zip(self._kept(), inside._kept(), strict=True):
            new = {name: values for name, values in found.items() if name not in kept}
            kept |= {name: scattered(values, rows, len(run)) for name, values in new.items()}

    def _kept(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """Return what is known of each row, by name."""
        return self.slots, self.given, self.marks

    def _holds(self, when: When) -> Mask:
        """Return the mask of rows in which a condition holds."""
        match when.kind:
            case "left":
                return self.run.left > when.left
            case "octets":
                return self.run.begins(when.octets, folded=when.folded)
        values: NDArray[Any] = self.slots[when.slot]
        if when.mask:
            values = values.astype(np.uint64) & np.uint64(when.mask)
        holds = self.run.ok & among(values, when.values)
        return holds & self.given[when.slot] if when.slot in self.given else holds

    def sized(self, op: Sized) -> None:
        """See `Visitor`."""
        run = self.run
        sizes = np.zeros(len(run), np.int64)
        todo = run.ok.copy()
        # A form without a tag must not begin like any other form.
        for tag, octets in sorted(op.forms, key=lambda form: not form[0]):
            rows = np.flatnonzero(todo & run.begins(tag)) if tag else np.flatnonzero(todo)
            if len(rows):
                part = run.part(rows)
                part.forward(len(tag))
                found = integers(gather(run.frames.octets, part.forward(octets), octets))
                part.refuse(found > LARGEST)
                sizes[rows] = found
                run.join(rows, part)
                todo[rows] = False
        run.refuse(todo)
        self._inside(sizes, op.body)

    def region(self, op: Region) -> None:
        """See `Visitor`."""
        self._inside(self.slots[op.count] - op.plus, op.body)

    def _inside(self, size: Positions, body: Body) -> None:
        """Read a body of exactly `size` octets."""
        run, outer, begin = self.run, self.run.end, self.begin
        run.end = run.at + run.within(size)
        self.begin = run.at
        self.visit(body)
        run.refuse(run.at != run.end)
        run.end = np.where(run.ok, outer, 0) if run.parked else outer
        self.begin = begin

    def loop(self, op: Loop) -> None:
        """See `Visitor`."""
        run = self.run
        counts = self._counted(op.count, op.plus) if op.count else None
        if counts is not None and op.minimum:
            run.refuse(counts < op.minimum)
            counts = np.where(run.ok, counts, 0)
        ends, octets, entries = run.end, body_octets(op.body, self.records), plain_entries(op.body)
        slots: list[tuple[Positions, Positions]] = []
        starts = np.zeros(0, np.int64)
        if octets and not op.until:
            counts, starts = evenly(run, counts, octets)
        elif entries and not op.until and native.KERNELS is not None:
            counts, slots = scan(run, counts, [width for width, _ in entries])
        else:
            counts, starts = walk(run, counts, lambda part: self._body(part, op.body), op.until)
        if not op.count and op.minimum:
            run.refuse(counts < op.minimum)
        if run.skim:
            return
        owners = np.repeat(np.arange(len(run)), counts)
        if slots:
            columns: Sequence[Column] = [
                slices(run, value, *slot) for (_, value), slot in zip(entries, slots, strict=True)
            ]
        else:
            items = Run(run.frames, starts, ends[owners])
            columns = self._body(items, op.body)
            run.refuse_at(owners[~items.ok])
        if op.pairs in ("first", "last"):
            entry = columns[0]
            assert isinstance(entry, Slices)
            columns, undivided = divided(entry, op.pairs)
            run.refuse_at(owners[undivided])
        self.columns.append(Many(counts, Struct(len(owners), columns) if op.pairs else columns[0]))

    def _body(self, items: Run, body: Body) -> list[Column]:
        inside = self._inner(items)
        inside.visit(body)
        return inside.columns

    # Checksums

    def mark(self, op: Mark) -> None:
        """See `Visitor`."""
        self.marks[op.name] = self.run.at

    def verify(self, op: Verify) -> None:
        """See `Visitor`. Each row is computed alone."""
        if self.run.skim:
            return
        view = self.run.frames.octets.data
        ranges = [(self.marks[begin].tolist(), self.marks[end].tolist()) for begin, end in op.ranges]
        found = [
            compute_checksum(op.algorithm, b"".join(view[begin[row] : end[row]] for begin, end in ranges))
            for row in range(len(self.run))
        ]
        self.run.refuse(np.array(found, np.uint64) != self.slots[op.slot])


def _places(op: Fixed) -> Iterator[tuple[int, int, Op]]:
    """Yield the operations in `op`, each with its offset and its number of octets."""
    at = 0
    for one in op.body:
        size = fixed_octets(one) or 0
        yield at, size, one
        at += size


def _taken(kept: dict[str, Any], rows: Positions) -> dict[str, Any]:
    return {name: values[rows] for name, values in kept.items()}


def _spelled(options: Sequence[bytes], chosen: Positions) -> Slices:
    """Return the column of words, from the number of the option in each row."""
    sizes = np.array([len(option) for option in options])
    each = sizes[chosen]
    octets = np.frombuffer(b"".join(options), np.uint8)[ranges(starts_of(sizes)[:-1][chosen], each)]
    return Slices(octets, buffer_of(octets), starts_of(each)[:-1], each)


def slices(run: Run, op: TakeText | TakeOctets, start: Positions, size: Positions) -> Slices:
    """Return the column of texts or octets."""
    ended = isinstance(op, TakeText) and op.terminated
    return Slices(run.frames.octets, run.frames.buffer, start, size, ended)


def trimmed(run: Run, op: TakeText, start: Positions, size: Positions) -> Positions:
    """Return the sizes of texts without their padding and without one NUL at the end."""
    octets = run.frames.octets
    if op.padding is not None:
        width = op.extent.octets
        behind = (gather(octets, start, width) != op.padding[0])[:, ::-1]
        size = np.where(behind.any(axis=1), width - behind.argmax(axis=1), 0)
    if op.terminated and len(octets):
        last = np.maximum(start + size - 1, 0)
        size = size - ((size > 0) & (octets[last] == 0))
    return size
