"""Construct expressions for the operations of a body: those of a frame, a record, or an item of a loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import groupby

from specwire.generator import ir
from specwire.generator.emit.python import octets_literal
from specwire.generator.ir.names import construct_name
from specwire.generator.support.layout import Boolean, Coding, Digits, Float, Integer, Order, Varint
from specwire.generator.support.plan import (
    LEFT,
    Bit,
    Body,
    Choose,
    Expect,
    Extent,
    Loop,
    Mark,
    Nest,
    Number,
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
    operations,
)

NUMBERS = {1: "8", 2: "16", 3: "24", 4: "32", 8: "64"}
"""Widths for which Construct has integers, and their bits."""

TEXT = 'cs.GreedyString("utf8")'


Fields = Mapping[str, ir.Field]
"""Fields by their slots."""


class ConstructBody(Visitor):
    """Declarations of the values of a body; those of the fields of a run have names."""

    def __init__(
        self, fields: Fields, declared: Mapping[str, ir.Type], records: Callable[[str], str]
    ) -> None:
        self.fields = fields
        self._declared = declared
        """Types of the rules declared so far."""
        self._record = records
        """Return the declaration of a record, by its class."""
        self.entries: list[tuple[str, str]] = []
        self.run = False
        """Some of its numbers, or their places, follow from the rest."""
        self.checks = ""
        self._prefixes: dict[str, str] = {}
        """Numbers directly before values, by their hidden slots."""

    def add(self, slot: str, value: str, wrap: tuple[str, str] = ("", "")) -> None:
        """Add the value in a slot: by the name of the rule that types it, or else by its declaration."""
        field = self.fields.get(slot)
        if field and field.rule and self._declared.get(field.rule) == field.type:
            value = construct_name(field.rule)
        self.entries.append((field.name if field else "", wrap[0] + value + wrap[1]))

    def struct(self) -> str:
        """Return the struct of the values so far."""
        entries = self._entries()
        if not self.run:
            return f"cs.Struct({entries})"
        return f"Run({entries}{f', checks=({self.checks})' if self.checks else ''})"

    def inside(self, body: Body) -> str:
        """Return the struct of a body whose fields belong to this run."""
        outer, self.entries = self.entries, []
        self.visit(body)
        entries = self._entries()
        self.entries = outer
        return f"cs.Struct({entries})"

    def _entries(self) -> str:
        return ", ".join(f'"{name}" / {value}' if name else value for name, value in self.entries)

    def expect(self, op: Expect) -> None:
        """Constant octets."""
        kind = "Folded" if op.folded else "cs.Const"
        self.add(op.slot, f"{kind}({octets_literal(op.octets)})")

    def number(self, op: Number) -> None:
        """A number; one that follows from others has its slot."""
        if op.bits:
            self._bits(op)
        elif op.slot.endswith("#"):
            self._prefixes[op.slot] = _number(op.coding)
        elif op.counts or op.checks:
            self.run = True
            self.add(op.slot, _number(op.coding), (f"Derived({op.slot!r}, ", ")"))
        else:
            self.add(op.slot, _number(op.coding))

    def _bits(self, op: Number) -> None:
        """Add the fields of an integer that is made of bits."""
        assert isinstance(op.coding, Integer)
        fields = "".join(f'"{self.fields[bit.slot].name}" / {self._bit(bit)}, ' for bit in op.bits)
        self.entries.append(
            (f"{op.slot}bits", f"Bits({fields}{'little=True' * (op.coding.order == 'little')})")
        )

    def _bit(self, bit: Bit) -> str:
        number = f"cs.BitsInteger({bit.width})"
        if bit.constant is not None:
            return f"cs.Const({bit.constant}, {number})"
        if bit.spare:
            return f"cs.Padding({bit.width})"
        if bit.boolean:
            return "cs.Flag"
        if bit.announces:
            field = self.fields[bit.announces]
            absent = "(None, False)" if isinstance(field.type, ir.PresentType) else "(None,)"
            return f'cs.Rebuild({number}, lambda this: int(this.get("{field.name}") not in {absent}))'
        if bit.counts:
            self.run = True
            return f"Derived({bit.slot!r}, {number})"
        return f"cs.OneOf({number}, {bit.members!r})" if bit.members else number

    def text(self, op: TakeText) -> None:
        """A text."""
        value = TEXT
        match op.extent.kind:
            case "fixed" if op.padding is not None:
                value = f"Padded({op.extent.octets}, {octets_literal(op.padding)})"
            case "fixed":
                value = f"cs.FixedSized({op.extent.octets}, {TEXT})"
            case "slot" if op.extent.slot in self._prefixes:
                value = f'cs.PascalString({self._prefixes[op.extent.slot]}, "utf8")'
            case "until":
                value = f"Until({octets_literal(op.extent.until)}, {TEXT})"
            case "run":
                least = f", {op.extent.octets}" if op.extent.octets else ""
                value = f"Among({octets_literal(op.extent.among)}, {TEXT}{least})"
        value = f"Unterminated({value})" if op.terminated and op.padding is None else value
        self.add(op.slot, value, self._limits(op.extent))

    def octets(self, op: TakeOctets) -> None:
        """Opaque octets."""
        if op.uuid:
            self.add(op.slot, f"Uuid({'little=True' if op.uuid == 'little' else ''})")
            return
        if op.extent.kind == "fixed":
            self.add(op.slot, f"cs.Bytes({op.extent.octets})")
            return
        value = "cs.GreedyBytes"
        if op.extent.slot in self._prefixes:
            value = f"cs.Prefixed({self._prefixes[op.extent.slot]}, {value})"
        value = f"AtLeast({op.minimum}, {value})" if op.minimum else value
        value = value if op.maximum is None else f"AtMost({op.maximum}, {value})"
        self.add(op.slot, value, self._limits(op.extent))

    def _limits(self, extent: Extent) -> tuple[str, str]:
        """Return what surrounds a value that something away from it ends."""
        if extent.kind == "slot" and extent.slot not in self._prefixes:
            self.run = True
            return f"Counted({extent.slot!r}, ", f"{_plus(extent.plus)})"
        if extent.kind == "rest" and extent.octets:
            return f"Before({extent.octets}, ", ")"
        return "", ""

    def word(self, op: Word) -> None:
        """One of several words."""
        words = f"Words({', '.join(map(repr, op.options))})"
        self.add(op.slot, words if op.folded else f"cs.OneOf({TEXT}, {op.options!r})")

    def pad(self, op: Pad) -> None:
        """Octets without meaning."""
        fill = octets_literal(op.fill)
        self.run = self.run or bool(op.multiple)
        self.add(
            op.slot, f"Aligned({op.multiple}, {fill})" if op.multiple else f"cs.Padding({op.octets}, {fill})"
        )

    def loop(self, op: Loop) -> None:
        """Many values."""
        slots = groupby(operations(op.body), lambda one: getattr(one, "slot", "").removesuffix("#"))
        entry = ", ".join(self._item(tuple(body)) for _, body in slots)
        if op.pairs == "both":
            entry = f"cs.Sequence({entry})"
        elif op.pairs:
            entry = f"Divided({entry}{', last=True' if op.pairs == 'last' else ''})"
        if op.count and op.count not in self._prefixes:
            self.run = True
            value = f"Items({op.count!r}, {entry}{_plus(op.plus)})"
        elif op.count:
            value = f"cs.PrefixedArray({self._prefixes[op.count]}, {entry})"
        else:
            value = f"ToEnd({entry}{f', until={octets_literal(op.until)}' if op.until else ''})"
        self.add(op.slot, f"AtLeast({op.minimum}, {value})" if op.minimum else value)

    def _item(self, body: Body) -> str:
        """Return one of the values of an item, with the constants around it."""
        inner = ConstructBody({}, self._declared, self._record)
        inner.visit(body)
        values = [value for _, value in inner.entries]
        if len(values) == 1:
            return values[0]
        parts = (value if value.startswith("cs.Const(") else f'"item" / {value}' for value in values)
        return f'cs.FocusedSeq("item", {", ".join(parts)})'

    def nest(self, op: Nest) -> None:
        """A record."""
        self.add(op.slot, self._record(op.record))

    def choose(self, op: Choose) -> None:
        """One of several records."""
        options = (f"{octets_literal(tag)}: ({name!r}, {self._record(name)})" for tag, name in op.options)
        folded = ", folded=True" if op.folded else ""
        self.add(op.slot, f"Tagged({{{', '.join(options)}}}{folded})")

    def optional(self, op: Optional) -> None:
        """Values that a condition may omit; one that only the end of the octets omits is part of the run."""
        position = len(self.entries)
        if op.when == LEFT and not op.others and not op.boolean:
            self.visit(op.body)
            if len(self.entries) == position + 1:
                name, value = self.entries.pop()
                self.entries.append((name, f'Trailing("{name}", {value})'))
                return
            del self.entries[position:]
        names = tuple(self.fields[slot].name for slot in (op.slot, *op.others))
        said = ", said=True" if op.boolean else ""
        condition, more = self._condition(op.when)
        value = f"{condition}, {names!r}, {self.inside(op.body)}{more}{said})"
        self.entries.append((f"{op.slot}?", value))

    def _condition(self, when: When) -> tuple[str, str]:
        """Return the beginning of a declaration with a condition, and its last arguments."""
        match when.kind:
            case "left":
                return f"IfLeft({when.left}", ""
            case "octets":
                return f"IfNext({octets_literal(when.octets)}", ", folded=True" if when.folded else ""
            case "number":
                mask = f", mask=0x{when.mask:x}" if when.mask else ""
                return f'IfNumber("{self.fields[when.slot].name}", {when.values!r}', mask

    def sized(self, op: Sized) -> None:
        """A size, and a struct of the octets that it counts."""
        forms = "".join(f"({octets_literal(tag)}, {octets}), " for tag, octets in op.forms)
        self.entries.append((self.fields[op.slot].name, f"Sized(({forms}), {self.inside(op.body)})"))

    def region(self, op: Region) -> None:
        """A struct of the octets that an earlier number counts."""
        self.run = True
        self.entries.append(
            (f"{op.count}#", f"Counted({op.count!r}, {self.inside(op.body)}{_plus(op.plus)})")
        )

    def mark(self, op: Mark) -> None:
        """A position."""
        self.run = True
        self.entries.append(("", f"Mark({op.name!r})"))

    def verify(self, op: Verify) -> None:
        """A checksum, which the run checks."""
        self.checks += f"{(op.slot, op.algorithm, op.ranges)!r}, "


def _number(coding: Coding) -> str:
    match coding:
        case Float(octets=octets, order=order):
            return f"cs.Float{8 * octets}{order[0]}"
        case Boolean(octets=octets, order=order):
            return f"cs.Mapping({_integer(octets, order)}, {{False: 0, True: 1}})"
        case Varint(order=order, maximum=maximum, signed=signed):
            big = ", big=True" if order == "big" else ""
            return f"Varint({maximum}{big}{f', signed={signed!r}' if signed else ''})"
        case Digits(base=base, minimum=minimum, maximum=maximum, signed=signed):
            return f"Digits({base}, {minimum}, {maximum}{', signed=True' if signed else ''})"
        case Integer(octets=octets, members=members, order=order, signed=signed):
            number = _integer(octets, order, signed=signed)
            return f"cs.OneOf({number}, {members!r})" if members else number


def _integer(octets: int, order: Order, *, signed: bool = False) -> str:
    if octets in NUMBERS:
        return f"cs.Int{NUMBERS[octets]}{'s' if signed else 'u'}{order[0]}"
    return f"cs.BytesInteger({octets}{', signed=True' * signed}{', swapped=True' * (order == 'little')})"


def _plus(plus: int) -> str:
    return f", {plus}" if plus else ""
