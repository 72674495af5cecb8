"""Emitter of the compiled encoders: `Encoder` emits the statements that write the operations of one frame or record.

A number that counts later octets is written when they are: it has its place if its size is fixed, else it is
inserted. Insertions move the octets after them, so the positions kept in variables move, too. Checksums are computed
last. A function returns None or False for a value that it cannot write: of another type than expected (the pure
codec also accepts subclasses and views), too long, or one that would decode differently. Then the pure codec writes
the value or raises the error. The functions of values inside others are ``_put_<name>(out, given)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from specwire.generator.emit.bodies import choice_function, flat, record_function
from specwire.generator.emit.native_names import (
    SIGNS,
    Functions,
    Member,
    Statements,
    bounds,
    c_number,
    is_hidden,
    is_padded,
    literal,
    merged,
    none_of,
    record_members,
)
from specwire.generator.support import plan
from specwire.generator.support.layout import Boolean, Coding, Digits, Float, Integer, Varint
from specwire.generator.support.plan import VALUE, fixed_octets


class Encoder(Statements, plan.Visitor):
    """Statements that write the operations of one body; `owner` is the variable of the message or record."""

    def __init__(
        self,
        functions: Functions,
        members: Mapping[str, Member],
        *,
        owner: str = "self",
        out: str = "&out",
        refusal: str = "drop(&out)",
        indent: int = 1,
    ) -> None:
        super().__init__(functions, refusal, indent)
        self.members = members
        self.owner = owner
        self.out = out
        self.writer = out.removeprefix("&")
        self.divided: bool | None = None
        """For a loop of texts that are pairs: whether each is split at its first ``=``, rather than its last."""
        self._base = f"{self.writer}.at"
        self._offset: int | None = None
        """Offset of the next operation from the end of what is written, inside a `Fixed`."""
        self._loops: dict[str, plan.Loop] = {}
        """Loops by the slots of the numbers of their items."""
        self._numbers: dict[str, tuple[str, plan.Number]] = {}
        """Positions of numbers that are not known yet, by slot."""
        self._marks: dict[str, str] = {}
        self._positions: list[str] = []
        """Variables of positions that an insertion before them moves, in ascending order."""
        self._begun = ""
        """Variable with the position of the body, if it has padding to a multiple."""
        self._outside: set[str] = set()
        """Numbers that are not known yet and stand before the body."""
        self._checks: list[plan.Verify] = []
        self._before = ""
        """Condition that the last optional value is absent."""

    def whole(self, body: plan.Body) -> None:
        """Write a whole frame or record, or an item of a loop."""
        self._checks, self._marks = [], {}
        self._loops = {op.count: op for op in flat(body) if isinstance(op, plan.Loop) and op.count}
        self._body(body)
        for check in self._checks:
            self._checksum(check)

    def _body(self, body: plan.Body) -> None:
        outer = self._begun, self._outside, self._before
        self._outside, self._before = set(self._numbers), ""
        if is_padded(body):
            self._begun = self._position("begun")
        self.visit(body)
        if is_padded(body):
            self._positions.remove(self._begun)
        self._begun, self._outside, self._before = outer

    def must(self, call: str) -> None:
        """Add a call that returns whether it could write its value."""
        self.refuse_if(f"not {call}")

    def value(self, slot: str) -> str:
        """Return the member or variable of a value."""
        match slot:
            case "[]":
                return self.local("item", "object")
            case "[name]" | "[value]":
                return f"(<tuple>item)[{int(slot == VALUE)}]"
        return f"{self.owner}._{slot}"

    # Positions

    def _position(self, stem: str) -> str:
        """Keep the position of the next operation in a variable."""
        variable = self.fresh(stem, "Py_ssize_t")
        self.add(f"{variable} = written({self.out})" + (f" + {self._offset}" if self._offset else ""))
        self._positions.append(variable)
        return variable

    def _insert(self, position: str, call: str, octets: str) -> None:
        """Insert octets, and move the positions after them."""
        self.must(call)
        after = self._positions[self._positions.index(position) + 1 :]
        self.add(*(f"{other} += {octets}" for other in after))

    def _is_settled(self) -> bool:
        """Return whether nothing is inserted later into what is written of the body."""
        return all(fixed_octets(op) for slot, (_, op) in self._numbers.items() if slot not in self._outside)

    def _flush(self) -> None:
        """Continue after the fixed octets that are written in place."""
        if self._offset:
            self.add(f"{self._base} += {self._offset}")
            self._offset = 0

    # Operations

    def fixed(self, op: plan.Fixed) -> None:
        if op.octets:
            self.must(f"room({self.out}, {op.octets})")
            self.in_place(op, self._base)
            self._flush()
            self._offset = None

    def in_place(self, op: plan.Fixed, base: str) -> None:
        """Write operations of fixed size at an address."""
        self._base, self._offset = base, 0
        for inner in merged(op.body):
            flushed = isinstance(inner, plan.TakeText | plan.TakeOctets)
            if flushed:
                self._flush()
            self.operation(inner)
            self._offset += 0 if flushed else fixed_octets(inner) or 0

    @property
    def _at(self) -> str:
        return f"{self._base} + {self._offset}" if self._offset else self._base

    def expect(self, op: plan.Expect) -> None:
        self.add(f"memcpy({self._at}, <const char*>{literal(op.octets)}, {len(op.octets)})")

    def pad(self, op: plan.Pad) -> None:
        fill = f"0x{op.fill.hex()}"
        if op.multiple:
            if not self._is_settled():
                # Always true: the pure codec writes a frame whose positions are not known yet.
                self.refuse_if(f"{self.writer}.begin != NULL")
            self.must(
                f"put_padding({self.out}, gap(written({self.out}) - {self._begun}, {op.multiple}), {fill})"
            )
        else:
            self.add(f"memset({self._at}, {fill}, {op.octets})")

    def number(self, op: plan.Number) -> None:
        if op.slot in self._loops:
            self._count(op, self._loops[op.slot])
        elif is_hidden(op):
            self._numbers[op.slot] = self._position("spot"), op
        else:
            self._write(op.coding, self._checked(op))

    def _count(self, op: plan.Number, loop: plan.Loop) -> None:
        count = self.local("count", "uint64_t")
        self.refuse_if(f"not count_in({self.value(loop.slot)}, &{count})")
        self._derived(op, count)
        self._write(op.coding, count)

    def _derived(self, op: plan.Number, value: str) -> None:
        """Check a number that is computed, and add its constant part."""
        if op.plus < 0:
            self.refuse_if(f"{value} < {-op.plus}")
        if op.plus:
            self.add(f"{value} += {op.plus}")
        ends = bounds(op.coding)
        if ends and ends[1] < 2**64 - 1:
            self.refuse_if(f"{value} > {c_number(ends[1])}")
        if isinstance(op.coding, Integer) and op.coding.members:
            self.refuse_if(none_of(value, op.coding.members))

    def _checked(self, op: plan.Number) -> str:
        """Return the expression for a number, after the checks of its value."""
        value, coding = self.value(op.slot), op.coding
        if isinstance(coding, Boolean):
            self.refuse_if(f"{value} is not True and {value} is not False")
            return f"{value} is True"
        ends = bounds(coding)
        if ends is None:
            return value
        member = self.members.get(op.slot)
        if member is None or member.range is None:
            least, most = ends
            bound = f"{c_number(least)}, {c_number(most)}" if least else c_number(most)
            self.local("value", "uint64_t")
            self.must(f"fits{'_signed' * bool(least)}(<PyObject*>{value}, {bound}, &value)")
            value = "<int64_t>value" if least else "value"
        if isinstance(coding, Integer) and coding.members:
            self.refuse_if(none_of(value, coding.members))
        return "flags" if op.flags and self.functions.announcing else value

    def _write(self, coding: Coding, value: str) -> None:
        """Write a number at the end."""
        match coding:
            case Integer() | Boolean():
                self._store(coding, self._at, value)
            case Float(octets=octets, order=order):
                self.must(f"put_float({self._at}, {value}, {octets}, {order == 'little'})")
            case _:
                size = self.local("size", "int")
                if self._offset is None:
                    self.must(f"room({self.out}, MOST_OCTETS)")
                self.add(f"{size} = {_variable(coding, self._at, value)}")
                self.refuse_if(f"not {size}")
                if self._offset is None:
                    self.add(f"{self._base} += {size}")

    def _store(self, coding: Integer | Boolean, at: str, value: str) -> None:
        self.add(f"put_number{'_little' * (coding.order == 'little')}({at}, {value}, {coding.octets})")

    def _resolve(self, slot: str, value: str) -> None:
        """Write a number that was not known at its position, from the variable `value`."""
        position, op = self._numbers.pop(slot)
        self._derived(op, value)
        spot = f"{self.writer}.begin + {position}"
        if isinstance(op.coding, Integer):
            self._store(op.coding, spot, value)
        elif not isinstance(op.coding, Float | Boolean):
            self._resolve_variable(op, position, value)
        self._positions.remove(position)

    def _resolve_variable(self, op: plan.Number, position: str, value: str) -> None:
        size = self.local("size", "int")
        self.local("digits", "uint8_t[MOST_OCTETS]")
        self.add(f"{size} = {_variable(op.coding, 'digits', value)}")
        self.refuse_if(f"not {size}")
        if fixed := fixed_octets(op):
            self.add(f"memcpy({self.writer}.begin + {position}, digits, {fixed})")
        else:
            self._insert(position, f"insert({self.out}, {position}, digits, {size})", size)

    def text(self, op: plan.TakeText) -> None:
        value, out, extent = self.value(op.slot), self.out, op.extent
        begun = self._begin(extent)
        if self.divided is not None:
            call = f"put_divided({out}, (<tuple>item)[0], (<tuple>item)[1], {self.divided})"
        elif op.padding is not None:
            call = f"put_padded({out}, {value}, {extent.octets}, 0x{op.padding.hex()})"
        elif extent.kind == "fixed":
            call = f"put_fixed_text({out}, {value}, {extent.octets})"
        elif extent.kind == "until":
            call = f"put_text_until({out}, {value}, {literal(extent.until)}, {len(extent.until)})"
        else:
            call = f"{'put_terminated' if op.terminated else 'put_text'}({out}, {value})"
        self.must(call)
        self._finish(extent, begun)

    def octets(self, op: plan.TakeOctets) -> None:
        value, extent = self.value(op.slot), op.extent
        begun = self._begin(extent)
        least, most = op.minimum, -1 if op.maximum is None else op.maximum
        if extent.kind == "fixed":
            least = most = extent.octets
        if op.uuid:
            value = f"octets_of_uuid({value}, {op.uuid == 'little'})"
        self.must(f"put_content({self.out}, {value}, {least}, {most})")
        self._finish(extent, begun)

    def _begin(self, extent: plan.Extent) -> str:
        """Keep the position of a value whose octets are counted, or that may have the wrong number of them."""
        counted = extent.kind == "slot" or (extent.kind == "fixed" and self.divided is not None)
        return self._position("begun") if counted else ""

    def _finish(self, extent: plan.Extent, begun: str) -> None:
        if begun and extent.kind == "slot":
            self._counted(extent.slot, begun)
        elif begun:
            self._positions.remove(begun)
            self.refuse_if(f"written({self.out}) - {begun} != {extent.octets}")

    def _counted(self, slot: str, begun: str) -> None:
        """Write the number of the octets since a position."""
        count = self.local("count", "uint64_t")
        self._positions.remove(begun)
        self.add(f"{count} = written({self.out}) - {begun}")
        self._resolve(slot, count)

    def word(self, op: plan.Word) -> None:
        value = self.value(op.slot)
        self.refuse_if(f"type({value}) is not str")
        for number, option in enumerate(op.options):
            octets = option.encode()
            with self.block(f"{'elif' if number else 'if'} <str>{value} == {literal(option)}:"):
                self.must(f"put_literal({self.out}, {literal(octets)}, {len(octets)})")
        with self.block("else:"):
            self.add(f"return {self.refusal}")

    def loop(self, op: plan.Loop) -> None:
        value, name = self.value(op.slot), self.functions.loop(op)
        member = self.members.get(op.slot)
        if member and member.is_held:
            with self.block(f"if type({value}) is bytes:"):
                self.must(f"put_held({self.out}, <bytes>{value})")
            with self.block("else:"):
                self.must(f"_put_{name}({self.out}, {value})")
        else:
            self.must(f"_put_{name}({self.out}, {value})")

    def nest(self, op: plan.Nest) -> None:
        self.must(f"_put_{record_function(op.record)}({self.out}, {self.value(op.slot)})")

    def choose(self, op: plan.Choose) -> None:
        self.must(f"_put_{choice_function(op.options)}({self.out}, {self.value(op.slot)})")

    def optional(self, op: plan.Optional) -> None:
        """Write a value that may be omitted with all later ones; an empty one is like an absent one."""
        value, before, numbers = self.value(op.slot), self._before, set(self._numbers)
        self._before = f"{value} is None"
        with self.block(f"if {value} is not None:"):
            if before:
                self.refuse_if(before)
            begun = self._position("begun")
            self.visit(op.body)
            self._positions.remove(begun)
            self.refuse_if(f"written({self.out}) == {begun}")
        if numbers - set(self._numbers):
            # The pure codec knows the number of the octets of an absent value.
            with self.block("else:"):
                self.add(f"return {self.refusal}")

    def region(self, op: plan.Region) -> None:
        begun = self._position("begun")
        self._body(op.body)
        self._counted(op.count, begun)

    def sized(self, op: plan.Sized) -> None:
        ((tag, octets), *others) = op.forms
        if not others:
            self.must(f"put_literal({self.out}, {literal(tag + bytes(octets))}, {len(tag) + octets})")
        begun, size = self._position("begun"), self.local("count", "uint64_t")
        self._body(op.body)
        self.add(f"{size} = written({self.out}) - {begun}")
        if others:
            self._insert_size(op, begun, size)
        else:
            self.refuse_if(f"not ({_holds(tag, octets, op, size)})")
            self.add(f"put_number({self.writer}.begin + {begun} - {octets}, {size}, {octets})")
        self._positions.remove(begun)

    def _insert_size(self, op: plan.Sized, begun: str, size: str) -> None:
        """Insert the first form that can hold a size."""
        for number, (tag, octets) in enumerate(op.forms):
            call = f"insert_size({self.out}, {begun}, {literal(tag)}, {len(tag)}, {octets})"
            with self.block(f"{'elif' if number else 'if'} {_holds(tag, octets, op, size)}:"):
                self._insert(begun, call, str(len(tag) + octets))
        with self.block("else:"):
            self.add(f"return {self.refusal}")

    def mark(self, op: plan.Mark) -> None:
        self._marks[op.name] = self._position("mark")

    def verify(self, op: plan.Verify) -> None:
        self._checks.append(op)

    def _checksum(self, check: plan.Verify) -> None:
        octets, value = self.local("octets", "bytes"), self.local("value", "uint64_t")
        for number, names in enumerate(check.ranges):
            begin, end = (self._marks[name] for name in names)
            ranged = f"bytes_of({self.writer}.begin + {begin}, {end} - {begin})"
            self.add(f"{octets} {'+=' if number else '='} {ranged}")
        self.must(f"checksum_of({check.algorithm!r}, {octets}, &{value})")
        self._resolve(check.slot, value)


def _variable(coding: Coding, at: str, value: str) -> str:
    """Return the call that writes a number of variable size at an address."""
    if isinstance(coding, Varint):
        little = coding.order == "little"
        return f"varint_at({at}, {value}, {coding.maximum}, {little}, {SIGNS[coding.signed]})"
    assert isinstance(coding, Digits)
    return f"digits_at({at}, {value}, {coding.base}, {coding.minimum}, {coding.maximum}, {coding.signed})"


def _holds(tag: bytes, octets: int, op: plan.Sized, size: str) -> str:
    """Return the condition that a form can hold a size; without a tag, it must not look like another form."""
    conditions = [f"{size} < {c_number(256**octets)}"] if octets < 8 else []
    for other, _ in op.forms if not tag else ():
        if other and len(other) <= octets:
            shift = 8 * (octets - len(other))
            conditions.append(f"{size} >> {shift} != {c_number(int.from_bytes(other, 'big'))}")
    return " and ".join(conditions) or "True"


# Functions


def put_record(record: plan.RecordPlan, functions: Functions) -> str:
    """Return the body of ``_put_<record>(Writer* out, object given)``."""
    name = record.class_name
    members = record_members(record.body)
    encoder = Encoder(functions, members, owner="record", out="out", refusal="False")
    encoder.refuse_if(f"type(given) is not {name}")
    encoder.add(f"cdef {name} record = <{name}>given")
    encoder.refuse_if("record.kept__ is not None")
    encoder.whole(record.body)
    encoder.add("return True")
    return encoder.source()


def put_choice(options: Sequence[tuple[bytes, str]], functions: Functions) -> str:
    """Return the body of ``_put_<choice>(Writer* out, object given)``."""
    statements = Statements(functions, "False", 1)
    for _, record in options:
        with statements.block(f"if type(given) is {record}:"):
            statements.add(f"return _put_{record_function(record)}(out, given)")
    statements.add("return False")
    return statements.source()


def put_loop(op: plan.Loop, functions: Functions) -> str:
    """Return the body of ``_put_<loop>(Writer* out, object given)``."""
    encoder = Encoder(functions, {}, out="out", refusal="False")
    encoder.divided = None if op.pairs in ("", "both") else op.pairs == "first"
    items, item = encoder.local("items", "tuple"), encoder.local("item", "object")
    encoder.refuse_if("type(given) is not tuple")
    encoder.add(f"{items} = <tuple>given")
    if op.minimum:
        encoder.refuse_if(f"len({items}) < {op.minimum}")
    with encoder.block(f"for {item} in {items}:"):
        if op.pairs:
            encoder.refuse_if(f"type({item}) is not tuple or len(<tuple>{item}) != 2")
        encoder.whole(op.body)
    encoder.add("return True")
    return encoder.source()
