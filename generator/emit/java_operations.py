"""Operations of a plan as Java expressions: for each operation, the constructor of the class with its name.

A *scope* has the values of one struct of columns: those of a message, of a record, or of an item of a list. It gives
each slot the field that errors name and the column. A hidden number gets a register, which the operations that it
counts or conditions read.

A record that contains itself has columns only on the outside; the same inside is one column with its octets, and read
with the operations of the outer one, which has a number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from specwire.generator.emit.bodies import flat
from specwire.generator.emit.java_source import Call, java_list, java_string
from specwire.generator.emit.tables import Column, Kind, Many, Options, Pairs, Struct
from specwire.generator.support import layout
from specwire.generator.support.plan import (
    ITEM,
    NAME,
    VALUE,
    Bit,
    Body,
    Choose,
    Expect,
    Extent,
    Fixed,
    Loop,
    ManyFrames,
    Mark,
    MessagePlan,
    Nest,
    Number,
    Op,
    Optional,
    Pad,
    Part,
    RecordPlan,
    Region,
    Sized,
    TakeOctets,
    TakeText,
    Verify,
    When,
    Word,
    fixed_octets,
    operations,
)

SQL = {
    "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT", "uint64": "DECIMAL(20, 0)",
    "float32": "FLOAT", "float64": "DOUBLE", "string": "STRING", "binary": "BINARY", "bool": "BOOLEAN",
}  # fmt: skip
STORE = {
    "int8": "BYTE", "int16": "SHORT", "int32": "INT", "int64": "LONG", "uint64": "DECIMAL", "float32": "FLOAT",
    "float64": "DOUBLE", "bool": "BOOLEAN",
}  # fmt: skip
"""How a row stores a number; other values are stored elsewhere, with a pointer in the row."""


class PythonChecksum(Exception):
    """A checksum that a Python function of the user computes, which Java cannot call."""


@dataclass(frozen=True)
class _Place:
    """Value of a slot: name and rule for errors, column, and type of the column."""

    name: str
    rule: str | None
    column: str = ""
    kind: Kind = "string"

    @property
    def field(self) -> Call:
        """Return the name and the rule as an expression."""
        return Call("new Field", (java_string(self.name), _string(self.rule)))

    @property
    def store(self) -> str:
        """Return how a row stores the value."""
        return f"Store.{STORE.get(self.kind, 'POINTER') if isinstance(self.kind, str) else 'POINTER'}"


@dataclass
class _Scope:
    """Slots of one struct of columns, and registers of its hidden numbers."""

    places: dict[str, _Place]
    check: str = "AT_MOST"
    """What a number of octets must be here: all that are left, at most that, or both."""
    codings: dict[str, layout.Coding] = field(default_factory=dict)
    """How each hidden number is written."""
    registers: dict[str, int] = field(default_factory=dict)
    """Registers of marks, and of numbers that later operations need."""
    kept: frozenset[str] = frozenset()
    """Slots of numbers that are not hidden and have a register."""

    @contextmanager
    def bounded(self) -> Iterator[None]:
        """Spell operations inside others that say where they end."""
        outer, self.check = self.check, "EXACT" if self.check == "EXACT" else "BOTH"
        yield
        self.check = outer

    def place(self, slot: str) -> _Place:
        """Return the place of a slot; a hidden slot has that of the value."""
        return self.places[slot.removesuffix("#")]


def message_call(
    plan: MessagePlan, records: Sequence[RecordPlan], message: layout.MessageLayout, columns: Sequence[Column]
) -> Call:
    """Return the expression for a message, with the columns of its struct and the records of the protocol."""
    fields = [field for part in message.parts for field in _fields(part)]
    speller = _Speller(message, records)
    kept = frozenset().union(*(_kept(part.body) for part in plan.parts))
    scope = _Scope(_places(fields, columns), kept=kept)
    parts = [speller.part(part, same, scope) for part, same in zip(plan.parts, message.parts, strict=True)]
    tags = [Call("new Tag", tuple(java_string(piece.hex()) for piece in tag)) for tag in message.tags]
    return Call(
        "new Message",
        (
            java_string(message.name), java_string(message.class_name), java_string(_struct(columns)),
            str(sum(not field.implied for field in fields)), str(speller.registers), java_list(tags),
            java_list(map(java_string, message.patterns)), _flags(plan, scope), *parts,
        ),
    )  # fmt: skip


def _fields(part: layout.Part) -> tuple[layout.Field, ...]:
    return part.fields if isinstance(part, layout.Frame) else (part.field,)


def _places(fields: Iterable[layout.Field], columns: Sequence[Column]) -> dict[str, _Place]:
    """Return the places of fields; those that are not implied have the columns, in order."""
    found: dict[str, _Place] = {}
    number = 0
    for one in fields:
        if one.implied:
            found[one.attribute] = _Place(one.name, one.rule)
        else:
            found[one.attribute] = _Place(one.name, one.rule, str(number), columns[number].kind)
            number += 1
    return found


def _kept(body: Body) -> frozenset[str]:
    """Return the slots of numbers that a register keeps: they decide whether other values of a run are present,
    or they are flags whose offset varies."""
    found = {op.when.slot for op in flat(body) if isinstance(op, Optional) and op.when.slot}
    flags, offset = _flags_of(body)
    return frozenset(found | ({flags.slot} if flags and offset is None else set()))


def _flags_of(body: Body) -> tuple[Number | None, int | None]:
    """Return the number in a body whose bits announce parts, and its offset, None if that varies."""
    offset: int | None = 0
    for op in operations(body):
        if isinstance(op, Number) and op.flags:
            return op, offset
        size = fixed_octets(op)
        offset = None if offset is None or size is None else offset + size
    return None, None


def _flags(plan: MessagePlan, scope: _Scope) -> Call | str:
    """Return the expression for the octet that announces parts; parts are spelled before it."""
    for index, part in enumerate(plan.parts):
        op, offset = _flags_of(part.body)
        if op is not None and offset is None:
            kept = str(scope.registers[op.slot])
            return Call("Flags.kept", (scope.place(op.slot).field, str(index), kept))
        if op is not None:
            return Call("new Flags", (scope.place(op.slot).field, str(index), str(offset)))
    return "null"


class _Speller:
    """Speller of the operations of one message; it numbers the registers."""

    def __init__(self, message: layout.MessageLayout, records: Sequence[RecordPlan]) -> None:
        self.registers = 0
        self.enclosing: dict[tuple[str, ...], int] = {}
        """Numbers of the records and unions that contain themselves, by their classes."""
        self.bodies = {record.class_name: record.body for record in records}
        types = [field.type for part in message.parts for field in _fields(part)]
        self.records = {record.class_name: record for type in types for record in _records(type)}

    def part(self, part: Part, same: layout.Part, scope: _Scope) -> Call:
        """Return the expression for a part of the message; a frame of one field has its name."""
        scope.check = "EXACT"
        presence = _presence(part.presence)
        if isinstance(part, ManyFrames):
            place = scope.place(part.slot)
            item = self.item(place, place.rule)
            delimiter = "null" if part.delimiter is None else java_string(part.delimiter.hex())
            names = (place.field, presence, place.column, item.place(ITEM).store, delimiter)
            return Call("new Frames", (*names, *self.body(part.body, item)))
        first, *others = _fields(same)
        named = _Place(part.name, None) if others else scope.place(first.attribute)
        return Call("new Frame", (named.field, presence, *self.body(part.body, scope)))

    def item(self, place: _Place, rule: str | None) -> _Scope:
        """Return the scope of the items of a list; errors name an item after the list."""
        kind = place.kind.element if isinstance(place.kind, Many) else "string"
        return _Scope({ITEM: _Place("", rule, "Operation.ITEM", kind)})

    def body(self, body: Body, scope: _Scope) -> tuple[Call, ...]:
        """Return the expressions for a body."""
        found: list[Call] = []
        for op in operations(body):
            if isinstance(op, Number) and op.slot.endswith("#") and not op.bits:
                # The operation that it counts is next, and reads it.
                scope.codings[op.slot] = op.coding
            else:
                found.append(self.operation(op, scope))
        return tuple(found)

    def operation(self, op: Op, scope: _Scope) -> Call:
        """Return the expression for an operation."""
        match op:
            case Expect(slot=slot, octets=octets, words=words, folded=folded):
                constant = (scope.place(slot).field, java_string(octets.hex()), java_string(words))
                return Call("new Expect", (*constant, *["true"] * folded))
            case Pad(slot=slot, octets=octets, multiple=multiple):
                return Call("new Pad", (scope.place(slot).field, str(octets), str(multiple)))
            case Number(coding=coding, bits=bits) if bits:
                return Call("new Bits", (_coding(coding), *(self.bit(bit, scope) for bit in bits)))
            case Number():
                return self.number(op, scope)
            case TakeText(slot=slot, extent=extent, terminated=terminated, padding=padding):
                fill = "-1" if padding is None else f"0x{padding.hex()}"
                return self.value("TakeText", slot, scope, _extent(extent, scope), _bool(terminated), fill)
            case TakeOctets(slot=slot, uuid=str() as order):
                return self.value("TakeUuid", slot, scope, _bool(order == "little"))
            case TakeOctets(slot=slot, extent=extent, minimum=minimum, maximum=maximum):
                most = "Long.MAX_VALUE" if maximum is None else f"{min(maximum, 2**63 - 1)}L"
                return self.value("TakeOctets", slot, scope, _extent(extent, scope), str(minimum), most)
            case Word(slot=slot, options=options, folded=folded):
                return self.value("Word", slot, scope, _bool(folded), *map(java_string, options))
            case Loop():
                return self.loop(op, scope)
            case Nest(slot=slot, record=record):
                kind = scope.place(slot).kind
                if isinstance(kind, Struct):
                    return self.value("Nest", slot, scope, self.record(record, kind))
                return self.enclosed(slot, (record,), scope)
            case Choose():
                return self.choose(op, scope)
            case Optional():
                return self.optional(op, scope)
            case Sized():
                return self.sized(op, scope)
            case Region(count=count, plus=plus):
                with scope.bounded():
                    return Call("new Region", (_count(count, plus, scope), *self.body(op.body, scope)))
            case Mark(name=name):
                return Call("new Mark", (str(self.register(name, scope)),))
            case Verify():
                return self.verify(op, scope)
            case Fixed():
                raise TypeError(op)

    def value(self, name: str, slot: str, scope: _Scope, *arguments: Call | str) -> Call:
        """Return the expression for an operation with a column."""
        place = scope.place(slot)
        return Call(f"new {name}", (place.field, place.column, *arguments))

    def number(self, op: Number, scope: _Scope) -> Call:
        """Return the expression for a number: with a column, or hidden with a register."""
        place, coding = scope.place(op.slot), _coding(op.coding)
        if op.counts or op.checks:
            scope.codings[op.slot] = op.coding
            return Call("new Keep", (place.field, str(self.register(op.slot, scope)), coding))
        kept = [str(self.register(op.slot, scope))] if op.slot in scope.kept else []
        return Call("new Number", (place.field, place.column, place.store, coding, *kept))

    def bit(self, bit: Bit, scope: _Scope) -> Call:
        """Return the expression for some bits of an integer."""
        place = scope.place(bit.slot)
        allowed = bit.members if bit.constant is None else (bit.constant,)
        kind = java_string("range" if bit.constant is None else "constant")
        needed = bit.counts or bit.slot in scope.kept
        register = str(self.register(bit.slot, scope)) if needed else "Operation.NONE"
        column = place.column or "Operation.NONE"
        return Call(
            "new Bits.Bit",
            (
                place.field, str(bit.shift), str(bit.width), column, place.store, register, kind,
                *map(_long, allowed),
            ),
        )  # fmt: skip

    def optional(self, op: Optional, scope: _Scope) -> Call:
        """Return the expression for operations under a condition."""
        when, body = _when(op.when, scope), self.body(op.body, scope)
        if op.boolean:
            return self.value("Present", op.slot, scope, when, *body)
        return Call("new Optional", (when, *body))

    def choose(self, op: Choose, scope: _Scope) -> Call:
        """Return the expression for one of several records."""
        kind = scope.place(op.slot).kind
        classes = tuple(name for _, name in op.options)
        if not isinstance(kind, Options):
            return self.enclosed(op.slot, classes, scope)
        structs = {one.class_name: (number, one.struct) for number, one in enumerate(kind.options)}
        options = []
        for tag, name in op.options:
            number, struct = structs[name]
            option = (str(number), java_string(tag.hex()), self.record(name, struct))
            options.append(Call("new Choose.Option", option))
        call = self.value("Choose", op.slot, scope, _bool(op.folded), *options)
        return self.numbered(call, classes)

    def enclosed(self, slot: str, classes: tuple[str, ...], scope: _Scope) -> Call:
        """Return the expression for a value like the one of the same classes around it."""
        number = self.enclosing.setdefault(classes, len(self.enclosing))
        return self.value("Enclosed", slot, scope, str(number))

    def numbered(self, call: Call, classes: tuple[str, ...]) -> Call:
        """Return the expression for a value; with its number if it contains itself."""
        number = self.enclosing.get(classes)
        return call if number is None else call.followed(f".enclosing({number})")

    def register(self, name: str, scope: _Scope) -> int:
        """Give a hidden number or a mark a register."""
        scope.registers[name] = self.registers
        self.registers += 1
        return scope.registers[name]

    def verify(self, op: Verify, scope: _Scope) -> Call:
        """Return the expression for a checksum.

        Raises:
            PythonChecksum: a function of the user computes it.
        """
        if ":" in op.algorithm:
            raise PythonChecksum(op.algorithm)
        coding = scope.codings[op.slot]
        assert isinstance(coding, layout.Integer)
        marks = (str(scope.registers[mark]) for pair in op.ranges for mark in pair)
        name = op.algorithm.upper().replace("-", "_")
        register = str(scope.registers[op.slot])
        checksum = (register, str(coding.octets), f"Checksum.{name}")
        return Call("new Verify", (scope.place(op.slot).field, *checksum, *marks))

    def loop(self, op: Loop, scope: _Scope) -> Call:
        """Return the expression for a list."""
        place = scope.place(op.slot)
        rule = op.rule or place.rule
        item = self.item(place, rule)
        store = "Store.POINTER" if op.pairs else item.place(ITEM).store
        if op.pairs == "both":
            pair = _Scope({NAME: _Place("name", rule, "0"), VALUE: _Place("value", rule, "1")})
            struct = Call("Struct.ofPair", self.body(op.body, pair))
            body: tuple[Call, ...] = (Call("new Nest", (item.place(ITEM).field, "Operation.ITEM", struct)),)
        else:
            body = self.body(op.body, item)
        if op.pairs in ("first", "last"):
            body = tuple(_split(call, last=op.pairs == "last") for call in body)
        return Call(
            "new Loop",
            (
                place.field, place.column, _count(op.count, op.plus, scope) if op.count else "null",
                str(op.minimum), store, _string(rule), java_string(op.until.hex()) if op.until else "null", *body,
            ),
        )  # fmt: skip

    def record(self, name: str, kind: Struct) -> Call:
        """Return the expression for a record whose struct has the columns of `kind`."""
        record = self.records[name]
        body = self.bodies[name]
        scope = _Scope(_places(record.fields, kind.columns), kept=_kept(body))
        number = sum(not one.implied for one in record.fields)
        call = Call("new Struct", (_string(record.rule), str(number), *self.body(body, scope)))
        return self.numbered(call, (name,))

    def sized(self, op: Sized, scope: _Scope) -> Call:
        """Return the expression for a number of octets, and these."""
        check = scope.check
        forms = (Call("new Sized.Form", (java_string(tag.hex()), str(octets))) for tag, octets in op.forms)
        with scope.bounded():
            body = self.body(op.body, scope)
        return Call(
            "new Sized", (scope.place(op.slot).field, f"Sized.Check.{check}", java_list(forms), *body)
        )


def _split(call: Call, *, last: bool) -> Call:
    """Return the expression for a text as a name and a value; other expressions unchanged."""
    return Call("new Split", (call, _bool(last))) if call.head == "new TakeText" else call


def _when(when: When, scope: _Scope) -> Call:
    match when.kind:
        case "left":
            return Call("When.left", (str(when.left),))
        case "octets":
            return Call("When.octets", (java_string(when.octets.hex()), _bool(when.folded)))
        case "number":
            register = str(scope.registers[when.slot])
            return Call("When.number", (register, _long(when.mask), *map(_long, when.values)))


def _string(text: str | None) -> str:
    return "null" if text is None else java_string(text)


def _records(type: layout.Type) -> Iterator[layout.Record]:
    """Yield the records in a value, the outer one first."""
    match type:
        case layout.ListOf(element=element):
            yield from _records(element)
        case layout.Record(fields=fields):
            yield type
            for one in fields:
                yield from _records(one.type)
        case layout.Union(options=options):
            for option in options:
                yield from _records(option)


def _coding(coding: layout.Coding) -> Call:
    match coding:
        case layout.Integer(octets=octets, members=(), order="big", signed=False):
            return Call("Coding.unsigned", (str(octets),))
        case layout.Integer(octets=octets, members=members, order=order, signed=signed):
            return _integer(octets, order, members, signed=signed)
        case layout.Float(octets=octets, order=order):
            return _integer(octets, order)
        case layout.Boolean(octets=octets, order=order):
            return _integer(octets, order, (0, 1))
        case layout.Varint(order=order, maximum=maximum, signed=sign):
            little, zigzag, complement = order == "little", sign == "zigzag", sign == "complement"
            return Call("Coding.varint", (_bool(little), str(maximum), _bool(zigzag), _bool(complement)))
        case layout.Digits(base=base, minimum=minimum, maximum=maximum, signed=signed):
            return Call("Coding.digits", (str(base), str(minimum), str(maximum), _bool(signed)))


def _integer(octets: int, order: str, members: Sequence[int] = (), *, signed: bool = False) -> Call:
    little = _bool(order == "little")
    return Call("Coding.integer", (str(octets), little, _bool(signed), *map(_long, members)))


def _long(value: int) -> str:
    return f"{value}L" if value < 2**63 else f"0x{value:016x}L"


def _bool(value: bool) -> str:
    return str(value).lower()


def _count(slot: str, plus: int, scope: _Scope) -> Call:
    """Return the number in a hidden slot: the one directly before, or a register."""
    if slot.endswith("#"):
        return Call("Count.here", (_coding(scope.codings[slot]),))
    return Call("Count.kept", (scope.place(slot).field, str(scope.registers[slot]), str(plus)))


def _extent(extent: Extent, scope: _Scope) -> Call:
    match extent.kind:
        case "fixed":
            return Call("Extent.fixed", (str(extent.octets),))
        case "slot":
            return Call("Extent.counted", (_count(extent.slot, extent.plus, scope),))
        case "until":
            return Call("Extent.until", (java_string(extent.until.hex()),))
        case "rest":
            return Call("Extent.rest", (str(extent.octets),))
        case "run":
            return Call("Extent.run", (str(extent.octets), java_string(extent.among.hex())))


def _presence(presence: layout.Presence) -> Call | str:
    if presence.kind == "always" and not presence.mask:
        return "Presence.ALWAYS"
    if presence.kind == "counted":
        return Call("Presence.counted")
    return Call(f"Presence.{presence.kind}", (f"0x{presence.mask:02x}", f"0x{presence.value:02x}"))


def _struct(columns: Sequence[Column]) -> str:
    """Return the columns of a struct, as SQL defines them."""
    return ", ".join(f"`{column.name}` {_sql(column.kind)}" for column in columns)


def _sql(kind: Kind) -> str:
    match kind:
        case Many(element=element):
            return f"ARRAY<{_sql(element)}>"
        case Pairs(value=value):
            return f"ARRAY<STRUCT<name: STRING, value: {_sql(value)}>>"
        case Struct(columns=columns):
            return f"STRUCT<{_struct(columns)}>"
        case Options(options=options):
            inside = ", ".join(f"`{option.name}` {_sql(option.struct)}" for option in options)
            return f"STRUCT<{inside}>"
        case scalar:
            return SQL[scalar]
