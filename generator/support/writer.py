"""Encoding of values with full checks, operation by operation: the slow path of encoding.

A value is refused in two cases:

- It has no octets: wrong type, out of range, too long for the number that says its length.
- Its octets would decode to something else: a NUL in a NUL-terminated text, ``=`` in a name that
  ``=`` ends, padding at the end of a padded text, a value after an omitted one, a value that is
  absent although a number says that it is present.

Numbers that follow from other octets (lengths, counts, sizes, checksums) are written when those are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import index
from typing import Any, NoReturn
from uuid import UUID

from specwire.generated import plan as ops
from specwire.generated.checksums import compute_checksum
from specwire.generated.codings import (
    Countable,
    NumberError,
    check_integer,
    describe,
    limits,
    write_number,
)
from specwire.generated.errors import EncodeError, Kind
from specwire.generated.layout import Boolean, Coding, Field, Integer, Order
from specwire.generated.named_plan import NamedMessage, NamedPlan, NamedVisitor
from specwire.generated.plan import ITEM, NAME, VALUE, coded_octets, is_hidden
from specwire.generated.words import allowed_characters, depth_words, either, octets_word, show

Pieces = list[tuple[Field, bytes]]
"""Fields of a run, each with its octets."""


@dataclass(slots=True)
class _Run:
    """Octets of a frame, a record or an item so far; `owner` has the values."""

    owner: Any
    pieces: list[tuple[str, bytes]] = field(default_factory=list)
    """Slots, each with its octets."""
    start: int = 0
    """Index of the first piece of the innermost body."""
    open: dict[str, tuple[int, ops.Number | ops.Bit]] = field(default_factory=dict)
    """Hidden slot -> index of its piece, whose octets are not known yet, and its operation or bits."""
    orders: dict[int, Order] = field(default_factory=dict)
    """Index of the piece of an integer made of bits -> order of its octets."""
    numbers: dict[str, int] = field(default_factory=dict)
    """Slot -> the integer that is written."""
    options: dict[str, ops.Optional] = field(default_factory=dict)
    """Slot -> the operations that may be omitted with its value."""
    marks: dict[str, int] = field(default_factory=dict)
    """Mark -> index of the next piece."""
    checks: list[ops.Verify] = field(default_factory=list)


class Writer(NamedVisitor):
    """Encoder of the values of one message; tracks its position for error messages.

    `home` is the module with the classes of the message and its records.
    """

    def __init__(self, plan: NamedPlan, message: NamedMessage, home: str, strict: bool) -> None:
        super().__init__(plan, message)
        self.home = home
        self.strict = strict
        self._depth = 0
        """Number of records that contain this position."""
        self._run = _Run(None)

    def refuse(self, kind: Kind, expected: str, found: str) -> NoReturn:
        """Raise EncodeError for a fault at the current position."""
        raise EncodeError(
            protocol=self.plan.layout.protocol, message_name=self.message.layout.name, field=self.path,
            frame=None, offset=None, kind=kind, expected=expected, found=found,
            rule=f"{self.plan.layout.edition} {self.rule_name}",
        )  # fmt: skip

    def run(self, body: ops.Body, owner: object) -> Pieces:
        """Return the octets of the fields of a frame, whose values are attributes of `owner`.

        Raises:
            EncodeError: a value does not fit.
        """
        run = self._written(body, owner)
        return [
            (self.message.fields[slot], _joined(group))
            for slot, group in groupby(run.pieces, lambda piece: piece[0].removesuffix("#"))
        ]

    def item(self, body: ops.Body, value: object) -> bytes:
        """Return the octets of one of many values.

        Raises:
            EncodeError: the value does not fit.
        """
        return _joined(self._written(body, value).pieces)

    def sequence(self, value: object) -> tuple[Any, ...]:
        """Return a value that must be a tuple."""
        if not isinstance(value, tuple):
            self.refuse("count", "a tuple", describe(value))
        return value

    def _written(self, body: ops.Body, owner: object) -> _Run:
        run = _Run(owner)
        self.perform(self._fill(run, body))
        return run

    def _fill(self, run: _Run, body: ops.Body) -> Iterator[ops.Body]:
        """Write the octets of a run."""
        outer, self._run = self._run, run
        run.options = {op.slot: op for op in _optional(body)}
        self._check_omitted()
        yield body
        for op in run.checks:
            self._write_checksum(op)
        self._run = outer

    def _check_omitted(self) -> None:
        """Refuse a value after an omitted one that only the number of octets distinguishes."""
        omitted = False
        for op in self._run.options.values():
            if op.when.kind != "left":
                continue
            present = self._is_present(op)
            if omitted and present:
                self.enter(op.slot)
                self.refuse("length", "None, as the field before it", describe(self._value(op.slot)))
            omitted = not present

    def _is_present(self, op: ops.Optional) -> bool:
        """Return whether the values of operations that may be omitted are there."""
        value = self._value(op.slot)
        if not op.boolean:
            return value is not None
        if not isinstance(value, bool):
            self.enter(op.slot)
            self.refuse("range", "False or True", describe(value))
        return value

    def _value(self, slot: str) -> Any:
        owner = self._run.owner
        if slot == ITEM:
            return owner
        if slot in (NAME, VALUE):
            return owner[slot == VALUE]
        return getattr(owner, slot)

    def _add(self, slot: str, octets: bytes) -> None:
        self._run.pieces.append((slot, octets))

    # Constants and numbers

    def expect(self, op: ops.Expect) -> None:
        """Write constant octets."""
        self._add(op.slot, op.octets)

    def word(self, op: ops.Word) -> None:
        """Write one of several words."""
        self.enter(op.slot)
        value = self._value(op.slot)
        if value not in op.options:
            self.refuse("constant", either(op.options), describe(value))
        self._add(op.slot, self._encoded(value))

    def pad(self, op: ops.Pad) -> None:
        """Write octets without meaning."""
        octets = op.octets
        if op.multiple:
            octets = -len(_joined(self._run.pieces[self._run.start :])) % op.multiple
        self._add(op.slot, op.fill * octets)

    def number(self, op: ops.Number) -> None:
        """Write a number; leave room for one that follows from other octets."""
        self.enter(op.slot)
        if op.bits:
            self._bits(op)
        elif op.counts or op.checks:
            self._run.open[op.slot] = len(self._run.pieces), op
            self._add(op.slot, b"\0" * (coded_octets(op.coding) or 0))
        else:
            value = self._value(op.slot)
            self._add(op.slot, self._coded(op.coding, value))
            if isinstance(op.coding, Countable):
                self._run.numbers[op.slot] = index(value)

    def _bits(self, op: ops.Number) -> None:
        """Write an integer that is made of bits; leave room for those that count octets or items."""
        assert isinstance(op.coding, Integer)
        position = len(self._run.pieces)
        self._run.orders[position] = op.coding.order
        # The octets are those of a field that has a value, if there is one.
        slot = next((bit.slot for bit in op.bits if not is_hidden(bit)), op.slot)
        self._add(slot, bytes(op.coding.octets))
        for bit in op.bits:
            self.enter(bit.slot)
            if bit.counts:
                self._run.open[bit.slot] = position, bit
            else:
                self._set(position, bit, self._bit(bit))

    def _bit(self, bit: ops.Bit) -> int:
        """Return the number to write in some bits."""
        if bit.constant is not None:
            return bit.constant
        if bit.spare:
            return 0
        if bit.announces:
            return int(self._is_present(self._run.options[bit.announces]))
        value = self._value(bit.slot)
        try:
            if bit.boolean:
                write_number(Boolean(), value)
            else:
                check_integer(value, (0, (1 << bit.width) - 1), bit.members)
        except NumberError as error:
            self.refuse(error.kind, error.expected, error.found)
        return index(value)

    def _set(self, position: int, bit: ops.Bit, number: int) -> None:
        """Set some bits of the integer in a piece, which are 0."""
        slot, octets = self._run.pieces[position]
        order = self._run.orders[position]
        integer = int.from_bytes(octets, order) | number << bit.shift
        self._run.pieces[position] = slot, integer.to_bytes(len(octets), order)
        self._run.numbers[bit.slot] = number

    def _coded(self, coding: Coding, value: object) -> bytes:
        try:
            return write_number(coding, value)
        except NumberError as error:
            self.refuse(error.kind, error.expected, error.found)

    def _count(self, slot: str, plus: int, number: int, *, entries: bool = False) -> None:
        """Write the hidden number of octets, or of entries, in the room that was left for it."""
        position, op = self._run.open[slot]
        most = _largest(op) - plus
        if number + plus < 0:
            least = f"{-plus} {'entry' if plus == -1 else 'entries'}" if entries else octets_word(-plus)
            self.refuse("count" if entries else "length", f"at least {least}", str(number))
        if number > most:
            kind: Kind = "count" if entries else "length"
            self.refuse(kind, f"at most {most} {'entries' if entries else 'octets'}", str(number))
        if isinstance(op, ops.Bit):
            self._set(position, op, number + plus)
        else:
            self._run.pieces[position] = slot, write_number(op.coding, number + plus)
            self._run.numbers[slot] = number + plus

    # Texts and octets

    def text(self, op: ops.TakeText) -> None:
        """Write a text, or a name and a value as one."""
        self.enter(op.slot)
        value = self._value(op.slot)
        if op.json:
            self._add(op.slot, self._encoded(value))
        elif self.split in ("first", "last"):
            self._add(op.slot, self._spanned(op.extent, self._divided(*value)))
        else:
            self._add(op.slot, self._text(op, value))

    def _text(self, op: ops.TakeText, value: object) -> bytes:
        raw = self._encoded(value)
        if op.terminated:
            if b"\0" in raw:
                self.refuse("text", "text without NUL", "0x00")
            raw += b"\0" * self.strict
        if op.padding is not None:
            size = op.extent.octets
            if len(raw) > size:
                self.refuse("length", f"at most {octets_word(size)}", str(len(raw)))
            if raw.endswith(op.padding):
                expected = f"text that does not end with {show(op.padding)}, which fills it up"
                self.refuse("text", expected, describe(value))
            return raw.ljust(size, op.padding)
        return self._spanned(op.extent, raw)

    def _encoded(self, value: object) -> bytes:
        if not isinstance(value, str):
            self.refuse("text", "text", describe(value))
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            self.refuse("text", "text that UTF-8 can write", repr(value[error.start : error.end]))

    def octets(self, op: ops.TakeOctets) -> None:
        """Write opaque octets, or a UUID."""
        self.enter(op.slot)
        value = self._value(op.slot)
        if op.uuid:
            if not isinstance(value, UUID):
                self.refuse("range", "a UUID", describe(value))
            self._add(op.slot, value.bytes if op.uuid == "big" else value.bytes_le)
            return
        if not isinstance(value, bytes | bytearray | memoryview):
            self.refuse("text", "octets", describe(value))
        raw = bytes(value)
        if op.extent.kind != "fixed" and len(raw) < op.minimum:
            self.refuse("length", f"at least {octets_word(op.minimum)}", str(len(raw)))
        if op.extent.kind != "fixed" and op.maximum is not None and len(raw) > op.maximum:
            self.refuse("length", f"at most {octets_word(op.maximum)}", str(len(raw)))
        self._add(op.slot, self._spanned(op.extent, raw))

    def _spanned(self, extent: ops.Extent, raw: bytes) -> bytes:
        """Return octets that fit their extent; write the number that counts them."""
        match extent.kind:
            case "fixed" if len(raw) != extent.octets:
                self.refuse("length", octets_word(extent.octets), str(len(raw)))
            case "until" if (raw + extent.until).index(extent.until) != len(raw):
                self.refuse("text", f"text without {show(extent.until)}", show(raw))
            case "slot":
                self._count(extent.slot, extent.plus, len(raw))
            case "run":
                self._check_among(extent, raw)
        return raw

    def _check_among(self, extent: ops.Extent, raw: bytes) -> None:
        """Check that octets are of those that may be in a run of them, and not too few."""
        foreign = raw.translate(None, extent.among)
        if foreign:
            self.refuse("text", allowed_characters(self.rule_name), show(foreign[:1]))
        if len(raw) < extent.octets:
            self.refuse("length", f"at least {octets_word(extent.octets)}", str(len(raw)))

    def _divided(self, name: object, value: object) -> bytes:
        """Return name and value as one text; the side before the separator must not contain another ``=``."""
        self.path = f"{self.entry}.name"
        octets = self._encoded(name) + b"="
        if self.split == "first" and octets.count(b"=") > 1:
            self.refuse("text", "a name without '='", repr(name))
        self.path = f"{self.entry}.value"
        octets += (content := self._encoded(value))
        if self.split == "last" and b"=" in content:
            self.refuse("text", "a value without '='", repr(value))
        self.path = self.entry
        return octets

    # Values with values inside

    def loop(self, op: ops.Loop) -> Iterator[ops.Body]:
        """Write items."""
        self.enter(op.slot)
        items = self.sequence(self._value(op.slot))
        if op.count:
            self._count(op.count, op.plus, len(items), entries=True)
        if len(items) < op.minimum:
            self.refuse("count", f"at least {op.minimum}", str(len(items)))
        octets: list[bytes] = []
        for number in self.items(op, range(len(items))):
            item = items[number]
            if op.pairs and (not isinstance(item, tuple) or len(item) != 2):
                self.refuse("count", "a pair of name and value", describe(item))
            path, rule, run = self.path, self.rule, _Run(item)
            yield from self._fill(run, op.body)
            octets.append(_joined(run.pieces))
            if op.until and octets[-1].startswith(op.until):
                self.path, self.rule = path, rule
                expected = f"an item that does not begin with {show(op.until)}"
                self.refuse("text", expected, show(octets[-1]))
        self._add(op.slot, b"".join(octets))

    def nest(self, op: ops.Nest) -> Iterator[ops.Body]:
        """Write a record."""
        yield from self._record(op.slot, (op.record,))

    def choose(self, op: ops.Choose) -> Iterator[ops.Body]:
        """Write one of several records."""
        yield from self._record(op.slot, [record for _, record in op.options])

    def _record(self, slot: str, classes: Sequence[str]) -> Iterator[ops.Body]:
        """Write a record; refuse a record of another package, even if its name matches."""
        self.enter(slot)
        value = self._value(slot)
        found = value.__class__
        if found.__module__ != self.home or found.__name__ not in classes:
            self.refuse("tag", either(classes), describe(value))
        deepest = self.plan.layout.max_depth
        if deepest and self._depth == deepest:
            self.refuse("limit", depth_words(deepest), "more")
        run = _Run(value)
        with self.inside(found.__name__):
            self._depth += 1
            yield from self._fill(run, self.plan.records[found.__name__].body)
            self._depth -= 1
        self._add(slot, _joined(run.pieces))

    def optional(self, op: ops.Optional) -> Iterator[ops.Body]:
        """Write operations unless their value is None."""
        present = self._is_present(op)
        if op.when.kind == "number":
            self._check_number(op, present)
        if not present:
            self._check_absent(op.others)
            self._count_nothing(op.body)
            return
        position = len(self._run.pieces)
        yield op.body
        if op.when.kind == "left" and not _joined(self._run.pieces[position:]):
            self.enter(op.slot)
            self.refuse("length", "at least 1 octet: without any it would be read as None", "0 octets")

    def _check_number(self, op: ops.Optional, present: bool) -> None:
        """Refuse a value whose presence contradicts the number of its condition."""
        slot = op.when.slot
        number = self._run.numbers.get(slot)
        if present == (number is not None and op.when.fits(number)):
            return
        self.enter(slot)
        name = self.field.name if self.field else slot
        self.enter(op.slot)
        expected = f"{'no' if present else 'a'} value, because {name} is {number}"
        self.refuse("range", expected, describe(self._value(op.slot)))

    def _count_nothing(self, body: ops.Body) -> None:
        """Write the numbers before an omitted option that count a value of it."""
        for op in ops.operations(body):
            match op:
                case ops.TakeText(extent=counted) | ops.TakeOctets(extent=counted):
                    slot, plus = counted.slot, counted.plus
                case ops.Loop(count=slot, plus=plus) | ops.Region(count=slot, plus=plus):
                    pass
                case _:
                    continue
            if slot in self._run.open:
                self._count(slot, plus, 0)

    def _check_absent(self, slots: Sequence[str]) -> None:
        for slot in slots:
            if (value := self._value(slot)) is not None:
                self.enter(slot)
                self.refuse("length", "None, as the field before it", describe(value))

    def sized(self, op: ops.Sized) -> Iterator[ops.Body]:
        """Write operations, and their number of octets before them."""
        position = len(self._run.pieces)
        self._add(op.slot, b"")
        self._run.start = position + 1
        yield op.body
        self.enter(op.slot)
        self._run.pieces[position] = op.slot, self._size(op, len(_joined(self._run.pieces[position + 1 :])))

    def _size(self, op: ops.Sized, behind: int) -> bytes:
        for tag, octets in op.forms:
            if behind < 256**octets:
                size = tag + behind.to_bytes(octets, "big")
                # A size without a tag must not begin like another form.
                if tag or not any(other and size.startswith(other) for other, _ in op.forms):
                    return size
        most = max(256**octets for _, octets in op.forms) - 1
        self.refuse("length", f"at most {most} octets after it", str(behind))

    def region(self, op: ops.Region) -> Iterator[ops.Body]:
        """Write operations, and the number that counts their octets before them."""
        position, outer = len(self._run.pieces), self._run.start
        self._run.start = position
        yield op.body
        self._run.start = outer
        self.enter(op.count)
        self._count(op.count, op.plus, len(_joined(self._run.pieces[position:])))

    # Checksums

    def mark(self, op: ops.Mark) -> None:
        """Keep the position."""
        self._run.marks[op.name] = len(self._run.pieces)

    def verify(self, op: ops.Verify) -> None:
        """Leave the checksum for the end of the run, when all octets are known."""
        self._run.checks.append(op)

    def _write_checksum(self, op: ops.Verify) -> None:
        run = self._run
        covered = b"".join(_joined(run.pieces[run.marks[begin] : run.marks[end]]) for begin, end in op.ranges)
        position, number = run.open[op.slot]
        assert isinstance(number, ops.Number)
        self.enter(op.slot)
        run.pieces[position] = op.slot, self._coded(number.coding, compute_checksum(op.algorithm, covered))


def _largest(op: ops.Number | ops.Bit) -> int:
    """Return the largest number that an operation or some bits can hold."""
    if isinstance(op, ops.Bit):
        return (1 << op.width) - 1
    assert isinstance(op.coding, Countable)
    return limits(op.coding)[1]


def _joined(pieces: Iterable[tuple[str, bytes]]) -> bytes:
    return b"".join(octets for _, octets in pieces)


def _optional(body: ops.Body) -> Iterator[ops.Optional]:
    """Yield the operations of a run that may be omitted."""
    for op in body:
        match op:
            case ops.Optional():
                yield op
            case ops.Sized() | ops.Region():
                yield from _optional(op.body)
