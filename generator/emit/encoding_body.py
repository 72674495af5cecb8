"""Bodies of frames and records in the fast encoders: octets of variable size, and packed runs
between them.

First each value of variable size becomes octets in a variable, so that hidden numbers, which may
stand anywhere before what they count, can be computed. Then runs of constants and numbers are one
`struct` pack each, with the octets between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from specwire.generator import ir
from specwire.generator.emit.bodies import (
    choice_function,
    may_be_empty,
    members_source,
    record_function,
    value_annotation,
)
from specwire.generator.emit.local_names import LocalNames
from specwire.generator.emit.numbers import is_little, struct_code
from specwire.generator.emit.python import STRUCT_CODES, Lines, octets_literal
from specwire.generator.ir.names import constant_name
from specwire.generator.plan.layouts import announcing_bits
from specwire.generator.support.layout import Boolean, Digits, Integer, Varint
from specwire.generator.support.plan import (
    ITEM,
    NAME,
    VALUE,
    Body,
    Choose,
    Expect,
    Loop,
    Mark,
    Nest,
    Number,
    Op,
    Optional,
    Pad,
    RecordPlan,
    Region,
    Sized,
    TakeOctets,
    TakeText,
    Verify,
    fixed_octets,
    operations,
)

WIDTH_STRUCTS = {code: f"_U{octets * 8}" for octets, code in STRUCT_CODES.items()}
"""Struct objects of one integer, shared by all messages."""
_NOTHING = 'b""'


@dataclass
class Encoder:
    """Encoder under construction: its lines and struct objects."""

    name: str
    """Name of the message or record, used in the names of struct objects."""
    fields: tuple[ir.Field, ...]
    protocol: ir.Protocol
    records: Mapping[str, RecordPlan]
    strict: str = ""
    """Argument of the writers of records, if ``strict`` matters to them."""
    lines: Lines = field(default_factory=lambda: Lines(3))
    structs: dict[str, str] = field(default_factory=dict)
    names: LocalNames = field(init=False)
    runs: int = 0

    def __post_init__(self) -> None:
        self.names = LocalNames(field.attribute for field in self.fields)

    def refuse_if(self, condition: str, error: str = "ValueError") -> None:
        """Add a check."""
        with self.lines.block(f"if {condition}:"):
            self.lines.add(f"raise {error}")

    def tuple_only(self, value: str) -> None:
        """Add a check against other iterables, which would not decode to the same value."""
        self.refuse_if(f"not isinstance({value}, tuple)", "TypeError")

    def struct(self, format: str) -> str:
        """Return the name of a struct object of that format."""
        self.runs += 1
        name = f"_WRITE_{constant_name(self.name)}{f'_{self.runs}' if self.runs > 1 else ''}"
        self.structs[name] = format
        return name


class BodyEncoder:
    """Encoder of one body; `sources` are the expressions for the values of slots in loops.

    `owner` is the expression for the message or record that has the values of other slots.
    """

    def __init__(self, encoder: Encoder, owner: str, sources: Mapping[str, str] | None = None) -> None:
        self.encoder = encoder
        self.lines = encoder.lines
        self.names = encoder.names
        self.owner = owner
        self.sources = dict(sources or {})
        self.octets: dict[str, str] = {}
        """Slot -> variable with its octets."""
        self.lists: dict[str, str] = {}
        """Slot of the number of a loop's items -> variable with the list of their octets."""
        self.measured: frozenset[str] = frozenset()
        """Slots whose octets are counted."""
        self.numbers: dict[str, Number] = {}
        """Hidden slot -> its number, if the octets of that vary."""
        self.sizes: dict[str, int] = {}
        """Slot -> its number of octets, if that is fixed."""
        self.pieces: list[str] = []
        self.order = ""
        self.codes = ""
        self.arguments: list[str] = []
        self.constant = b""
        self.start = 0
        """Index of the first piece of the body or region."""
        self.marks: dict[str, int] = {}
        """Mark -> index of the piece after it."""
        self.checks: dict[str, tuple[int, Number]] = {}
        """Slot -> index of the piece with a checksum."""
        self.omitted = ""
        """Condition that an earlier optional value is omitted."""

    def expression(self, body: Body) -> str:
        """Return the octets of a body as one expression, after adding the statements that it
        needs."""
        self.prepare(body)
        self.assemble(body)
        return " + ".join(filter(None, self.pieces)) or _NOTHING

    def source(self, slot: str) -> str:
        """Return the expression for the value of a slot."""
        return self.sources.get(slot) or f"{self.owner}.{slot}"

    # Octets of variable size

    def prepare(self, body: Body) -> None:
        """Add the statements that check the values of a body and assign the octets of variable
        size."""
        inner = list(_all(body))
        counted = [slot for op in inner if isinstance(op, Number) for slot in op.counts]
        loops = {op.slot for op in inner if isinstance(op, Loop)}
        self.measured = frozenset(
            slot for slot in counted if slot not in loops or _counts_octets(inner, slot)
        )
        for op in inner:
            if isinstance(op, Number) and op.counts and fixed_octets(op) is None:
                self.numbers[op.slot] = op
            size = fixed_octets(op)
            if size is not None and isinstance(op, Expect | Pad | Number | TakeText):
                self.sizes[op.slot] = size
        for op in inner:
            match op:
                case Number():
                    self._number(op)
                case TakeText():
                    self._text(op)
                case TakeOctets():
                    self._octets(op)
                case Loop():
                    self._loop(op)
                case Nest() | Choose() if op.slot in self.measured:
                    self.octets[op.slot] = self._variable(op.slot, "bytes")
                    self.lines.add(f"{self.octets[op.slot]} = {self._record(op)}")
                case Optional():
                    self._optional(op)

    def _variable(self, slot: str, type: str) -> str:
        """Return the variable for the octets of a slot."""
        if slot not in self.sources:
            return slot
        stem = {ITEM: "entry", NAME: "key", VALUE: "content"}.get(slot, slot)
        return self.names.fresh(stem, type)

    def _number(self, op: Number) -> None:
        if op.counts or op.checks:
            return
        value = self.source(op.slot)
        match op.coding:
            case Integer(members=members) if members:
                self.encoder.refuse_if(f"{value} not in {members_source(members, self.encoder.protocol)}")
            case Boolean():
                self.encoder.refuse_if(f"not isinstance({value}, bool)", "TypeError")
            case Varint() | Digits():
                self.octets[op.slot] = self._variable(op.slot, "bytes")
                self.lines.add(f"{self.octets[op.slot]} = {_variable_number(op, value)}")

    def _text(self, op: TakeText) -> None:
        if op.padding is not None:
            return
        value, target = self.source(op.slot), self._variable(op.slot, "bytes")
        self.octets[op.slot] = target
        self.lines.add(
            f"{target} = {f'terminated({value}, strict)' if op.terminated else f'{value}.encode()'}"
        )
        match op.extent.kind:
            case "fixed":
                self.encoder.refuse_if(f"len({target}) != {op.extent.octets}")
            case "until":
                end = octets_literal(op.extent.until)
                self.encoder.refuse_if(f"({target} + {end}).index({end}) != len({target})")

    def _octets(self, op: TakeOctets) -> None:
        value, target = self.source(op.slot), self._variable(op.slot, "bytes")
        self.octets[op.slot] = target
        if op.uuid:
            self.encoder.refuse_if(f"not isinstance({value}, UUID)", "TypeError")
            self.lines.add(f"{target} = {value}.{'bytes_le' if op.uuid == 'little' else 'bytes'}")
            return
        self.lines.add(f"{target} = as_octets({value})")
        if op.extent.kind == "fixed":
            self.encoder.refuse_if(f"len({target}) != {op.extent.octets}")
            return
        if op.minimum:
            self.encoder.refuse_if(f"len({target}) < {op.minimum}")
        if op.maximum is not None:
            self.encoder.refuse_if(f"len({target}) > {op.maximum}")

    def _loop(self, op: Loop) -> None:
        """Assign the list of the octets of all items."""
        value = self.source(op.slot)
        target = op.slot
        if op.slot in self.sources:
            target = self.names.fresh("entries", "list[bytes]")
        self.octets[op.slot] = f'b"".join({target})'
        self.lists[op.count] = target
        self.encoder.tuple_only(value)
        self.lines.add(f"{target} = []")
        with self.names.scope():
            self._items(op, value, target)
        if op.minimum:
            self.encoder.refuse_if(f"len({target}) < {op.minimum}")
        if op.slot in self.measured:
            joined = self.names.fresh(f"{op.slot}_octets".replace(ITEM, "entries"), "bytes")
            self.lines.add(f'{joined} = b"".join({target})')
            self.octets[op.slot] = joined

    def _items(self, op: Loop, value: str, target: str) -> None:
        names, lines = self.names, self.lines
        if not op.pairs:
            item = names.fresh("item", value_annotation(op.body, ITEM))
            with lines.block(f"for {item} in {value}:"):
                lines.add(f"{target}.append({self._item(op.body, {ITEM: item})})")
            return
        kind = value_annotation(op.body, VALUE) if op.pairs == "both" else "str"
        pair = names.fresh("pair", f"tuple[str, {kind}]")
        with lines.block(f"for {pair} in {value}:"):
            name, content = names.fresh("name", "str"), names.fresh("value", kind)
            lines.add(f"{name}, {content} = {pair}")
            if op.pairs == "both":
                self.encoder.tuple_only(pair)
                lines.add(f"{target}.append({self._item(op.body, {NAME: name, VALUE: content})})")
                return
            undivided = name if op.pairs == "first" else content
            self.encoder.refuse_if(f'not isinstance({pair}, tuple) or "=" in {undivided}')
            entry = {ITEM: f'({name} + "=" + {content})'}
            lines.add(f"{target}.append({self._item(op.body, entry)})")

    def _item(self, body: Body, sources: Mapping[str, str]) -> str:
        return BodyEncoder(self.encoder, self.owner, sources).expression(body)

    def _optional(self, op: Optional) -> None:
        """Assign the octets of a value that may be omitted together with all later ones."""
        name = self.source(op.slot)
        octets = self.names.fresh("octets", "bytes")
        self.lines.add(f'{octets} = b""')
        with self.lines.block(f"if {name} is not None:"):
            if self.omitted:
                self.encoder.refuse_if(self.omitted)
            inner = BodyEncoder(self.encoder, self.owner)
            self.lines.add(f"{octets} = {inner.expression(op.body)}")
            if may_be_empty(op.body, self.encoder.records):
                self.encoder.refuse_if(f"not {octets}")
        self.omitted = f"{name} is None"
        self.octets[op.slot] = octets

    def _record(self, op: Nest | Choose) -> str:
        function = record_function(op.record) if isinstance(op, Nest) else choice_function(op.options)
        return f"_write_{function}({self.source(op.slot)}{self.encoder.strict})"

    # Assembly

    def assemble(self, body: Body) -> None:
        """Add the pieces of a body."""
        for op in body:
            if isinstance(op, Sized):
                inside = self._inside(op.body)
                self._flush()
                self.pieces.append(f"sized({inside}, {op.forms!r})")
            else:
                for inner in operations((op,)):
                    self._piece(inner)
        self._flush()

    def _inside(self, body: Body) -> str:
        """Return the octets of a body inside this one, whose values are prepared."""
        inner = BodyEncoder(self.encoder, self.owner, self.sources)
        inner.octets, inner.lists, inner.measured = self.octets, self.lists, self.measured
        inner.numbers, inner.sizes = self.numbers, self.sizes
        inner.assemble(body)
        return " + ".join(filter(None, inner.pieces)) or _NOTHING

    def _piece(self, op: Op) -> None:
        match op:
            case Expect(octets=octets):
                self.constant += octets
            case Pad(octets=octets, fill=fill, multiple=0):
                self.constant += fill * octets
            case Pad(fill=fill, multiple=multiple):
                self._pad(fill, multiple)
            case Number():
                self._add_number(op)
            case TakeText(padding=bytes() as fill, extent=extent):
                call = f"padded({self.source(op.slot)}, {extent.octets}, {octets_literal(fill)})"
                self._add(f"{extent.octets}s", call)
            case TakeText(extent=extent) | TakeOctets(extent=extent):
                if extent.kind == "fixed":
                    self._add(f"{extent.octets}s", self.octets[op.slot])
                else:
                    self._append(self.octets[op.slot])
            case Loop():
                self._append(self.octets[op.slot])
            case Nest() | Choose():
                self._append(self.octets.get(op.slot) or self._record(op))
            case Optional():
                self._append(self.octets[op.slot])
            case Region(body=inside):
                self._region(inside)
            case Mark(name=name):
                self._flush()
                self.marks[name] = len(self.pieces)
            case Verify():
                self._verify(op)

    def _region(self, body: Body) -> None:
        """Add the pieces of a region, which has no octets of its own."""
        self._flush()
        outer, self.start = self.start, len(self.pieces)
        self.assemble(body)
        self.start = outer

    def _append(self, piece: str) -> None:
        self._flush()
        self.pieces.append(piece)

    def _add_number(self, op: Number) -> None:
        if op.checks:
            self._append("")
            self.checks[op.slot] = len(self.pieces) - 1, op
            return
        if op.counts:
            value = self._count(op)
        elif op.flags and announcing_bits(self.encoder.protocol):
            value = "flags"
        else:
            value = self.source(op.slot)
        if isinstance(op.coding, Varint | Digits):
            octets = _variable_number(op, value) if op.counts else self.octets[op.slot]
            self._append(octets)
            return
        self._add_packed(op, value)

    def _add_packed(self, op: Number, value: str) -> None:
        code, little = struct_code(op.coding), is_little(op.coding)
        order = "" if little is None else "<" if little else ">"
        if code and (not order or self.order in ("", order)):
            self.order = self.order or order
            self._add(code, value)
            return
        octets = fixed_octets(op) or 0
        if not code:
            assert isinstance(op.coding, Integer | Boolean)
            signed = isinstance(op.coding, Integer) and op.coding.signed
            call = "twos_complement" if signed else "unsigned"
            byteorder = ', "little"' if little else ""
            self._add(f"{octets}s", f"{call}({value}, {octets}{byteorder})")
            return
        # Another byte order than that of the run before.
        self._flush()
        self._add_packed(op, value)

    def _count(self, op: Number) -> str:
        """Return the expression for a hidden number."""
        if op.slot in self.lists:
            return _plus(f"len({self.lists[op.slot]})", op.plus)
        terms = [self._length(slot) for slot in op.counts]
        return _plus(" + ".join(terms), op.plus)

    def _length(self, slot: str) -> str:
        octets = self.octets.get(slot)
        if octets is not None:
            return f"len({octets})"
        if number := self.numbers.get(slot):
            return f"len({_variable_number(number, self._count(number))})"
        return str(self.sizes[slot])

    def _add(self, code: str, argument: str) -> None:
        self._close_constant()
        self.codes += code
        self.arguments.append(argument)

    def _close_constant(self) -> None:
        if self.constant:
            self.codes += f"{len(self.constant)}s"
            self.arguments.append(octets_literal(self.constant))
            self.constant = b""

    def _flush(self) -> None:
        """End the run: add one pack, or a literal if it consists of constants."""
        if self.constant and not self.codes:
            self.pieces.append(octets_literal(self.constant))
            self.constant = b""
        self._close_constant()
        if self.codes:
            self.pieces.append(self._packed())
        self.order, self.codes, self.arguments = "", "", []

    def _packed(self) -> str:
        codes, arguments = self.codes, self.arguments
        if len(arguments) == 1 and codes.endswith("s"):
            # Octets whose length is already checked.
            return arguments[0]
        if codes == "B" and arguments[0].startswith("len(") and " " not in arguments[0]:
            # A longer value has no entry in the table; packing its length would take three times as long.
            return f"OCTETS[{arguments[0]}]"
        shared = WIDTH_STRUCTS.get(codes) if self.order != "<" else None
        name = shared or self.encoder.struct(f"{self.order or '>'}{codes}")
        return f"{name}.pack({', '.join(arguments)})"

    def _pad(self, fill: bytes, multiple: int) -> None:
        """Add octets up to a multiple: the pieces before them become variables."""
        self._flush()
        for position, piece in enumerate(self.pieces[self.start :], start=self.start):
            if piece:
                self.pieces[position] = self._assigned(piece, "before")
        terms = [f"len({piece})" for piece in self.pieces[self.start :] if piece]
        terms += [
            str(fixed_octets(check))
            for at, check in self.checks.values()
            if at >= self.start and not self.pieces[at]
        ]
        total = " + ".join(terms) or "0"
        self.pieces.append(f"{octets_literal(fill)} * (-({total}) % {multiple})")

    def _assigned(self, piece: str, name: str) -> str:
        """Assign a piece to a variable; return that."""
        if piece.isidentifier():
            return piece
        variable = self.names.fresh(name, "bytes")
        self.lines.add(f"{variable} = {piece}")
        return variable

    def _verify(self, op: Verify) -> None:
        """Compute a checksum; the octets that it covers become variables."""
        self._flush()
        covered: list[str] = []
        for begin, end in op.ranges:
            first, last = self.marks[begin], self.marks[end]
            pieces = [self._assigned(piece, "covered") if piece else "" for piece in self.pieces[first:last]]
            self.pieces[first:last] = pieces
            covered += filter(None, pieces)
        position, number = self.checks[op.slot]
        inner = BodyEncoder(self.encoder, self.owner)
        inner._add_packed(number, f"compute_checksum({op.algorithm!r}, {' + '.join(covered) or _NOTHING})")
        inner._flush()
        self.pieces[position] = " + ".join(inner.pieces)


def _plus(number: str, plus: int) -> str:
    if not plus:
        return number
    return f"{number} + {plus}" if plus > 0 else f"{number} - {-plus}"


def _all(body: Body) -> Sequence[Op]:
    """Return the operations of a body, with those inside `Sized` and `Region`."""
    found: list[Op] = []
    for op in operations(body):
        found += _all(op.body) if isinstance(op, Sized | Region) else [op]
    return found


def _counts_octets(ops: Sequence[Op], slot: str) -> bool:
    """Return whether a loop is counted in octets: by a number that no `Loop` has as its count."""
    counters = {op.count for op in ops if isinstance(op, Loop)}
    return any(isinstance(op, Number) and slot in op.counts and op.slot not in counters for op in ops)


def _variable_number(op: Number, value: str) -> str:
    match op.coding:
        case Varint(order=order, maximum=maximum, signed=signed):
            return f"write_varint({value}, {maximum}, {order!r}, {signed!r})"
        case Digits(base=base, minimum=minimum, maximum=maximum, signed=signed_):
            return f"write_digits({value}, {base}, {minimum}, {maximum}, {signed_})"
    raise TypeError("a number of fixed size is packed")
