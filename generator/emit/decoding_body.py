"""Bodies of frames and records in the fast decoders: runs of fixed size, then single values.

The position is a number while it is known, then a variable and a number of octets after it. It
advances whether or not the octets exist: a slice that is too short fails the final check that the
frame ends with its last value. Only inside a loop must missing octets be detected at once.

A frame or record that contains octets may be a view (see ``copy`` of `decode`), whose slices are
views, too. All others are bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from specwire.generator import ir
from specwire.generator.emit.bodies import (
    choice_function,
    condition_source,
    item_annotation,
    members_source,
    octets_source,
    record_function,
    run_names,
    value_annotation,
)
from specwire.generator.emit.local_names import LocalNames
from specwire.generator.emit.numbers import code_in, from_octets, is_little, struct_code, struct_order
from specwire.generator.emit.python import Lines, octets_literal
from specwire.generator.ir.names import constant_name
from specwire.generator.plan.layouts import announcing_bits
from specwire.generator.support.layout import Boolean, Coding, Digits, Integer, Varint
from specwire.generator.support.plan import (
    ITEM,
    NAME,
    VALUE,
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
    Plan,
    RecordPlan,
    Region,
    Sized,
    TakeOctets,
    TakeText,
    Verify,
    Visitor,
    When,
    fixed_octets,
)


@dataclass
class Decoder:
    """Decoder under construction: its lines, struct objects, and the values of slots so far."""

    name: str
    """Name of the message or record, used in the names of struct objects."""
    fields: tuple[ir.Field, ...]
    protocol: ir.Protocol
    plan: Plan
    depth: str = "0"
    """Expression for the number of records that contain the values."""
    lines: Lines = field(default_factory=lambda: Lines(1))
    structs: dict[str, str] = field(default_factory=dict)
    """Name of a struct object -> its format."""
    values: dict[str, str] = field(default_factory=dict)
    """Slot -> expression for its value."""
    names: LocalNames = field(init=False)
    records: Mapping[str, RecordPlan] = field(init=False)
    runs: Mapping[bytes, str] = field(init=False)
    """Octets of which texts are runs -> name of their regular expression."""

    def __post_init__(self) -> None:
        self.names = LocalNames(field.attribute for field in self.fields)
        self.records = {record.class_name: record for record in self.plan.records}
        self.runs = run_names(self.plan)

    def refuse_if(self, condition: str) -> None:
        """Add a check."""
        with self.lines.block(f"if {condition}:"):
            self.lines.add("raise ValueError")

    def struct(self, suffix: str, format: str) -> str:
        """Return the name of a struct object of that format."""
        stem = name = f"_READ_{constant_name(self.name)}{suffix}"
        number = 1
        while self.structs.get(name, format) != format:
            number += 1
            name = f"{stem}_{number}"
        self.structs[name] = format
        return name


class BodyDecoder(Visitor):
    """Decoder of one body in the variable `frame`, from its start or from the variable `base`."""

    def __init__(
        self,
        decoder: Decoder,
        frame: str,
        *,
        view: bool,
        base: str = "",
        at: str = "",
        targets: Mapping[str, str] | None = None,
    ) -> None:
        self.decoder = decoder
        self.lines = decoder.lines
        self.names = decoder.names
        self.values = decoder.values
        self.frame = frame
        self.view = view
        """The frame may be a view."""
        self.compared = 0
        """Number of octets at the start that the dispatch has compared."""
        self.known = 0
        """Number of octets of the frame that are known to exist."""
        self.end = f"len({frame})"
        """Expression for the end of the body."""
        self.whole = True
        """The body ends with the frame."""
        self.base = base
        self.offset = 0
        self.at = at or self.names.local("at")
        self.start = ""
        """Variable with the position of the start of the body; empty if that is the start of the
        frame."""
        self.inside = False
        """The position is known to be within the frame."""
        self.ended = False
        """The end of the frame has been checked."""
        self.alone: Op | None = None
        """The operation that is the whole body."""
        self.following: Op | None = None
        self.record_level = False
        self.counts: set[str] = set()
        """Slots with numbers of items."""
        self.targets: dict[str, str] = dict(targets or {})
        """Slot -> local variable, if it is not named like the slot."""

    def run(self, body: Body) -> None:
        """Decode a body and check that the frame ends with it."""
        self.alone = body[0] if len(body) == 1 else None
        self.visit(body)
        if not self.ended:
            self.decoder.refuse_if(f"{self.place()} != {self.end}")

    def record(self, body: Body, stop: str) -> str:
        """Decode the body of a record, before the position `stop`; return the expression for its end."""
        self.record_level, self.whole, self.end = True, False, stop
        self._begin_body(body)
        self.visit(body)
        return self.place()

    def _begin_body(self, body: Body) -> None:
        """Keep the position of the start of a body for its padding."""
        if any(isinstance(op, Pad) and op.multiple for op in body):
            self.start = self.names.fresh("start", "int")
            self.lines.add(f"{self.start} = {self.place()}")

    def visit(self, body: Body) -> None:
        """Decode operations in order; each can look at the next."""
        self.counts |= {op.count for op in body if isinstance(op, Loop)}
        for op, following in zip(body, (*body[1:], None), strict=False):
            self.following = following
            self.operation(op)

    # Position

    def place(self, octets: int = 0) -> str:
        """Return the expression for the position, or for one some octets after it."""
        offset = self.offset + octets
        if not self.base:
            return str(offset)
        return f"{self.base} + {offset}" if offset else self.base

    def settle(self) -> None:
        """Assign the position to its variable."""
        if self.base == self.at:
            if self.offset:
                self.lines.add(f"{self.at} += {self.offset}")
        else:
            self.lines.add(f"{self.at} = {self.place()}")
        self.base, self.offset = self.at, 0

    def jump(self, position: str) -> None:
        """Move to a position that is an expression."""
        self.lines.add(f"{self.at} = {position}")
        self.base, self.offset, self.inside = self.at, 0, False

    def begin(self) -> str:
        """Return the position as an expression that stays valid when the position variable
        changes."""
        if not self.base:
            return str(self.offset)
        begin = self.names.local("begin")
        self.lines.add(f"{begin} = {self.place()}")
        return begin

    def target(self, slot: str) -> str:
        """Return the variable for the value of a slot."""
        return self.targets.get(slot, slot)

    # Runs of fixed size

    def fixed(self, op: Fixed) -> None:
        whole = self.alone is op and self.whole and not self.base and self.offset == 0
        ops = _merged(op.body)
        order = struct_order(ops)
        codes, unpacked = self._codes(ops, order)
        # Padding after the number must exist, and only unpacking checks it.
        alone = len(unpacked) == 1 and unpacked[0] is ops[-1]
        if alone and isinstance(unpacked[0], Number) and not whole and not _sliced(ops):
            self._single(unpacked[0], ops)
            return
        checked = False
        names: list[str] = []
        if unpacked:
            names = self._unpack(order + codes, unpacked, whole=whole)
            checked = whole
        elif self.base:
            # In a loop, no other statement would detect the end of the octets.
            self.decoder.refuse_if(f"{self.place(op.octets)} > {self.end}")
        at = 0
        for inner in ops:
            octets = fixed_octets(inner) or 0
            if isinstance(inner, TakeOctets):
                self._slice(inner, f"{self.frame}[{self.place(at)} : {self.place(at + octets)}]")
                if not self.base and not unpacked:
                    self.decoder.refuse_if(f"len({self.frame}) < {self.offset + at + octets}")
            at += octets
        for inner, name in zip(unpacked, names, strict=True):
            self._check(inner, name, order)
        self.offset += op.octets
        self.inside = bool(self.base)
        if unpacked and not self.base:
            self.known = self.offset
        self.ended = self.ended or checked

    def _single(self, op: Number, run: list[Op]) -> None:
        """Decode the only number of a run."""
        before = sum(fixed_octets(other) or 0 for other in run[: run.index(op)])
        self.offset += before
        expression = self._number(op.coding)
        follows = self.following
        extents = follows.extent.slot if isinstance(follows, TakeText | TakeOctets) else ""
        if op.counts and extents == op.slot and (follows is None or not _plus(follows)) and run[-1] is op:
            # Its only use is the next statement.
            self.values[op.slot] = expression
        else:
            self._assign(op, expression)
        self.offset += sum(fixed_octets(other) or 0 for other in run) - before
        self.inside = bool(self.base)
        if not self.base:
            self.known = self.offset

    def _number(self, coding: Coding) -> str:
        """Return the expression for a number of fixed size at the position."""
        octets = fixed_octets(Number("", coding)) or 0
        code = struct_code(coding)
        if octets == 1 and code == "B":
            return f"{self.frame}[{self.place()}]"
        if code and code.isupper() and is_little(coding) is False:
            return f"_U{octets * 8}.unpack_from({self.frame}, {self.place()})[0]"
        if code:
            name = self.decoder.struct("", f"{'<' if is_little(coding) else '>'}{code}")
            return f"{name}.unpack_from({self.frame}, {self.place()})[0]"
        self.decoder.refuse_if(f"{self.place(octets)} > len({self.frame})")
        return from_octets(coding, f"{self.frame}[{self.place()} : {self.place(octets)}]")

    def _assign(self, op: Number, expression: str) -> None:
        """Assign a number to its variable, then check it."""
        name = self._variable(op)
        self.lines.add(f"{name} = {expression}")
        self._checked(op, name)

    def _variable(self, op: Number) -> str:
        """Return the variable of a number; a hidden one has a name of its own."""
        if not op.counts and not op.checks and not op.bits:
            return self.target(op.slot)
        if op.slot not in self.targets:
            stem = op.slot.rstrip("#")
            suffix = "" if stem == op.slot else "_count" if op.slot in self.counts else "_size"
            suffix = "_bits" if op.bits else suffix
            stem = {ITEM: "item", NAME: "name", VALUE: "value"}.get(stem, stem)
            self.targets[op.slot] = self.names.fresh(f"{stem}{suffix}", "int") if suffix else stem
        return self.targets[op.slot]

    def _codes(self, ops: list[Op], order: str) -> tuple[str, list[Op]]:
        """Return the struct codes of a run, and the operations whose values the unpack returns.

        Constants that are already compared are skipped. Octets are skipped and sliced, so that a
        slice of a view is a view.
        """
        codes, pad = "", 0
        unpacked: list[Op] = []
        for op in ops:
            size = fixed_octets(op) or 0
            if isinstance(op, Expect) and self.compared:
                covered = min(self.compared, size)
                self.compared -= covered
                pad += covered
                if covered == size:
                    continue
                op, size = replace(op, octets=op.octets[covered:]), size - covered
            if isinstance(op, Pad | TakeOctets):
                pad += size
                continue
            if pad:
                codes, pad = f"{codes}{pad}x", 0
            codes += code_in(op, order) or f"{size}s"
            unpacked.append(op)
        return codes + (f"{pad}x" if pad else ""), unpacked

    def _unpack(self, format: str, unpacked: list[Op], *, whole: bool) -> list[str]:
        """Unpack operations; return the variables of their values."""
        names = [self._name(op) for op in unpacked]
        suffix = "" if whole or self.place() == "0" else f"_{constant_name(names[0])}"
        struct = self.decoder.struct(suffix, format)
        target = f"({names[0]},)" if len(names) == 1 else ", ".join(names)
        if whole:
            self.lines.add(f"{target} = {struct}.unpack({self.frame})")
        elif self.place() == "0":
            self.lines.add(f"{target} = {struct}.unpack_from({self.frame})")
        else:
            self.lines.add(f"{target} = {struct}.unpack_from({self.frame}, {self.place()})")
        return names

    def _name(self, op: Op) -> str:
        if isinstance(op, Number):
            return self._variable(op)
        assert isinstance(op, Expect | TakeText)
        if isinstance(op, Expect) and op.slot in (ITEM, NAME, VALUE):
            return self.names.fresh("constant", "Any")
        return self.target(op.slot)

    def _check(self, op: Op, name: str, order: str) -> None:
        """Compare an unpacked constant; record the value of another operation and check it."""
        match op:
            case Expect(octets=octets, folded=True):
                self.decoder.refuse_if(f"{name}.lower() != {octets_literal(octets.lower())}")
            case Expect(octets=octets):
                number = code_in(op, order)
                value = octets_source(octets)
                if number:
                    value = str(int.from_bytes(octets, "little" if order == "<" else "big"))
                self.decoder.refuse_if(f"{name} != {value}")
            case Number(coding=coding):
                if code_in(op, order):
                    self._checked(op, name)
                else:
                    self._checked(op, from_octets(coding, name), variable=name)
            case TakeText():
                self._text(op, name, view=False)

    def _checked(self, op: Number, value: str, variable: str = "") -> None:
        """Check the range of a number; record its value."""
        if op.bits:
            if variable:
                self.lines.add(f"{variable} = {value}")
            self._bits(op, variable or value)
            return
        match op.coding:
            case Integer(members=members) if members:
                if variable:
                    self.lines.add(f"{variable} = {value}")
                    value = variable
                self.decoder.refuse_if(f"{value} not in {members_source(members, self.decoder.protocol)}")
            case Boolean():
                if variable:
                    self.lines.add(f"{variable} = {value}")
                    value = variable
                self.decoder.refuse_if(f"{value} not in (0, 1)")
                value = f"{value} == 1"
        announcing = announcing_bits(self.decoder.protocol) if op.flags else 0
        kept = 256 ** (fixed_octets(op) or 0) - 1 - announcing
        self.values[op.slot] = f"{value} & 0x{kept:02x}" if announcing else value

    def _bits(self, op: Number, number: str) -> None:
        """Check and record the bits of the integer in the variable `number`."""
        fixed = [bit for bit in op.bits if bit.constant is not None]
        if fixed:
            mask = sum((1 << bit.width) - 1 << bit.shift for bit in fixed)
            wanted = sum((bit.constant or 0) << bit.shift for bit in fixed)
            self.decoder.refuse_if(f"{number} & 0x{mask:02x} != 0x{wanted:02x}")
        for bit in op.bits:
            if bit.constant is not None or bit.spare:
                continue
            target = self.target(bit.slot)
            mask = (1 << bit.width) - 1
            value = f"{number} >> {bit.shift} & 0x{mask:02x}" if bit.shift else f"{number} & 0x{mask:02x}"
            value = f"{number} & 0x{1 << bit.shift:02x} != 0" if bit.boolean else value
            self.lines.add(f"{target} = {value}")
            if bit.members:
                members = members_source(bit.members, self.decoder.protocol)
                self.decoder.refuse_if(f"{target} not in {members}")
            self.values[bit.slot] = target

    def number(self, op: Number) -> None:
        """Decode a number of variable size."""
        match op.coding:
            case Varint(order=order, maximum=maximum, signed=signed):
                call = f"read_varint({self.frame}, {self.place()}, {maximum}, {order!r}, {signed!r})"
            case Digits(base=base, minimum=minimum, maximum=maximum, signed=signed_):
                call = (
                    f"read_digits({self.frame}, {self.place()}, {base}, {minimum}, {maximum}, {signed_}"
                    f"{'' if self.whole else f', {self.end}'})"
                )
            case _:
                raise TypeError("a number of fixed size belongs to a run")
        name = self._variable(op)
        self.lines.add(f"{name}, {self.at} = {call}")
        self.base, self.offset, self.inside = self.at, 0, True
        self.values[op.slot] = name

    # Values of variable size

    def text(self, op: TakeText) -> None:
        self._text(op, self.span(op.extent), view=self.view)
        self.ended = self._ends(op.extent)

    def _text(self, op: TakeText, content: str, *, view: bool) -> None:
        target = self.target(op.slot)
        self.lines.add(f"{target} = {text_of(op, content, view=view)}")
        if op.terminated:
            drop_nul(self.lines, target)
        self.values[op.slot] = target

    def octets(self, op: TakeOctets) -> None:
        self._slice(op, self.span(op.extent))
        target = self.target(op.slot)
        if op.minimum:
            self.decoder.refuse_if(f"len({target}) < {op.minimum}")
        if op.maximum is not None:
            self.decoder.refuse_if(f"len({target}) > {op.maximum}")
        self.ended = self._ends(op.extent)

    def _slice(self, op: TakeOctets, octets: str) -> None:
        target = self.target(op.slot)
        if op.uuid:
            parameter = "bytes_le" if op.uuid == "little" else "bytes"
            octets = f"UUID({parameter}=bytes({octets}))"
        self.lines.add(f"{target} = {octets}")
        self.values[op.slot] = target

    def _ends(self, extent: Extent) -> bool:
        return extent.kind == "rest" and not extent.octets

    def span(self, extent: Extent) -> str:
        """Advance past a value; return the slice of the frame with its content."""
        match extent.kind:
            case "rest":
                return self._rest(extent.octets)
            case "until":
                return self._until(extent.until)
            case "run":
                return self._run(extent)
            case "fixed":
                raise TypeError("a value of fixed size belongs to a run")
        number = self.less(extent.slot, extent.plus)
        begin = self.begin()
        self.jump(f"{begin} + {number}")
        return f"{self.frame}[{begin} : {self.at}]"

    def less(self, slot: str, plus: int) -> str:
        """Return the expression for the number in a slot, less `plus`; refuse a negative one."""
        number = self.values[slot]
        if not plus:
            return number
        self.decoder.refuse_if(f"{number} < {plus}")
        return f"{number} - {plus}"

    def _rest(self, trailer: int) -> str:
        """Return the rest of the frame, but its last octets."""
        if trailer:
            begin, end = self.begin(), self.names.local("end")
            self.lines.add(f"{end} = {self.end} - {trailer}")
            self.decoder.refuse_if(f"{end} < {begin}")
            self.base, self.offset, self.inside = end, 0, True
            return f"{self.frame}[{begin} : {end}]"
        if not self.whole:
            self.decoder.refuse_if(f"{self.place()} > {self.end}")
        elif not self.base:
            if self.offset > self.known:
                self.decoder.refuse_if(f"len({self.frame}) < {self.offset}")
        elif not self.inside:
            self.decoder.refuse_if(f"{self.place()} > {self.end}")
        return f"{self.frame}[{self.place()} : {'' if self.whole else self.end}]"

    def _until(self, end: bytes) -> str:
        """Advance to a text's terminator; raise at once if there is none."""
        start = self.begin()
        found = "index_of({0}, " if self.view else "{0}.index("
        self.jump(f"{found.format(self.frame)}{octets_literal(end)}, {start})")
        self.inside = True
        return f"{self.frame}[{start} : {self.at}]"

    def _run(self, extent: Extent) -> str:
        """Advance past a run; raise at once if it is too short."""
        begin, run = self.begin(), self.decoder.runs[extent.among]
        stop = "" if self.whole else f", {self.end}"
        self.jump(f"run_end({run}, {self.frame}, {begin}, {extent.octets}{stop})")
        self.inside = True
        return f"{self.frame}[{begin} : {self.at}]"

    def pad(self, op: Pad) -> None:
        """Skip octets up to a multiple."""
        place = f"({self.place()})" if self.base and self.offset else self.place()
        missing = f"({self.start} - {place})" if self.start else f"-{place}"
        self.jump(f"{self.place()} + {missing} % {op.multiple}")

    # Values with values inside

    def loop(self, op: Loop) -> None:
        lines, item = self.lines, item_annotation(op)
        head = f"while {self.at} < {self.end}"
        if op.count:
            number = self.less(op.count, op.plus)
            if op.minimum:
                self.decoder.refuse_if(f"{number} < {op.minimum}")
            head = f"for _ in range({number})"
        self.settle()
        if op.until and not op.count:
            head = f"{head} and {self._next(op.until, '!=')}"
        target = self.target(op.slot)
        lines.add(f"{self.names.declare(target, f'list[{item}]')} = []")
        self.inside = False
        with lines.block(f"{head}:"), self.names.scope():
            outer = self.targets
            self.targets = dict(outer)
            for slot in (ITEM, NAME, VALUE, f"{ITEM}#", f"{NAME}#", f"{VALUE}#"):
                self.targets.pop(slot, None)
            self._item(op, target)
            self.targets = outer
            self.settle()
        self.inside = False
        if op.minimum and not op.count:
            self.decoder.refuse_if(f"len({target}) < {op.minimum}")
        self.values[op.slot] = f"tuple({target})"

    def _item(self, op: Loop, target: str) -> None:
        """Decode one item and append it."""
        names = self.names
        match op.pairs:
            case "":
                self.targets[ITEM] = names.fresh("item", value_annotation(op.body, ITEM))
                self.visit(op.body)
                value = self.values[ITEM]
            case "both":
                self.targets[NAME] = names.fresh("name", value_annotation(op.body, NAME))
                self.targets[VALUE] = names.fresh("value", value_annotation(op.body, VALUE))
                self.visit(op.body)
                value = f"({self.values[NAME]}, {self.values[VALUE]})"
            case _:
                name, value = names.fresh("name", "str"), names.fresh("value", "str")
                self.targets[ITEM] = names.fresh("entry", "str")
                self.visit(op.body)
                equals = names.fresh("equals", "str")
                method = "partition" if op.pairs == "first" else "rpartition"
                self.lines.add(f'{name}, {equals}, {value} = {self.values[ITEM]}.{method}("=")')
                self.decoder.refuse_if(f"not {equals}")
                value = f"({name}, {value})"
        self.lines.add(f"{target}.append({value})")

    def nest(self, op: Nest) -> None:
        self._nested(op.slot, record_function(op.record))

    def choose(self, op: Choose) -> None:
        self._nested(op.slot, choice_function(op.options))

    def _nested(self, slot: str, function: str) -> None:
        end, target = self.names.local("end"), self.target(slot)
        depth = f", {self.decoder.depth}" if self.decoder.plan.max_depth else ""
        self.lines.add(f"{target}, {end} = _read_{function}({self.frame}, {self.place()}, {self.end}{depth})")
        self.jump(end)
        self.values[slot] = target

    def optional(self, op: Optional) -> None:
        self.settle()
        condition, slots = self._condition(op.when), (op.slot, *op.others)
        outer = self.targets
        targets = {slot: self.target(slot) for slot in slots}
        kinds = {slot: value_annotation((op,), slot) for slot in slots}
        if op.boolean:
            self.lines.add(f"{targets[op.slot]} = {condition}")
            condition = targets[op.slot]
        else:
            self.lines.add(*(f"{targets[slot]}: {kinds[slot]} | None = None" for slot in slots))
        with self.lines.block(f"if {condition}:"), self.names.scope():
            self.targets = outer | {slot: self.names.fresh("value", kinds[slot]) for slot in slots}
            self.visit(op.body)
            if not op.boolean:
                self.lines.add(*(f"{targets[slot]} = {self.values[slot]}" for slot in slots))
            if self.ended:
                self.lines.add(f"{self.at} = {self.end}")
                self.base, self.offset = self.at, 0
            self.settle()
            self.targets = outer
        self.inside, self.ended = False, False
        self.values |= targets

    def _condition(self, when: When) -> str:
        """Return the condition that optional operations are performed."""
        match when.kind:
            case "octets":
                return self._next(when.octets, "==", folded=when.folded)
            case "number":
                return condition_source(when, self.values[when.slot])
            case "left":
                return f"{self.at} < {self.end}" + (f" - {when.left}" if when.left else "")

    def _next(self, octets: bytes, operator: str, *, folded: bool = False) -> str:
        """Return the condition that the next octets of the body are, or are not, `octets`."""
        end = self.place(len(octets))
        end = end if self.whole else f"min({end}, {self.end})"
        found = f"{self.frame}[{self.place()} : {end}]"
        if folded:
            found = f"bytes({found}).lower()" if self.view else f"{found}.lower()"
        return f"{found} {operator} {octets_literal(octets)}"

    def sized(self, op: Sized) -> None:
        size = self.names.local("size")
        self._size(op, size)
        if not self.record_level:
            self.decoder.refuse_if(f"{self.place()} + {size} != {self.end}")
            self.inside = True
            self._begin_body(op.body)
            self.visit(op.body)
            return
        self._inner(op.body, f"{self.place()} + {size}")

    def region(self, op: Region) -> None:
        self._inner(op.body, f"{self.place()} + {self.less(op.count, op.plus)}")

    def _inner(self, body: Body, end: str) -> None:
        """Decode a body that ends at the position `end`."""
        stop = self.names.fresh("stop", "int")
        self.lines.add(f"{stop} = {end}")
        self.decoder.refuse_if(f"{stop} > {self.end}")
        inner = BodyDecoder(self.decoder, self.frame, view=self.view, base=self.base, at=self.at)
        inner.offset, inner.targets, inner.counts = self.offset, self.targets, self.counts
        inner.end, inner.whole, inner.inside, inner.known = stop, False, True, self.offset
        inner._begin_body(body)
        inner.run(body)
        self.base, self.offset, self.inside = stop, 0, True

    def _size(self, op: Sized, size: str) -> None:
        """Read a size in one of its forms into the variable `size`."""
        if len(op.forms) == 1:
            ((tag, octets),) = op.forms
            if tag:
                self.decoder.refuse_if(self._tagged(tag, "!="))
                self.offset += len(tag)
            self.lines.add(f"{size} = {self._number(Integer(octets))}")
            self.offset += octets
            return
        # A form without a tag must not begin like any other form.
        start = self.base, self.offset
        for number, (tag, octets) in enumerate(sorted(op.forms, key=lambda form: not form[0])):
            test = f"{'elif' if number else 'if'} {self._tagged(tag, '==')}:" if tag else "else:"
            with self.lines.block(test):
                self.offset += len(tag)
                self.lines.add(f"{size} = {self._number(Integer(octets))}")
                self.offset += octets
                self.settle()
            self.base, self.offset = start
        if all(tag for tag, _ in op.forms):
            with self.lines.block("else:"):
                self.lines.add("raise ValueError")
        self.base, self.offset, self.inside = self.at, 0, False

    def _tagged(self, tag: bytes, operator: str) -> str:
        """Return the condition that the octets at the position are, or are not, `tag`."""
        if len(tag) == 1:
            return f"{self.frame}[{self.place()}] {operator} 0x{tag.hex()}"
        return f"{self.frame}[{self.place()} : {self.place(len(tag))}] {operator} {octets_literal(tag)}"

    # Checksums

    def mark(self, op: Mark) -> None:
        name = self.names.fresh("mark", "int")
        self.lines.add(f"{name} = {self.place()}")
        self.values[op.name] = name

    def verify(self, op: Verify) -> None:
        slices = [f"{self.frame}[{self.values[a]} : {self.values[b]}]" for a, b in op.ranges]
        octets = f"bytes({slices[0]})" if len(slices) == 1 else f'b"".join([{", ".join(slices)}])'
        self.decoder.refuse_if(f"compute_checksum({op.algorithm!r}, {octets}) != {self.values[op.slot]}")


def text_of(op: TakeText, content: str, *, view: bool) -> str:
    """Return the expression that decodes `content`, which may be a view, as text."""
    if op.padding is not None:
        octets = f"bytes({content})" if view else content
        return f"{octets}.rstrip({octets_literal(op.padding)}).decode()"
    return f'str({content}, "utf-8")' if view else f"{content}.decode()"


def drop_nul(lines: Lines, target: str) -> None:
    """Remove the NUL at the end of the text in the variable `target`."""
    with lines.block(f'if "\\0" in {target}:'):
        lines.add(f"{target} = without_nul({target})")


def _sliced(ops: list[Op]) -> bool:
    return any(isinstance(op, TakeOctets) for op in ops)


def _plus(op: Op) -> int:
    return op.extent.plus if isinstance(op, TakeText | TakeOctets) else 0


def _merged(ops: Body) -> list[Op]:
    """Return the operations of a run, with adjacent constants as one."""
    found: list[Op] = []
    for op in ops:
        last = found[-1] if found else None
        if isinstance(op, Expect) and isinstance(last, Expect) and op.folded == last.folded:
            found[-1] = replace(last, octets=last.octets + op.octets)
        else:
            found.append(op)
    return found
