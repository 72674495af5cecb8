"""Bodies of frames and records in the fast encoders: octets of variable size, and packed runs
between them.

First each value of variable size becomes octets in a variable, so that hidden numbers, which may
stand anywhere before what they count, can be computed. Then runs of constants and numbers are one
`struct` pack each, with the octets between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from specwire.generator.emit.bodies import (
    choice_function,
    condition_source,
    counters,
    may_be_empty,
    members_source,
    nested,
    record_function,
    strict_matters,
    value_annotation,
)
from specwire.generator.emit.encoding_pieces import Encoder, Pieces
from specwire.generator.emit.python import octets_literal
from specwire.generator.plan.layouts import announcing_bits
from specwire.generator.support.layout import Boolean, Digits, Integer, Varint
from specwire.generator.support.plan import (
    ITEM,
    NAME,
    VALUE,
    Bit,
    Body,
    Choose,
    Expect,
    Fixed,
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
    fixed_octets,
    is_hidden,
    operations,
)


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
        """Slot -> its number of octets, if that is fixed or in that of another slot."""
        self.integers: dict[str, Number | Bit] = {}
        """Slot -> the number or bits of a number in it."""
        self.optionals: dict[str, Optional] = {}
        """Slot -> the optional operations that have its value."""
        self.pieces = Pieces(encoder)
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
        return self.pieces.joined()

    def source(self, slot: str) -> str:
        """Return the expression for the value of a slot."""
        return self.sources.get(slot) or f"{self.owner}.{slot}"

    # Octets of variable size

    def prepare(self, body: Body) -> None:
        """Add the statements that check the values of a body and assign the octets of variable
        size."""
        inner = list(_all(body))
        counted = [slot for counter in counters(inner) for slot in counter.counts]
        loops = {op.slot for op in inner if isinstance(op, Loop)}
        self.measured = frozenset(
            slot for slot in counted if slot not in loops or _counts_octets(inner, slot)
        )
        for op in inner:
            self._measure(op)
        self._values(body)
        for op in self.optionals.values():
            self._check_condition(op)

    def _measure(self, op: Op) -> None:
        """Record what is known about the octets of an operation before they are computed."""
        size = fixed_octets(op)
        match op:
            case Number(bits=bits):
                self.integers[op.slot] = op
                self.integers |= {bit.slot: bit for bit in bits}
                if op.counts and size is None:
                    self.numbers[op.slot] = op
                self.sizes |= {bit.slot: 0 for bit in bits}
                first = bits[0].slot if bits else op.slot
                self.sizes |= {first: size} if size is not None else {}
            case Expect() | Pad() | TakeText() if size is not None:
                self.sizes[op.slot] = size
            case Optional():
                self.optionals[op.slot] = op
                self.sizes |= {slot: 0 for slot in _slots(op.body) if slot != op.slot}

    def _values(self, body: Body) -> None:
        """Check the values of a body, and assign the octets of those of variable size."""
        outer, self.omitted = self.omitted, ""
        for op in operations(body):
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
                case Sized() | Region():
                    self._values(op.body)
        self.omitted = outer

    def _variable(self, slot: str, type: str) -> str:
        """Return the variable for the octets of a slot."""
        if slot not in self.sources:
            return slot
        stem = {ITEM: "entry", NAME: "key", VALUE: "content"}.get(slot, slot)
        return self.names.fresh(stem, type)

    def _number(self, op: Number) -> None:
        if op.bits:
            self._bits(op)
        if op.counts or op.checks or op.bits:
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

    def _bits(self, op: Number) -> None:
        """Check the bits of an integer that messages have as values."""
        for bit in op.bits:
            value = self.source(bit.slot)
            if bit.boolean and not is_hidden(bit):
                self.encoder.refuse_if(f"not isinstance({value}, bool)", "TypeError")
            if bit.members and not is_hidden(bit):
                members = members_source(bit.members, self.encoder.protocol)
                self.encoder.refuse_if(f"{value} not in {members}")

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
            case "run":
                run, least = self.encoder.runs[op.extent.among], op.extent.octets
                self.encoder.refuse_if(f"run_end({run}, {target}, 0, {least}) != len({target})")

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
        if op.until and not op.count:
            begins = f"octets.startswith({octets_literal(op.until)})"
            self.encoder.refuse_if(f"any({begins} for octets in {target})")
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
        """Assign the octets of values that may be omitted."""
        octets = self.names.fresh("octets", "bytes")
        self.lines.add(f'{octets} = b""')
        if op.boolean:
            self.encoder.refuse_if(f"not isinstance({self.source(op.slot)}, bool)", "TypeError")
        with self.lines.block(f"if {self._presence(op)}:"):
            if self.omitted and op.when.kind == "left":
                self.encoder.refuse_if(self.omitted)
            for other in op.others:
                self.encoder.refuse_if(f"{self.source(other)} is None")
            inner = BodyEncoder(self.encoder, self.owner)
            self.lines.add(f"{octets} = {inner.expression(op.body)}")
            if op.when.kind == "left" and may_be_empty(op.body, self.encoder.records):
                self.encoder.refuse_if(f"not {octets}")
        if op.others:
            present = " or ".join(f"{self.source(other)} is not None" for other in op.others)
            with self.lines.block(f"elif {present}:"):
                self.lines.add("raise ValueError")
        if op.when.kind == "left":
            self.omitted = f"not {self.source(op.slot)}" if op.boolean else f"{self.source(op.slot)} is None"
        self.octets[op.slot] = octets

    def _presence(self, op: Optional) -> str:
        """Return the condition that the message has optional values."""
        return self.source(op.slot) if op.boolean else f"{self.source(op.slot)} is not None"

    def _check_condition(self, op: Optional) -> None:
        """Check that values are present if, and only if, a number is as they require."""
        if op.when.kind != "number":
            return
        number = self.integers[op.when.slot]
        if isinstance(number, Bit) and number.announces == op.slot:
            return
        value = self.source(number.slot)
        if number.counts:
            value = self._count(number)
        elif isinstance(number, Bit) and number.announces:
            value = self._presence(self.optionals[number.announces])
        self.encoder.refuse_if(f"({self._presence(op)}) is not ({condition_source(op.when, value)})")

    def _record(self, op: Nest | Choose) -> str:
        function = record_function(op.record) if isinstance(op, Nest) else choice_function(op.options)
        strict = ", strict" if strict_matters(self.encoder.plan) else ""
        depth = f", {self.encoder.depth}" if self.encoder.plan.max_depth else ""
        return f"_write_{function}({self.source(op.slot)}{strict}{depth})"

    # Assembly

    def assemble(self, body: Body) -> None:
        """Add the pieces of a body."""
        for op in body:
            if isinstance(op, Sized):
                inside = self._inside(op.body)
                self.pieces.append(f"sized({inside}, {op.forms!r})")
            else:
                for inner in operations((op,)):
                    self._piece(inner)
        self.pieces.flush()

    def _inside(self, body: Body) -> str:
        """Return the octets of a body inside this one, whose values are prepared."""
        inner = BodyEncoder(self.encoder, self.owner, self.sources)
        inner.octets, inner.lists, inner.measured = self.octets, self.lists, self.measured
        inner.numbers, inner.sizes, inner.optionals = self.numbers, self.sizes, self.optionals
        inner.assemble(body)
        return inner.pieces.joined()

    def _piece(self, op: Op) -> None:
        match op:
            case Expect(octets=octets):
                self.pieces.constant(octets)
            case Pad(octets=octets, fill=fill, multiple=0):
                self.pieces.constant(fill * octets)
            case Pad(fill=fill, multiple=multiple):
                self._pad(fill, multiple)
            case Number():
                self._add_number(op)
            case TakeText(padding=bytes() as fill, extent=extent):
                call = f"padded({self.source(op.slot)}, {extent.octets}, {octets_literal(fill)})"
                self.pieces.add(f"{extent.octets}s", call)
            case TakeText(extent=extent) | TakeOctets(extent=extent):
                if extent.kind == "fixed":
                    self.pieces.add(f"{extent.octets}s", self.octets[op.slot])
                else:
                    self.pieces.append(self.octets[op.slot])
            case Loop():
                self.pieces.append(self.octets[op.slot])
            case Nest() | Choose():
                self.pieces.append(self.octets.get(op.slot) or self._record(op))
            case Optional():
                self.pieces.append(self.octets[op.slot])
            case Region(body=inside):
                self._region(inside)
            case Mark(name=name):
                self.pieces.flush()
                self.marks[name] = len(self.pieces.octets)
            case Verify():
                self._verify(op)

    def _region(self, body: Body) -> None:
        """Add the pieces of a region, which has no octets of its own."""
        self.pieces.flush()
        outer, self.start = self.start, len(self.pieces.octets)
        self.assemble(body)
        self.start = outer

    def _add_number(self, op: Number) -> None:
        if op.checks:
            self.pieces.append("")
            self.checks[op.slot] = len(self.pieces.octets) - 1, op
            return
        if op.bits:
            value = self._bit_terms(op)
        elif op.counts:
            value = self._count(op)
        elif op.flags and announcing_bits(self.encoder.protocol):
            value = "flags"
        else:
            value = self.source(op.slot)
        if isinstance(op.coding, Varint | Digits):
            octets = _variable_number(op, value) if op.counts else self.octets[op.slot]
            self.pieces.append(octets)
            return
        self.pieces.number(op, value)

    def _bit_terms(self, op: Number) -> str:
        """Return the expression for an integer that is made of bits."""
        constant = sum((bit.constant or 0) << bit.shift for bit in op.bits)
        terms = [f"0x{constant:02x}"] if constant else []
        for bit in op.bits:
            if bit.constant is not None or bit.spare:
                continue
            value = self._count(bit) if bit.counts else self.source(bit.slot)
            if bit.announces:
                value = f"({self._presence(self.optionals[bit.announces])})"
            elif not bit.boolean:
                value = f"bits_of({value}, {bit.width})"
            terms.append(f"{value} << {bit.shift}" if bit.shift else value)
        return " | ".join(terms) or "0"

    def _count(self, op: Number | Bit) -> str:
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

    def _pad(self, fill: bytes, multiple: int) -> None:
        """Add octets up to a multiple: the pieces before them become variables."""
        self.pieces.flush()
        for position, piece in enumerate(self.pieces.octets[self.start :], start=self.start):
            if piece:
                self.pieces.octets[position] = self._assigned(piece, "before")
        terms = [f"len({piece})" for piece in self.pieces.octets[self.start :] if piece]
        terms += [
            str(fixed_octets(check))
            for at, check in self.checks.values()
            if at >= self.start and not self.pieces.octets[at]
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
        self.pieces.flush()
        covered: list[str] = []
        for begin, end in op.ranges:
            first, last = self.marks[begin], self.marks[end]
            pieces = [
                self._assigned(piece, "covered") if piece else "" for piece in self.pieces.octets[first:last]
            ]
            self.pieces.octets[first:last] = pieces
            covered += filter(None, pieces)
        position, number = self.checks[op.slot]
        inner = Pieces(self.encoder)
        octets = " + ".join(covered) or 'b""'
        inner.number(number, f"compute_checksum({op.algorithm!r}, {octets})")
        inner.flush()
        self.pieces.octets[position] = inner.joined()


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
    numbers = {op.count for op in ops if isinstance(op, Loop)}
    return any(slot in counter.counts and counter.slot not in numbers for counter in counters(ops))


def _slots(body: Body) -> Iterator[str]:
    """Yield the slots of a body, and those of bits."""
    for op in nested(body):
        if isinstance(op, Number):
            yield op.slot
            yield from (bit.slot for bit in op.bits)
        elif not isinstance(op, Fixed | Mark | Region):
            yield op.slot


def _variable_number(op: Number, value: str) -> str:
    match op.coding:
        case Varint(order=order, maximum=maximum, signed=signed):
            return f"write_varint({value}, {maximum}, {order!r}, {signed!r})"
        case Digits(base=base, minimum=minimum, maximum=maximum, signed=signed_):
            return f"write_digits({value}, {base}, {minimum}, {maximum}, {signed_})"
    raise TypeError("a number of fixed size is packed")
