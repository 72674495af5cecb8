"""Numbers in the compiled encoders: values, and what is computed from later octets.

A number that counts later octets is written when they are. If its size is fixed, its place is kept;
else it is inserted. Insertions move the octets after them, so the variables that keep positions
there move, too. Checksums are computed when all octets of the frame or record are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from specwire.generator.emit.native_names import (
    SIGNS,
    Functions,
    Member,
    Statements,
    c_number,
    none_of,
    number_bounds,
)
from specwire.generator.support import plan
from specwire.generator.support.layout import Boolean, Coding, Digits, Float, Integer, Varint
from specwire.generator.support.plan import fixed_octets, is_hidden


class NumberEncoder(Statements):
    """Statements that write numbers.

    Attributes:
        members: members of the class whose values are written, by slot.
        owner: variable of the message or record.
        out: address of the writer.
    """

    def __init__(
        self,
        functions: Functions,
        members: Mapping[str, Member],
        *,
        owner: str = "self",
        out: str = "&out",
        refusal: str = "drop(&out)",
        indent: int = 1,
        depth: str = "0",
    ) -> None:
        super().__init__(functions, refusal, indent, depth)
        self.members = members
        self.owner = owner
        self.out = out
        self.writer = out.removeprefix("&")
        self.base = f"{self.writer}.at"
        self.offset: int | None = None
        """Offset of the next operation from `base`, inside a `Fixed`."""
        self.loops: dict[str, plan.Loop] = {}
        """Loops by the slots of the numbers of their items."""
        self.unknown: dict[str, tuple[str, plan.Number]] = {}
        """Numbers that are not known yet, by slot, and their positions; for bits, the integer."""
        self.deciding: set[str] = set()
        """Slots of numbers that decide what is present."""
        self.known: dict[str, str] = {}
        """Variables of those of these numbers that are written, by slot."""
        self.guards: dict[str, str] = {}
        """Conditions that numbers are present, by slot."""
        self.positions: list[str] = []
        """Variables of positions that an insertion before them moves, in ascending order."""
        self._marks: dict[str, str] = {}
        """Variables of positions between which a checksum covers octets."""
        self._checks: list[plan.Verify] = []

    def must(self, call: str) -> None:
        """Add a call that returns whether it could write its value."""
        self.refuse_if(f"not {call}")

    def value(self, slot: str) -> str:
        """Return the member or variable of a value."""
        match slot:
            case plan.ITEM:
                return self.local("item", "object")
            case plan.NAME | plan.VALUE:
                return f"(<tuple>item)[{int(slot == plan.VALUE)}]"
        return f"{self.owner}._{slot}"

    @property
    def at(self) -> str:
        """Address of the next operation."""
        return f"{self.base} + {self.offset}" if self.offset else self.base

    def position(self, stem: str) -> str:
        """Keep the position of the next operation in a variable."""
        variable = self.fresh(stem, "Py_ssize_t")
        self.add(f"{variable} = written({self.out})" + (f" + {self.offset}" if self.offset else ""))
        self.positions.append(variable)
        return variable

    def insert(self, position: str, call: str, octets: str) -> None:
        """Insert octets, and move the positions after them."""
        self.must(call)
        after = self.positions[self.positions.index(position) + 1 :]
        self.add(*(f"{other} += {octets}" for other in after))

    def resolve_since(self, slot: str, begun: str) -> None:
        """Write the number of the octets since a position."""
        count = self.local("count", "uint64_t")
        self.positions.remove(begun)
        self.add(f"{count} = written({self.out}) - {begun}")
        self._resolve(slot, count)

    def number(self, op: plan.Number) -> None:
        if op.bits:
            self._bits(op)
        elif op.slot in self.loops:
            self._write(op.coding, self._count(op))
        elif is_hidden(op):
            self.unknown[op.slot] = self.position("spot"), op
        else:
            value = self._checked(op)
            self._write(op.coding, value)
            self._keep(op, value)

    def _bits(self, op: plan.Number) -> None:
        """Write an integer that is made of bits; those that are not known yet are 0."""
        bits = self.local("bits", "uint64_t")
        self.add(f"{bits} = {c_number(sum((bit.constant or 0) << bit.shift for bit in op.bits))}")
        for bit in op.bits:
            if bit.counts and bit.slot not in self.loops:
                self.unknown[bit.slot] = self.position("spot"), op
            elif not bit.spare and bit.constant is None:
                value = self._bit(bit)
                self.add(f"{bits} |= {f'<uint64_t>({value}) << {bit.shift}' if bit.shift else value}")
                self._keep(bit, value)
        assert isinstance(op.coding, Integer)
        self._store(op.coding, self.at, bits)

    def _bit(self, bit: plan.Bit) -> str:
        """Return the expression for the number of some bits, after the checks of its value."""
        if bit.announces:
            member = self.members[bit.announces]
            return f"{self.value(bit.announces)} is {'True' if member.is_presence else 'not None'}"
        return self._count(bit) if bit.counts else self._checked(bit)

    def _keep(self, op: plan.Number | plan.Bit, value: str) -> None:
        """Keep a number that decides what is present."""
        if op.slot in self.deciding:
            ends = number_bounds(op)
            variable = self.fresh("number", "int64_t" if ends and ends[0] else "uint64_t")
            self.add(f"{variable} = {value}")
            self.known[op.slot] = variable

    def _count(self, op: plan.Number | plan.Bit) -> str:
        """Return the variable with the number of items of a loop, after its checks."""
        count = self.local("count", "uint64_t")
        self.refuse_if(f"not count_in({self.value(self.loops[op.slot].slot)}, &{count})")
        self._derived(op, count)
        return count

    def _derived(self, op: plan.Number | plan.Bit, value: str) -> None:
        """Check a number that is computed, and add its constant part."""
        if op.plus < 0:
            self.refuse_if(f"{value} < {-op.plus}")
        if op.plus:
            self.add(f"{value} += {op.plus}")
        ends = number_bounds(op)
        if ends and ends[1] < 2**64 - 1:
            self.refuse_if(f"{value} > {c_number(ends[1])}")
        if members := _members(op):
            self.refuse_if(none_of(value, members))

    def _checked(self, op: plan.Number | plan.Bit) -> str:
        """Return the expression for a number, after the checks of its value."""
        value, ends = self.value(op.slot), number_bounds(op)
        if op.boolean if isinstance(op, plan.Bit) else isinstance(op.coding, Boolean):
            self.refuse_if(f"{value} is not True and {value} is not False")
            return f"{value} is True"
        if ends is None:
            return value
        member = self.members.get(op.slot)
        if member is None or member.range is None:
            least, most = ends
            bound = f"{c_number(least)}, {c_number(most)}" if least else c_number(most)
            self.local("value", "uint64_t")
            self.must(f"fits{'_signed' * bool(least)}(<PyObject*>{value}, {bound}, &value)")
            value = "<int64_t>value" if least else "value"
        if members := _members(op):
            self.refuse_if(none_of(value, members))
        announces = isinstance(op, plan.Number) and op.flags and self.functions.announcing
        return "flags" if announces else value

    def _write(self, coding: Coding, value: str) -> None:
        """Write a number at the end."""
        match coding:
            case Integer() | Boolean():
                self._store(coding, self.at, value)
            case Float(octets=octets, order=order):
                self.must(f"put_float({self.at}, {value}, {octets}, {order == 'little'})")
            case _:
                size = self.local("size", "int")
                if self.offset is None:
                    self.must(f"room({self.out}, MOST_OCTETS)")
                self.add(f"{size} = {_variable(coding, self.at, value)}")
                self.refuse_if(f"not {size}")
                if self.offset is None:
                    self.add(f"{self.base} += {size}")

    def _store(self, coding: Integer | Boolean, at: str, value: str) -> None:
        self.add(f"put_number{'_little' * (coding.order == 'little')}({at}, {value}, {coding.octets})")

    def _resolve(self, slot: str, value: str) -> None:
        """Write a number that was not known at its position, from the variable `value`."""
        position, op = self.unknown.pop(slot)
        spot = f"{self.writer}.begin + {position}"
        counter = next((bit for bit in op.bits if bit.slot == slot), op)
        self._derived(counter, value)
        self._keep(counter, value)
        if isinstance(counter, plan.Bit):
            self._add_bits(op, counter, spot, value)
        elif isinstance(op.coding, Integer):
            self._store(op.coding, spot, value)
        elif not isinstance(op.coding, Float | Boolean):
            self._resolve_variable(op, position, value)
        self.positions.remove(position)

    def _add_bits(self, op: plan.Number, bit: plan.Bit, spot: str, value: str) -> None:
        """Write bits that were not known when their integer was written."""
        assert isinstance(op.coding, Integer)
        known = f"number{'_little' * (op.coding.order == 'little')}({spot}, {op.coding.octets})"
        self._store(op.coding, spot, f"{known} | {value} << {bit.shift}")

    def _resolve_variable(self, op: plan.Number, position: str, value: str) -> None:
        size = self.local("size", "int")
        self.local("digits", "uint8_t[MOST_OCTETS]")
        self.add(f"{size} = {_variable(op.coding, 'digits', value)}")
        self.refuse_if(f"not {size}")
        if fixed := fixed_octets(op):
            self.add(f"memcpy({self.writer}.begin + {position}, digits, {fixed})")
        else:
            self.insert(position, f"insert({self.out}, {position}, digits, {size})", size)

    def mark(self, op: plan.Mark) -> None:
        variable = self._marks.get(op.name)
        if variable is None:
            self._marks[op.name] = self.position("mark")
            return
        # It was set for the case that operations are omitted.
        self.add(f"{variable} = written({self.out})")
        self.positions.remove(variable)
        self.positions.append(variable)

    def verify(self, op: plan.Verify) -> None:
        self._checks.append(op)

    def checksums(self) -> None:
        """Compute and write the checksums of a frame or record."""
        for check in self._checks:
            guard = self.guards.get(check.slot)
            with self.block(f"if {guard}:") if guard else nullcontext():
                self._checksum(check)
        self._checks, self._marks = [], {}

    def _checksum(self, check: plan.Verify) -> None:
        octets, value = self.local("octets", "bytes"), self.local("value", "uint64_t")
        for number, names in enumerate(check.ranges):
            begin, end = (self._marks[name] for name in names)
            ranged = f"bytes_of({self.writer}.begin + {begin}, {end} - {begin})"
            self.add(f"{octets} {'+=' if number else '='} {ranged}")
        self.must(f"checksum_of({check.algorithm!r}, {octets}, &{value})")
        self._resolve(check.slot, value)


def _members(op: plan.Number | plan.Bit) -> tuple[int, ...]:
    """Return the allowed values of a number; empty if any value is allowed."""
    if isinstance(op, plan.Bit):
        return op.members
    return op.coding.members if isinstance(op.coding, Integer) else ()


def _variable(coding: Coding, at: str, value: str) -> str:
    """Return the call that writes a number of variable size at an address."""
    if isinstance(coding, Varint):
        little = coding.order == "little"
        return f"varint_at({at}, {value}, {coding.maximum}, {little}, {SIGNS[coding.signed]})"
    assert isinstance(coding, Digits)
    return f"digits_at({at}, {value}, {coding.base}, {coding.minimum}, {coding.maximum}, {coding.signed})"
