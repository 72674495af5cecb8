"""Runs of fixed size in the fast decoders: one `struct` unpack each, then checks of the values.

The position is a number while it is known, then a variable and a number of octets after it. It
advances whether or not the octets exist: a slice that is too short fails the final check that the
frame ends with its last value. Only inside a loop must missing octets be detected at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from specwire.generator import ir
from specwire.generator.emit.bodies import members_source, octets_source, run_names
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
    Expect,
    Fixed,
    Number,
    Op,
    Pad,
    Plan,
    RecordPlan,
    TakeOctets,
    TakeText,
    Visitor,
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


class RunDecoder(Visitor):
    """Decoder of runs of fixed size in the variable `frame`, from its start or from the variable `base`."""

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
        """Return the variable of a number; a hidden one has another name than its slot."""
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

    def _text(self, op: TakeText, content: str, *, view: bool) -> None:
        target = self.target(op.slot)
        self.lines.add(f"{target} = {text_of(op, content, view=view)}")
        if op.terminated:
            drop_nul(self.lines, target)
        self.values[op.slot] = target

    def _slice(self, op: TakeOctets, octets: str) -> None:
        target = self.target(op.slot)
        if op.uuid:
            parameter = "bytes_le" if op.uuid == "little" else "bytes"
            octets = f"UUID({parameter}=bytes({octets}))"
        self.lines.add(f"{target} = {octets}")
        self.values[op.slot] = target


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
