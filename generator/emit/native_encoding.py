"""Emitter of the compiled encoders: statements that write the operations of frames and records.

A function returns None or False for a value that it cannot write: of another type than expected
(the pure codec also accepts subclasses and views), too long, or one that would decode differently.
Then the pure codec writes the value or raises the error. The functions of values inside others are
``_put_<name>(out, given)``, with ``depth``, the number of records around, if a record can contain
itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from specwire.generator.emit.bodies import choice_function, flat, record_function
from specwire.generator.emit.native_names import (
    Functions,
    Statements,
    c_number,
    conditions,
    decided,
    is_padded,
    literal,
    marks,
    merged,
    numbers,
    ranges,
    record_members,
)
from specwire.generator.emit.native_numbers import NumberEncoder
from specwire.generator.support import plan
from specwire.generator.support.plan import fixed_octets


class Encoder(NumberEncoder, plan.Visitor):
    """Statements that write the operations of frames and records."""

    divided: bool | None = None
    """Whether texts that are pairs are split at their first ``=``, rather than their last."""
    _begun = ""
    """Variable with the position of the body, if it has padding to a multiple."""
    _outside: frozenset[str] = frozenset()
    """Numbers that are not known yet and stand before the body."""
    _before = ""
    """Condition that the last value that the end of the octets can omit is absent."""

    def whole(self, body: plan.Body) -> None:
        """Write a whole frame or record, or an item of a loop."""
        self.deciding = conditions(body)
        self.loops = {op.count: op for op in flat(body) if isinstance(op, plan.Loop) and op.count}
        self._body(body)
        self.checksums()

    def _body(self, body: plan.Body) -> None:
        outer = self._begun, self._outside, self._before
        self._outside, self._before = frozenset(self.unknown), ""
        if is_padded(body):
            self._begun = self.position("begun")
        self.visit(body)
        if is_padded(body):
            self.positions.remove(self._begun)
        self._begun, self._outside, self._before = outer

    def _is_settled(self) -> bool:
        """Return whether nothing is inserted later into what is written of the body."""
        return all(fixed_octets(op) for slot, (_, op) in self.unknown.items() if slot not in self._outside)

    def _flush(self) -> None:
        """Continue after the fixed octets that are written in place."""
        if self.offset:
            self.add(f"{self.base} += {self.offset}")
            self.offset = 0

    # Operations

    def fixed(self, op: plan.Fixed) -> None:
        if op.octets:
            self.must(f"room({self.out}, {op.octets})")
            self.in_place(op, self.base)
            self._flush()
            self.offset = None

    def in_place(self, op: plan.Fixed, base: str) -> None:
        """Write operations of fixed size at an address."""
        self.base, self.offset = base, 0
        for inner in merged(op.body):
            flushed = isinstance(inner, plan.TakeText | plan.TakeOctets)
            if flushed:
                self._flush()
            self.operation(inner)
            self.offset += 0 if flushed else fixed_octets(inner) or 0

    def expect(self, op: plan.Expect) -> None:
        self.add(f"memcpy({self.at}, <const char*>{literal(op.octets)}, {len(op.octets)})")

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
            self.add(f"memset({self.at}, {fill}, {op.octets})")

    def text(self, op: plan.TakeText) -> None:
        value, out, extent = self.value(op.slot), self.out, op.extent
        if self.divided is not None:
            size = extent.octets if extent.kind == "fixed" else -1
            call = f"put_divided({out}, (<tuple>item)[0], (<tuple>item)[1], {self.divided}, {size})"
        elif op.padding is not None:
            call = f"put_padded({out}, {value}, {extent.octets}, 0x{op.padding.hex()})"
        elif extent.kind == "fixed":
            call = f"put_fixed_text({out}, {value}, {extent.octets})"
        elif extent.kind == "until":
            call = f"put_text_until({out}, {value}, {literal(extent.until)}, {len(extent.until)})"
        else:
            call = f"{'put_terminated' if op.terminated else 'put_text'}({out}, {value})"
        if extent.kind == "run":
            self._checked_since(call, f"is_run({self.out}, begun, {ranges(extent.among)}, {extent.octets})")
        elif extent.kind == "until" and self.divided is not None:
            until = f"{literal(extent.until)}, {len(extent.until)}"
            self._checked_since(call, f"is_before({self.out}, begun, {until})")
        else:
            self._counted(extent, call)

    def _checked_since(self, call: str, check: str) -> None:
        """Write a value, then check its octets, which follow the position ``begun``."""
        self.add(f"{self.local('begun', 'Py_ssize_t')} = written({self.out})")
        self.must(call)
        self.must(check)

    def octets(self, op: plan.TakeOctets) -> None:
        value, extent = self.value(op.slot), op.extent
        least, most = op.minimum, -1 if op.maximum is None else op.maximum
        if extent.kind == "fixed":
            least = most = extent.octets
        if op.uuid:
            value = f"octets_of_uuid({value}, {op.uuid == 'little'})"
        self._counted(extent, f"put_content({self.out}, {value}, {least}, {most})")

    def _counted(self, extent: plan.Extent, call: str) -> None:
        """Write a value, and the number of its octets if they are counted."""
        begun = self.position("begun") if extent.kind == "slot" else ""
        self.must(call)
        if begun:
            self.resolve_since(extent.slot, begun)

    def word(self, op: plan.Word) -> None:
        for octets in self.words(op):
            self.must(f"put_literal({self.out}, {literal(octets)}, {len(octets)})")

    def words(self, op: plan.Word) -> Iterator[bytes]:
        """Compare a value with each word, and yield its octets inside the branch."""
        value = self.value(op.slot)
        self.refuse_if(f"type({value}) is not str")
        for number, option in enumerate(op.options):
            with self.block(f"{'elif' if number else 'if'} <str>{value} == {literal(option)}:"):
                yield option.encode()
        with self.block("else:"):
            self.add(f"return {self.refusal}")

    def loop(self, op: plan.Loop) -> None:
        value, name = self.value(op.slot), self.functions.loop(op)
        member = self.members.get(op.slot)
        if member and member.is_held:
            with self.block(f"if type({value}) is bytes:"):
                self.must(f"put_held({self.out}, <bytes>{value})")
            with self.block("else:"):
                self.must(f"_put_{name}({self.out}, {value}{self.depth})")
        else:
            self.must(f"_put_{name}({self.out}, {value}{self.depth})")

    def nest(self, op: plan.Nest) -> None:
        self.must(f"_put_{record_function(op.record)}({self.out}, {self.value(op.slot)}{self.depth})")

    def choose(self, op: plan.Choose) -> None:
        self.must(f"_put_{choice_function(op.options)}({self.out}, {self.value(op.slot)}{self.depth})")

    def optional(self, op: plan.Optional) -> None:
        """Write values that may be omitted; refuse those that decoding would not return."""
        value, numbers_before = self.value(op.slot), set(self.unknown)
        present = f"{value} is {'True' if op.boolean else 'not None'}"
        self._check_presence(op, value, present)
        for name in marks(op.body):
            self.mark(plan.Mark(name))
        with self.block(f"if {present}:"):
            if op.when.kind == "left":
                self._before_end(op, f"{value} is {'False' if op.boolean else 'None'}")
            else:
                self.visit(op.body)
        self.guards |= {number.slot: present for number in numbers(op.body)}
        if numbers_before - set(self.unknown):
            # The pure codec knows the number of the octets of an absent value.
            with self.block("else:"):
                self.add(f"return {self.refusal}")

    def _before_end(self, op: plan.Optional, absent: str) -> None:
        """Write values that the end of the octets may omit, which have at least one octet."""
        if self._before:
            self.refuse_if(self._before)
        self._before = absent
        begun = self.position("begun")
        self.visit(op.body)
        self.positions.remove(begun)
        self.refuse_if(f"written({self.out}) == {begun}")

    def _check_presence(self, op: plan.Optional, value: str, present: str) -> None:
        """Refuse values of which only some are present, or that a number says are not there."""
        if op.boolean:
            self.refuse_if(f"{value} is not True and {value} is not False")
        for other in op.others:
            self.refuse_if(f"({self.value(other)} is None) != ({value} is None)")
        if op.when.kind != "number":
            return
        slot = op.when.slot
        if slot not in self.known:
            # Always true: the pure codec knows a number of octets that are written later.
            self.refuse_if(f"{self.writer}.begin != NULL")
            return
        condition = decided(op.when, self.known[slot])
        if slot in self.guards:
            condition = f"{self.guards[slot]} and {condition}"
        self.refuse_if(f"({present}) != ({condition})")

    def region(self, op: plan.Region) -> None:
        begun = self.position("begun")
        self._body(op.body)
        self.resolve_since(op.count, begun)

    def sized(self, op: plan.Sized) -> None:
        ((tag, octets), *others) = op.forms
        if not others:
            self.must(f"put_literal({self.out}, {literal(tag + bytes(octets))}, {len(tag) + octets})")
        begun, size = self.position("begun"), self.local("count", "uint64_t")
        self._body(op.body)
        self.add(f"{size} = written({self.out}) - {begun}")
        if others:
            self._insert_size(op, begun, size)
        else:
            if octets < 8:
                self.refuse_if(f"{size} >= {c_number(256**octets)}")
            self.add(f"put_number({self.writer}.begin + {begun} - {octets}, {size}, {octets})")
        self.positions.remove(begun)

    def _insert_size(self, op: plan.Sized, begun: str, size: str) -> None:
        """Insert the first form that can hold a size."""
        for number, (tag, octets) in enumerate(op.forms):
            call = f"insert_size({self.out}, {begun}, {literal(tag)}, {len(tag)}, {octets})"
            with self.block(f"{'elif' if number else 'if'} {_holds(tag, octets, op, size)}:"):
                self.insert(begun, call, str(len(tag) + octets))
        with self.block("else:"):
            self.add(f"return {self.refusal}")


def _holds(tag: bytes, octets: int, op: plan.Sized, size: str) -> str:
    """Return the condition that a form can hold a size, and does not look like another form."""
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
    encoder = Encoder(functions, members, owner="record", out="out", refusal="False", depth="depth + 1")
    if functions.max_depth:
        encoder.refuse_if(f"depth >= {functions.max_depth}")
    encoder.refuse_if(f"type(given) is not {name}")
    encoder.add(f"cdef {name} record = <{name}>given")
    encoder.refuse_if("record.kept__ is not None")
    encoder.whole(record.body)
    encoder.add("return True")
    return encoder.source()


def put_choice(op: plan.Choose, functions: Functions) -> str:
    """Return the body of ``_put_<choice>(Writer* out, object given)``."""
    statements = Statements(functions, "False", 1, depth="depth")
    for _, record in op.options:
        with statements.block(f"if type(given) is {record}:"):
            statements.add(f"return _put_{record_function(record)}(out, given{statements.depth})")
    statements.add("return False")
    return statements.source()


def put_loop(op: plan.Loop, functions: Functions) -> str:
    """Return the body of ``_put_<loop>(Writer* out, object given)``."""
    encoder = Encoder(functions, {}, out="out", refusal="False", depth="depth")
    encoder.divided = None if op.pairs in ("", "both") else op.pairs == "first"
    items, item = encoder.local("items", "tuple"), encoder.local("item", "object")
    encoder.refuse_if("type(given) is not tuple")
    encoder.add(f"{items} = <tuple>given")
    if op.minimum:
        encoder.refuse_if(f"len({items}) < {op.minimum}")
    with encoder.block(f"for {item} in {items}:"):
        if op.pairs:
            encoder.refuse_if(f"type({item}) is not tuple or len(<tuple>{item}) != 2")
        start = encoder.position("start") if op.until else ""
        encoder.whole(op.body)
        if start:
            encoder.refuse_if(f"begins_since(out, {start}, {literal(op.until)}, {len(op.until)})")
    encoder.add("return True")
    return encoder.source()
