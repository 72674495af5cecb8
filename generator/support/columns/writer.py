"""Writer of operations: the octets of all elements of a body, from the columns of its slots.

A number that counts is known after what it counts, so its octets are put in later, as are those of a
size and a checksum. The items of all lists are written first and then grouped. Grouping moves no
octets, because they are already in order.

Columns with nulls are accepted where a value is optional; elsewhere a null is wrong. Wrong elements
go to the row codec, which raises the error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from specwire.generated.checksums import compute_checksum
from specwire.generated.columns.arrow import Mask, Whole, either, starts_of
from specwire.generated.columns.building import scattered
from specwire.generated.columns.codings import among, limits, write_column, write_values
from specwire.generated.columns.enclosed import wrong_values
from specwire.generated.columns.intake import PAIR, elements, field_of, integers_of, plain, there
from specwire.generated.columns.pieces import (
    Block,
    Component,
    Numbers,
    Pieces,
    joined,
    pieces_of,
    total_width,
)
from specwire.generated.columns.slots import Enclosed, Fields, Records
from specwire.generated.columns.values import (
    Written,
    beginning,
    write_divided,
    write_octets,
    write_text,
    write_words,
)
from specwire.generated.layout import Integer
from specwire.generated.named_plan import NamedPlan
from specwire.generated.plan import (
    NAME,
    VALUE,
    Bit,
    Body,
    Choose,
    Expect,
    Extent,
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
    coded_octets,
    is_hidden,
)

Columns = Callable[[str], "pa.Array[Any]"]
"""Function that returns the column of a slot."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What all writers of a protocol share."""

    plan: NamedPlan
    records: Records
    fields: Fields
    options: Mapping[str, str]
    """Column of each record in a union, by class."""
    strict: bool
    """Follow the specification to the letter."""

    def body(self, body: Body, columns: Columns, count: int, depth: int = 0) -> Written:
        """Return the octets of `count` elements of a body inside `depth` records."""
        writer = Writer(self, columns, count, depth)
        writer.visit(body)
        return writer.finish()

    def struct(self, owner: str, body: Body, array: pa.Array[Any], depth: int = 0) -> Written:
        """Return the octets of a body whose columns are the fields of a struct array without nulls."""
        fields = self.fields[owner]
        return self.body(body, lambda slot: field_of(array, fields[slot].name), len(array), depth)


class Writer(Visitor):
    """Writer of a body."""

    def __init__(self, scope: Scope, columns: Columns, count: int, depth: int) -> None:
        self.scope = scope
        self.columns = columns
        self.count = count
        self.depth = depth
        """Number of records around the body."""
        self.components: list[Component] = []
        self.begin = 0
        """First component of the body, for padding."""
        self.wrong: Mask | None = None
        self.ended: Mask | None = None
        """Elements without an earlier optional value."""
        self.hidden: dict[str, tuple[int, Number | Bit]] = {}
        """Hidden slots whose numbers are not known yet: the component to replace, and the operation."""
        self.announced: dict[str, Bit] = {}
        """Slots of options whose presence bits announce."""
        self.known: dict[str, tuple[Whole, Mask]] = {}
        """Numbers in conditions, and the mask of elements that have one."""
        self.marks: dict[str, int] = {}
        """Component that follows each mark."""
        self.checks: list[Verify] = []

    def finish(self) -> Written:
        """Return the octets of the elements, and the mask of wrong ones."""
        for op in self.checks:
            self._checksum(op)
        if self.hidden:
            self._all_wrong()
        return tuple(self.components), self.wrong

    def _add(self, components: Sequence[Component], *wrong: Mask | None) -> None:
        self.components += components
        self.wrong = either(self.wrong, *wrong)

    def _all_wrong(self) -> None:
        """Leave all elements to the row codec."""
        self.wrong = np.ones(self.count, np.bool_)

    # Values

    def expect(self, op: Expect) -> None:
        """See `Visitor`."""
        self.components.append(op.octets)

    def pad(self, op: Pad) -> None:
        """See `Visitor`."""
        if op.multiple:
            sizes = np.broadcast_to(np.asarray(-self._width(self.begin)) % op.multiple, (self.count,))
            fill = np.full(int(sizes.sum()), op.fill[0], np.uint8)
            self.components.append(Pieces(starts_of(sizes), fill))
        else:
            self.components.append(op.fill * op.octets)

    def number(self, op: Number) -> None:
        """See `Visitor`."""
        if op.bits:
            self._bits(op)
        elif op.counts or op.checks:
            self.hidden[op.slot] = len(self.components), op
            self.components.append(bytes(coded_octets(op.coding) or 0))
        else:
            self._value(op.slot, lambda array: write_column(op.coding, array))
            if op.slot in self.scope.records.conditions:
                self.known[op.slot] = self._numbers(op.slot, *limits(op.coding))[:2]

    def _bits(self, op: Number) -> None:
        """Write an integer of bits; those that count or announce are set later."""
        assert isinstance(op.coding, Integer)
        self.components.append(Numbers(np.zeros(self.count, np.uint64), op.coding.octets, op.coding.order))
        for bit in op.bits:
            if is_hidden(bit):
                self.hidden[bit.slot] = len(self.components) - 1, bit
                if bit.announces:
                    self.announced[bit.slot] = bit
                elif not bit.counts:
                    self._set(bit.slot, np.full(self.count, bit.constant or 0))
                continue
            numbers, now, wrong = self._numbers(bit.slot, 0, (1 << bit.width) - 1)
            self.hidden[bit.slot] = len(self.components) - 1, bit
            self._set(bit.slot, numbers)
            other = ~among(numbers, bit.members) if bit.members else None
            self.wrong = either(self.wrong, ~now, wrong, other)

    def _numbers(self, slot: str, least: int, most: int) -> tuple[Whole, Mask, Mask | None]:
        """Return the numbers of a slot, the mask of elements that have one, and that of wrong numbers."""
        array = plain(self.columns(slot))
        now = there(array)
        values, wrong = integers_of(array.drop_null() if array.null_count else array, most, least)
        rows = np.flatnonzero(now)
        numbers = scattered(values, rows, self.count)
        return numbers, now, None if wrong is None else scattered(wrong, rows, self.count)

    def _set(self, slot: str, numbers: Whole) -> None:
        """Set some bits of an integer; too large numbers are wrong."""
        at, bit = self.hidden.pop(slot)
        whole = self.components[at]
        assert isinstance(bit, Bit) and isinstance(whole, Numbers)
        unsigned = numbers.astype(np.uint64)
        self.components[at] = Numbers(
            whole.values | unsigned << np.uint64(bit.shift), whole.octets, whole.order
        )
        self.wrong = either(self.wrong, unsigned > np.uint64((1 << bit.width) - 1))
        if slot in self.scope.records.conditions:
            self.known[slot] = unsigned, np.ones(self.count, np.bool_)

    def text(self, op: TakeText) -> None:
        """See `Visitor`."""
        begin = len(self.components)
        self._value(op.slot, lambda array: write_text(op, array, self.scope.strict))
        self._taken(op.extent, begin)

    def octets(self, op: TakeOctets) -> None:
        """See `Visitor`."""
        begin = len(self.components)
        self._value(op.slot, lambda array: write_octets(op, array))
        self._taken(op.extent, begin)

    def word(self, op: Word) -> None:
        """See `Visitor`."""
        self._value(op.slot, lambda array: write_words(op, array))

    def _value(self, slot: str, write: Callable[[pa.Array[Any]], Written]) -> None:
        """Write the values of a slot; nothing for nulls, which are wrong."""
        array = plain(self.columns(slot))
        if array.null_count:
            now = there(array)
            self._add(*spread(write(array.drop_null()), now), ~now)
        else:
            self._add(*write(array))

    def _taken(self, extent: Extent, begin: int) -> None:
        """Write the number of octets from component `begin` on, if a number counts them."""
        if extent.kind == "slot":
            octets = self._width(begin)
            self._counted(extent.slot, octets + extent.plus if extent.plus else octets)

    def _width(self, begin: int) -> int | Whole:
        """Return the number of octets of the components from `begin` on."""
        for at, op in self.hidden.values():
            if begin <= at and isinstance(op, Number) and coded_octets(op.coding) is None:
                self._all_wrong()
        return total_width(self.components[begin:])

    def _absent(self, slot: str) -> int:
        """Return the number of a hidden slot if what it counts is absent."""
        return self.hidden[slot][1].plus if slot in self.hidden else 0

    def _counted(self, slot: str, number: int | Whole) -> None:
        """Write the number of a hidden slot."""
        if slot not in self.hidden:
            self._all_wrong()
            return
        at, op = self.hidden[slot]
        numbers = np.full(self.count, number) if isinstance(number, int) else number
        if op.plus < 0:  # what is counted may be less than that
            self.wrong = either(self.wrong, numbers < 0)
            numbers = np.maximum(numbers, 0)
        if isinstance(op, Bit):
            self._set(slot, numbers)
            return
        del self.hidden[slot]
        components, wrong = write_values(op.coding, numbers)
        self.components[at] = components[0] if len(components) == 1 else joined(components, self.count)
        self.wrong = either(self.wrong, wrong)

    # Values inside of others

    def nest(self, op: Nest) -> None:
        """See `Visitor`."""
        self._value(op.slot, lambda array: self._record(op.record, array))

    def _record(self, record: str, array: pa.Array[Any]) -> Written:
        if self.scope.records.full(self.depth):
            return (), np.ones(len(array), np.bool_)
        return self.scope.struct(record, self.scope.records.bodies[record], array, self.depth + 1)

    def operation(self, op: Op | Enclosed) -> None:
        """See `Visitor`."""
        if isinstance(op, Enclosed):
            self._value(op.slot, lambda array: self._enclosed(op, array))
        else:
            super().operation(op)

    def _enclosed(self, op: Enclosed, array: pa.Array[Any]) -> Written:
        """Return octets of values; those that are not exactly one value each are wrong."""
        scope, pieces = self.scope, pieces_of(array)
        return (pieces,), wrong_values(scope.plan, scope.records, op, pieces, self.depth, strict=scope.strict)

    def choose(self, op: Choose) -> None:
        """See `Visitor`. An element is the record whose column is not null."""

        def write(array: pa.Array[Any]) -> Written:
            found: list[Component] = []
            wrong: Mask | None = None
            chosen = np.zeros(len(array), np.int64)
            for _, record in op.options:
                column = plain(field_of(array, self.scope.options[record]))
                now = there(column)
                chosen += now
                components, outside = spread(self._record(record, column.drop_null()), now)
                found += components
                wrong = either(wrong, outside)
            return tuple(found), either(wrong, chosen != 1)

        self._value(op.slot, write)

    def optional(self, op: Optional) -> None:
        """See `Visitor`. Values that would be read as omitted, or omitted ones that would be read, are
        wrong."""
        now = self._present(op)
        for bit in [bit for bit in self.announced.values() if bit.announces == op.slot]:
            self._set(bit.slot, now.view(np.uint8))
        inside = _OptionWriter(self, now)
        inside.visit(op.body)
        components, wrong = spread(inside.finish(), now)
        self._add(components, wrong)
        for slot in inside.known.keys() - self.known.keys():
            numbers, given = inside.known[slot]
            rows = np.flatnonzero(now)
            self.known[slot] = scattered(numbers, rows, self.count), scattered(given, rows, self.count)
        match op.when.kind:
            case "left":
                empty = np.broadcast_to(np.asarray(total_width(components)) == 0, now.shape) & now
                self.wrong = either(self.wrong, empty, None if self.ended is None else self.ended & now)
                self.ended = either(self.ended, ~now)
            case "number":
                self.wrong = either(self.wrong, self._holds(op.when) != now)

    def _present(self, op: Optional) -> Mask:
        """Return the mask of elements in which an option is present."""
        array = plain(self.columns(op.slot))
        now = there(array)
        if op.boolean:
            self.wrong = either(self.wrong, ~now)
            return np.asarray(self._numbers(op.slot, 0, 1)[0] == 1, np.bool_)
        for slot in op.others:
            self.wrong = either(self.wrong, there(plain(self.columns(slot))) != now)
        return now

    def _holds(self, when: When) -> Mask:
        """Return the mask of elements in which the number of a condition is one of its values."""
        if when.slot not in self.known:
            self._all_wrong()
            return np.zeros(self.count, np.bool_)
        numbers, now = self.known[when.slot]
        if when.mask:
            numbers = numbers.astype(np.uint64) & np.uint64(when.mask)
        return now & among(numbers, when.values)

    def sized(self, op: Sized) -> None:
        """See `Visitor`."""
        at = len(self.components)
        self.components.append(b"")
        self._inside(op.body)
        behind = np.broadcast_to(np.asarray(self._width(at + 1), np.int64), (self.count,))
        self.components[at], wrong = _size(op.forms, behind)
        self.wrong = either(self.wrong, wrong)

    def region(self, op: Region) -> None:
        """See `Visitor`."""
        begin = len(self.components)
        self._inside(op.body)
        self._counted(op.count, self._width(begin) + op.plus)

    def _inside(self, body: Body) -> None:
        outer, self.begin = self.begin, len(self.components)
        self.visit(body)
        self.begin = outer

    def loop(self, op: Loop) -> None:
        """See `Visitor`."""
        array = plain(self.columns(op.slot))
        now = there(array)
        starts, items = elements(array.drop_null() if array.null_count else array)
        components, wrong = self._items(op, items)
        pieces = joined(components, int(starts[-1])).grouped(starts)
        counts = np.diff(starts)
        if op.until:
            wrong = either(wrong, beginning(joined(components, int(starts[-1])), op.until))
        inside = None if wrong is None else np.diff(starts_of(wrong)[starts]) > 0
        few = counts < op.minimum if op.minimum else None
        self._add(*spread(((pieces,), either(inside, few)), now), ~now)
        if op.count:
            numbers = counts if now.all() else scattered(counts, np.flatnonzero(now), self.count)
            self._counted(op.count, numbers + op.plus if op.plus else numbers)

    def _items(self, op: Loop, items: pa.Array[Any]) -> Written:
        """Return the octets of the items of all lists."""
        if not op.pairs:
            return self.scope.body(op.body, lambda slot: items, len(items), self.depth)
        items = plain(items)
        now = there(items)
        pairs = items.drop_null() if items.null_count else items
        sides = {slot: plain(field_of(pairs, name)) for slot, name in PAIR.items()}
        if op.pairs == "both":
            written = self.scope.body(op.body, sides.__getitem__, len(pairs), self.depth)
            components, wrong = spread(written, now)
            return components, either(wrong, ~now)
        both = there(sides[NAME]) & there(sides[VALUE])
        if not both.all():
            sides = {slot: side.filter(pa.array(both)) for slot, side in sides.items()}
        writer = _PairWriter(self.scope, sides, int(np.count_nonzero(both)), op)
        writer.visit(op.body)
        complete = now.copy()
        complete[now] = both
        components, wrong = spread(writer.finish(), complete)
        return components, either(wrong, ~complete)

    # Checksums

    def mark(self, op: Mark) -> None:
        """See `Visitor`."""
        self.marks[op.name] = len(self.components)

    def verify(self, op: Verify) -> None:
        """See `Visitor`. The checksum is known when all numbers are."""
        self.checks.append(op)

    def _checksum(self, op: Verify) -> None:
        if op.slot not in self.hidden or not self.marks.keys() >= {mark for two in op.ranges for mark in two}:
            self._all_wrong()
            return
        covered: list[Component] = []
        for begin, end in op.ranges:
            covered += self.components[self.marks[begin] : self.marks[end]]
        pieces = joined(covered, self.count)
        view, starts = pieces.data.data, pieces.offsets.tolist()
        found = [
            compute_checksum(op.algorithm, bytes(view[starts[row] : starts[row + 1]]))
            for row in range(self.count)
        ]
        at, number = self.hidden.pop(op.slot)
        assert isinstance(number, Number)
        components, wrong = write_values(number.coding, np.array(found, np.uint64))
        (self.components[at],) = components
        self.wrong = either(self.wrong, wrong)


class _OptionWriter(Writer):
    """Writer of an option, for the elements of `outer` in which it is present."""

    def __init__(self, outer: Writer, now: Mask) -> None:
        known, few = pa.array(now), int(np.count_nonzero(now))
        super().__init__(outer.scope, lambda slot: outer.columns(slot).filter(known), few, outer.depth)
        self.outer = outer
        self.now = now
        self.known = {slot: (numbers[now], given[now]) for slot, (numbers, given) in outer.known.items()}

    def _counted(self, slot: str, number: int | Whole) -> None:
        """Write the number of a hidden slot, which may be before the option."""
        if slot in self.hidden:
            super()._counted(slot, number)
            return
        numbers = np.full(len(self.now), self._absent(slot))
        numbers[self.now] = number
        self.outer._counted(slot, numbers)

    def _absent(self, slot: str) -> int:
        return self.outer._absent(slot)


class _PairWriter(Writer):
    """Writer of pairs that are one text each, divided at ``=``."""

    def __init__(self, scope: Scope, sides: Mapping[str, pa.Array[Any]], count: int, loop: Loop) -> None:
        super().__init__(scope, sides.__getitem__, count, depth=0)
        self.last = loop.pairs == "last"

    def text(self, op: TakeText) -> None:
        """See `Visitor`."""
        begin = len(self.components)
        self._add(*write_divided(op, self.last, self.columns(NAME), self.columns(VALUE), self.scope.strict))
        self._taken(op.extent, begin)


def spread(written: Written, now: Mask) -> Written:
    """Return what was written for the elements where `now` is true, and nothing elsewhere."""
    components, wrong = written
    if now.all():
        return written
    pieces = joined(components, int(np.count_nonzero(now))).spread(now)
    if wrong is not None:
        inside = np.zeros(len(now), np.bool_)
        inside[now] = wrong
        wrong = inside
    return (pieces,), wrong


def _size(forms: Sequence[tuple[bytes, int]], behind: Whole) -> tuple[Component, Mask | None]:
    """Return the sizes of the octets that follow, each in the first form that can hold it."""
    used = np.full(len(behind), len(forms))
    for number, (tag, octets) in reversed(list(enumerate(forms))):
        fits = behind < 256**octets if octets < 8 else np.ones(len(behind), np.bool_)
        for other in [other for other, _ in forms if other and not tag and len(other) <= octets]:
            # Without a tag, the number must not begin like a form with one.
            fits &= behind >> 8 * (octets - len(other)) != int.from_bytes(other, "big")
        used[fits] = number
    found: list[Component] = []
    for number, (tag, octets) in enumerate(forms):
        now = used == number
        if now.any():
            found += spread(((tag, Numbers(behind[now], octets)), None), now)[0]
    pieces = joined(found, len(behind))
    if len(behind) and (used == used[0]).all():
        return Block(pieces.octets.reshape(len(behind), -1)), either(used == len(forms))
    return pieces, either(used == len(forms))
