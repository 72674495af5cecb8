"""Emitter of the compiled decoders: Cython that reads octets through a pointer.

A decoder returns the message, or None for frames that are not its message; it never raises for
them. Then the pure codec decides. The functions of values inside others:

- ``_take_<name>(run)`` returns a record, or None if it refuses the octets
- ``_take_<name>(run, count)`` returns the items of a loop as a tuple
- ``_skip_<name>(run, count)`` only checks the items, for loops that are held as octets

If a record can contain itself, each has the argument ``depth``: the number of records around it.
"""

from __future__ import annotations

from collections.abc import Mapping

from specwire.generator.emit.bodies import choice_function, record_function
from specwire.generator.emit.native_names import (
    POINTER,
    SIGNS,
    Functions,
    Member,
    Statements,
    begins,
    c_number,
    conditions,
    decided,
    is_padded,
    less,
    literal,
    marks,
    merged,
    none_of,
    numbers,
    ranges,
    record_members,
    same,
)
from specwire.generator.support import plan
from specwire.generator.support.layout import Boolean, Digits, Float, Integer, Varint
from specwire.generator.support.plan import ITEM, NAME, VALUE, fixed_octets, is_hidden


class Reader(Statements, plan.Visitor):
    """Statements that read the operations of bodies.

    Values are assigned to the members of `made`, or to variables of a loop. With `keep` False, they
    are only checked.
    """

    def __init__(
        self,
        functions: Functions,
        members: Mapping[str, Member],
        *,
        run: str = "&run",
        refusal: str = "None",
        keep: bool = True,
        depth: str = "0",
    ) -> None:
        super().__init__(functions, refusal, 1, depth)
        self.members = members
        self.run = run
        self.front = f"{run.removeprefix('&')}.at"
        self.end = f"{run.removeprefix('&')}.end"
        self.keep = keep
        self.divided: bool | None = None
        """Whether texts that are pairs are split at their first ``=``, rather than their last."""
        self._offset: int | None = None
        """Offset of the next operation of a `Fixed`."""
        self._begun = ""
        """Variable with the address of the body, if it has padding to a multiple."""
        self._numbers: dict[str, str] = {}
        """Variables of hidden numbers, of those that decide what is present, and of marks."""
        self._deciding: set[str] = set()
        """Slots of numbers that decide what is present."""
        self._guards: dict[str, str] = {}
        """Conditions that numbers are present, by slot."""
        self._last: plan.Optional | None = None
        """Last operation of the body that the end of the octets can omit."""

    # Places

    @property
    def at(self) -> str:
        """Address of the octets of the next operation."""
        return f"{self.front} + {self._offset}" if self._offset else self.front

    def target(self, slot: str) -> str:
        """Return the member or variable for a value."""
        if slot in (ITEM, VALUE):
            return self.local("item", "object")
        return self.local("name", "object") if slot == NAME else f"made._{slot}"

    def number_of(self, slot: str, type: str = "uint64_t") -> str:
        """Return the variable of a number that later operations need."""
        if slot not in self._numbers:
            self._numbers[slot] = self.fresh("number", type)
        return self._numbers[slot]

    def take(self, slot: str, value: str, *, fallible: bool = True) -> None:
        """Assign a value to its target; a fallible one is None if it is refused."""
        target = self.target(slot)
        self.add(f"{target} = {value}")
        if fallible:
            self.refuse_if(f"{target} is None")

    # Operations

    def body(self, body: plan.Body) -> None:
        """Read a body, from the front of the run."""
        outer = self._begun, self._last
        self._last = None
        self._deciding |= conditions(body)
        if is_padded(body):
            self._begun = self.fresh("begun", POINTER)
            self.add(f"{self._begun} = {self.front}")
        self.visit(body)
        self._begun, self._last = outer

    def fixed(self, op: plan.Fixed) -> None:
        if not op.octets:
            return
        inside = merged(op.body)
        if len(inside) == 1 and isinstance(constant := inside[0], plan.Expect) and not constant.folded:
            self.refuse_if(f"not take({self.run}, {literal(constant.octets)}, {op.octets})")
            return
        self.refuse_if(f"left({self.run}) < {op.octets}")
        self._offset = 0
        for inner in inside:
            self.operation(inner)
            self._offset += fixed_octets(inner) or 0
        self._offset = None
        self.add(f"{self.front} += {op.octets}")

    def expect(self, op: plan.Expect) -> None:
        self.refuse_if(f"not {same(self.at, op.octets, folded=op.folded)}")

    def number(self, op: plan.Number) -> None:
        if op.bits:
            self._bits(op)
            return
        coding, hidden = op.coding, is_hidden(op)
        members = (0, 1) if isinstance(coding, Boolean) else getattr(coding, "members", ())
        if not (self.keep or hidden or members):
            return
        value, type = self._number(op), "int64_t" if _signed(op) else "uint64_t"
        if members:
            checked = self.local("signed_value" if _signed(op) else "value", type)
            self.add(f"{checked} = {value}")
            self.refuse_if(none_of(checked, members))
            value = f"{checked} == 1" if isinstance(coding, Boolean) else checked
        if hidden or op.slot in self._deciding:
            self.add(f"{self.number_of(op.slot, type)} = {value}")
        if self.keep and not hidden:
            self.take(op.slot, value, fallible=False)
        if op.flags and self.functions.announcing and isinstance(coding, Integer):
            member = self.target(op.slot)
            self.add(f"{self.local('flags', 'uint64_t')} = {member}")
            self.add(f"{member} &= {256**coding.octets - 1 - self.functions.announcing:#04x}")

    def _bits(self, op: plan.Number) -> None:
        """Read an integer that is made of bits."""
        self.add(f"{self.local('bits', 'uint64_t')} = {self._number(op)}")
        for bit in op.bits:
            if bit.spare:
                continue
            value = f"(bits >> {bit.shift})" if bit.shift else "bits"
            value = f"{value} & {c_number(2**bit.width - 1)}" if bit.width < 64 else value
            members = bit.members if bit.constant is None else (bit.constant,)
            if members:
                self.add(f"{self.local('value', 'uint64_t')} = {value}")
                value = "value"
                self.refuse_if(none_of(value, members))
            if bit.counts or bit.announces or bit.slot in self._deciding:
                self.add(f"{self.number_of(bit.slot)} = {value}")
            if not is_hidden(bit):
                self.take(bit.slot, f"({value}) == 1" if bit.boolean else value, fallible=False)

    def _number(self, op: plan.Number) -> str:
        """Return the expression of a number; statements that it needs are added."""
        match coding := op.coding:
            case Float(octets=octets):
                return f"float_in({self.at}, {octets}, {coding.order == 'little'})"
            case Boolean(octets=octets) | Integer(octets=octets):
                value = f"number{'_little' * (coding.order == 'little')}({self.at}, {octets})"
                return f"extended({value}, {8 * octets})" if _signed(op) else value
            case Varint(maximum=maximum, signed=signed):
                self._variable(f"varint_in(&value, {self.at}, {self.end}, {maximum}, "
                               f"{coding.order == 'little'}, {SIGNS[signed]})")  # fmt: skip
            case Digits(base=base, minimum=minimum, maximum=maximum, signed=signed):
                self._variable(
                    f"digits_in(&value, {self.at}, {self.end}, {base}, {minimum}, {maximum}, {signed})"
                )
        return "<int64_t>value" if _signed(op) else "value"

    def _variable(self, call: str) -> None:
        """Read a number of variable size, or digits of fixed size, into the variable ``value``."""
        self.local("value", "uint64_t")
        after = self.local("after", POINTER)
        self.add(f"{after} = {call}")
        self.refuse_if(f"{after} == NULL")
        if self._offset is None:
            self.add(f"{self.front} = {after}")

    def text(self, op: plan.TakeText) -> None:
        self._split(op.extent)
        if op.padding is not None:
            self.add(f"strip(&piece, 0x{op.padding.hex()})")
        elif op.terminated:
            self.refuse_if("not strip_nul(&piece)")
        first = "" if self.divided is None else f", {self.divided}"
        if self.keep:
            self.take(op.slot, f"{'divided' if first else 'text'}_in(&piece{first})")
        else:
            self.refuse_if(f"not {'divided' if first else 'text'}_is_good(&piece{first})")

    def octets(self, op: plan.TakeOctets) -> None:
        if op.extent.kind == "fixed":
            value = f"bytes_of({self.at}, {op.extent.octets})"
        else:
            self._split(op.extent)
            self.check_octets(op, "left(&piece)")
            value = "bytes_in(&piece)"
        if self.keep:
            value = f"uuid_of({value}, {op.uuid == 'little'})" if op.uuid else value
            self.take(op.slot, value, fallible=False)

    def _split(self, extent: plan.Extent) -> None:
        """Split the octets of a value off into the variable ``piece``."""
        piece = self.local("piece", "Run")
        match extent.kind:
            case "fixed":
                self.add(f"{piece}.at = {self.at}", f"{piece}.end = {piece}.at + {extent.octets}")
                return
            case "slot":
                call = f"split({self.run}, {less(self.number_of(extent.slot), extent.plus)}, &piece)"
            case "until":
                call = f"split_until({self.run}, {literal(extent.until)}, {len(extent.until)}, &piece)"
            case "run":
                call = f"split_run({self.run}, {ranges(extent.among)}, {extent.octets}, &piece)"
            case "rest":
                call = f"split_rest({self.run}, {extent.octets}, &piece)"
        self.refuse_if(f"not {call}")

    def word(self, op: plan.Word) -> None:
        for number, option in enumerate(op.options):
            octets = option.encode()
            test = f"left({self.run}) == {len(octets)} and {same(self.front, octets, folded=op.folded)}"
            with self.block(f"{'elif' if number else 'if'} {test}:"):
                self.take(op.slot, literal(option), fallible=False)
        with self.block("else:"):
            self.add(f"return {self.refusal}")
        self.add(f"{self.front} = {self.end}")

    def pad(self, op: plan.Pad) -> None:
        if op.multiple:
            self.refuse_if(f"not skip({self.run}, gap({self.front} - {self._begun}, {op.multiple}))")

    def loop(self, op: plan.Loop) -> None:
        name = self.functions.loop(op)
        count = less(self.number_of(op.count), op.plus) if op.count else "0"
        member = self.members.get(op.slot)
        if member and member.is_held:
            start = self.local("start", POINTER)
            self.add(f"{start} = {self.front}")
            self.refuse_if(f"not _skip_{name}({self.run}, {count}{self.depth})")
            self.take(op.slot, f"held({start}, {self.front}, {count})", fallible=False)
        elif self.keep:
            self.take(op.slot, f"_take_{name}({self.run}, {count}{self.depth})")
        else:
            self.refuse_if(f"not _skip_{name}({self.run}, {count}{self.depth})")

    def nest(self, op: plan.Nest) -> None:
        self.take(op.slot, f"_take_{record_function(op.record)}({self.run}{self.depth})")

    def choose(self, op: plan.Choose) -> None:
        self.take(op.slot, f"_take_{choice_function(op.options)}({self.run}{self.depth})")

    def optional(self, op: plan.Optional) -> None:
        for name in marks(op.body):
            self.mark(plan.Mark(name))
        with self.block(f"if {self._condition(op)}:"):
            self.visit(op.body)
            if op.boolean:
                self.take(op.slot, "True", fallible=False)
        if op.boolean:
            with self.block("else:"):
                self.take(op.slot, "False", fallible=False)
        self._guards |= {number.slot: self._presence(op) for number in numbers(op.body)}

    def _presence(self, op: plan.Optional) -> str:
        """Return the condition that operations were performed."""
        return f"{self.target(op.slot)} is {'True' if op.boolean else 'not None'}"

    def _condition(self, op: plan.Optional) -> str:
        """Return the condition of operations that may be omitted."""
        when = op.when
        match when.kind:
            case "octets":
                return begins(self.run, self.front, when.octets, folded=when.folded)
            case "number":
                return self._if_present(when.slot, decided(when, self.number_of(when.slot)))
            case "left":
                last, self._last = self._last, op
                condition = f"left({self.run})" + (f" > {when.left}" if when.left else "")
                if last and last.when.left > when.left:
                    condition += f" and {self._presence(last)}"
                return condition

    def _if_present(self, slot: str, condition: str) -> str:
        """Return a condition on a number, which is not met if the number may be omitted and is."""
        return f"{self._guards[slot]} and {condition}" if slot in self._guards else condition

    def sized(self, op: plan.Sized) -> None:
        size = self.local("size", "uint64_t")
        # A form without a tag is the last that is tried.
        forms = sorted(op.forms, key=lambda form: not form[0])
        for number, (tag, octets) in enumerate(forms):
            if not tag and not number:
                self._size(size, tag, octets)
                break
            test = begins(self.run, self.front, tag)
            with self.block(f"{'elif' if number else 'if'} {test}:" if tag else "else:"):
                self._size(size, tag, octets)
        if forms[-1][0]:
            with self.block("else:"):
                self.add(f"return {self.refusal}")
        self._inside(size, op.body)

    def _size(self, size: str, tag: bytes, octets: int) -> None:
        at = f"{self.front} + {len(tag)}" if tag else self.front
        self.refuse_if(f"left({self.run}) < {len(tag) + octets}")
        self.add(f"{size} = number({at}, {octets})", f"{self.front} += {len(tag) + octets}")

    def region(self, op: plan.Region) -> None:
        self._inside(less(self.number_of(op.count), op.plus), op.body)

    def _inside(self, size: str, body: plan.Body) -> None:
        """Read a body that has exactly `size` octets."""
        end = self.fresh("end", POINTER)
        self.refuse_if(f"{size} > <uint64_t>left({self.run})")
        self.add(f"{end} = {self.end}", f"{self.end} = {self.front} + {size}")
        self.body(body)
        self.refuse_if(f"{self.front} != {self.end}")
        self.add(f"{self.end} = {end}")

    def mark(self, op: plan.Mark) -> None:
        if op.name not in self._numbers:
            self._numbers[op.name] = self.fresh("mark", POINTER)
        self.add(f"{self._numbers[op.name]} = {self.front}")

    def verify(self, op: plan.Verify) -> None:
        octets, value = self.local("octets", "bytes"), self.local("value", "uint64_t")
        for number, names in enumerate(op.ranges):
            begin, end = (self._numbers[name] for name in names)
            self.add(f"{octets} {'+=' if number else '='} bytes_of({begin}, {end} - {begin})")
        wrong = f"not checksum_of({op.algorithm!r}, {octets}, &{value})"
        self.refuse_if(self._if_present(op.slot, wrong))
        self.refuse_if(self._if_present(op.slot, f"{value} != {self.number_of(op.slot)}"))


def _signed(op: plan.Number) -> bool:
    return bool(getattr(op.coding, "signed", False))


# Functions


def take_record(record: plan.RecordPlan, functions: Functions) -> str:
    """Return the body of ``_take_<record>(Run* run)``."""
    reader = Reader(functions, record_members(record.body), run="run", depth="depth + 1")
    if functions.max_depth:
        reader.refuse_if(f"depth >= {functions.max_depth}")
    reader.add(f"cdef {record.class_name} made = {record.class_name}.__new__({record.class_name})")
    reader.body(record.body)
    reader.add("return made")
    return reader.source()


def take_choice(op: plan.Choose, functions: Functions) -> str:
    """Return the body of ``_take_<choice>(Run* run)``."""
    statements = Statements(functions, "None", 1, depth="depth")
    for tag, record in op.options:
        with statements.block(f"if {begins('run', 'run.at', tag, folded=op.folded)}:"):
            statements.add(f"return _take_{record_function(record)}(run{statements.depth})")
    statements.add("return None")
    return statements.source()


def take_loop(op: plan.Loop, functions: Functions, *, keep: bool = True) -> str:
    """Return the body of ``_take_<loop>(Run* run, uint64_t count)``, or of ``_skip_<loop>``."""
    refusal = "None" if keep else "False"
    reader = Reader(functions, {}, run="run", refusal=refusal, keep=keep, depth="depth")
    reader.divided = None if op.pairs in ("", "both") else op.pairs == "first"
    if op.count and op.minimum:
        reader.refuse_if(f"count < {op.minimum}")
    if keep:
        reader.add(f"{reader.local('items', 'list')} = []")
    elif op.minimum and not op.count:
        reader.add("count = 0")
    more = f"left(run) and not ({begins('run', 'run.at', op.until)})" if op.until else "left(run)"
    # Each item has at least one octet, so a count that is too large ends with the octets.
    with reader.block("for _ in range(count):" if op.count else f"while {more}:"):
        reader.body(op.body)
        if keep:
            reader.add("items.append((name, item))" if op.pairs == "both" else "items.append(item)")
        elif op.minimum and not op.count:
            reader.add("count += 1")
    if op.minimum and not op.count:
        reader.refuse_if(f"{'len(items)' if keep else 'count'} < {op.minimum}")
    reader.add("return tuple(items)" if keep else "return True")
    return reader.source()
