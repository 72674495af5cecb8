"""Lowering of a layout to a plan: the fields of each run become operations.

A number that counts becomes a hidden slot, adjacent operations of fixed size become one `Fixed`, and
fields that belong together, those of a region, an option or an integer of bits, become one
operation. Each record is lowered once.
"""

from __future__ import annotations

from itertools import takewhile
from typing import Literal

import msgspec

from .layout import (
    Bits,
    Boolean,
    Checksum,
    Constant,
    Counter,
    Digits,
    Enclosing,
    Field,
    Float,
    Frame,
    Integer,
    Json,
    Keyword,
    ListOf,
    MessageLayout,
    Octets,
    Padding,
    Pairs,
    Present,
    ProtocolLayout,
    Record,
    Rest,
    Size,
    Span,
    Stack,
    Text,
    Type,
    Union,
    Uuid,
    Varint,
)
from .plan import (
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
    OneFrame,
    Op,
    Optional,
    Pad,
    Part,
    Plan,
    RecordPlan,
    Region,
    Sized,
    TakeOctets,
    TakeText,
    Verify,
    When,
    Word,
    by_tag,
    fixed_octets,
    hidden,
)
from .words import show


def lower(layout: ProtocolLayout) -> Plan:
    """Return the plan of a protocol."""
    found = _Found()
    messages = tuple(_message(message, found) for message in layout.messages)
    return Plan(layout.protocol, layout.edition, messages, tuple(found.records.values()), layout.max_depth)


class _Found:
    """Records and unions that lowering has met."""

    def __init__(self) -> None:
        self.records: dict[str, RecordPlan] = {}
        self.unions: dict[str, Choose] = {}


def _message(message: MessageLayout, found: _Found) -> MessagePlan:
    return MessagePlan(message.name, message.class_name, tuple(_part(part, found) for part in message.parts))


def _part(part: Frame | Stack | Rest, found: _Found) -> Part:
    match part:
        case Frame(name=name, fields=fields, presence=presence, letter=letter):
            return OneFrame(name, _body(fields, found), presence, letter)
        case Stack(name=name, field=field, presence=presence, letter=letter, delimiter=delimiter):
            body = _merge(_value(field.type, ITEM, found))
            return ManyFrames(name, field.attribute, body, delimiter, presence, letter)
        case Rest(name=name, field=field):
            return ManyFrames(name, field.attribute, _merge(_value(field.type, ITEM, found)), None)


def _body(fields: tuple[Field, ...], found: _Found) -> Body:
    """Return the operations of a run of fields."""
    return _merge(_Run(fields, found).operations(fields))


class _Run:
    """Lowering of one run: its counters by the fields that they count, and its checksums."""

    def __init__(self, fields: tuple[Field, ...], found: _Found) -> None:
        self.found = found
        self.counters: dict[str, tuple[Field, Counter]] = {}
        """Attribute -> the counter that counts only it: its octets or its items."""
        self.regions: dict[str, list[tuple[Field, Counter]]] = {}
        """First counted attribute -> the counters of regions that begin there, the widest last."""
        self.marks: dict[str, list[str]] = {}
        """Attribute -> marks before it."""
        self.marks_behind: dict[str, list[str]] = {}
        """Attribute -> marks after it."""
        self.checks: dict[str, list[Verify]] = {}
        """Attribute -> the checksums that are complete after it."""
        self.types = {field.attribute: field.type for field in fields}
        self.announced: dict[str, str] = {}
        """Attribute of bits -> the first value whose presence they announce."""
        for field in fields:
            if field.option is not None and field.option.field and not field.implied:
                self.announced.setdefault(field.option.field, field.attribute)
        for field in fields:
            if isinstance(field.type, Counter):
                first = field.type.counts[0]
                if _counts_itself(self.types[first], field.type):
                    self.counters[first] = (field, field.type)
                else:
                    self.regions.setdefault(first, []).append((field, field.type))
        self.complete: dict[str, int] = {}
        """Attribute of a checksum -> position of the field after which it is complete."""
        for slot in self._inner_checksums_first():
            self._checksum(slot, [field.attribute for field in fields])
        for counters in self.regions.values():
            counters.sort(key=lambda entry: len(entry[1].counts))

    def _inner_checksums_first(self) -> list[str]:
        """Return the checksums of the run, each after those that it covers."""
        found: list[str] = []
        begun: set[str] = set()

        def add(slot: str) -> None:
            type = self.types[slot]
            if isinstance(type, Checksum) and slot not in begun:
                begun.add(slot)
                for covered in type.over:
                    add(covered)
                found.append(slot)

        for slot in self.types:
            add(slot)
        return found

    def _checksum(self, slot: str, names: list[str]) -> None:
        """Mark the ranges of adjacent fields that a checksum covers."""
        type = self.types[slot]
        assert isinstance(type, Checksum)
        ranges: list[tuple[str, str]] = []
        last = -2
        for at in sorted(names.index(name) for name in type.over):
            mark = f"{slot}#{at}"
            if at != last + 1:
                ranges.append((mark, mark))
                self.marks.setdefault(names[at], []).append(mark)
            else:
                self.marks_behind[names[last]].remove(ranges[-1][1])
            end = f"{mark}."
            ranges[-1] = (ranges[-1][0], end)
            self.marks_behind.setdefault(names[at], []).append(end)
            last = at
        inner = [self.complete[covered] for covered in type.over if covered in self.complete]
        self.complete[slot] = max(last, names.index(slot), *inner)
        verify = Verify(slot, type.algorithm, tuple(ranges))
        self.checks.setdefault(names[self.complete[slot]], []).append(verify)

    def operations(self, fields: tuple[Field, ...]) -> list[Op]:
        """Return the operations of fields, those of a region, an option or an integer of bits as one."""
        ops: list[Op] = []
        position = 0
        while position < len(fields):
            field = fields[position]
            ops += map(Mark, self.marks.pop(field.attribute, ()))
            regions = self.regions.get(field.attribute, [])
            # A region whose number is part of the same option is inside that.
            if field.option is not None and (not regions or regions[-1][0].option == field.option):
                inside = _same_option(fields[position:])
                behind = self._behind(inside[-1].attribute)
                ops += [self._optional(inside), *behind]
                position += len(inside)
                continue
            if regions:
                counter, type = regions.pop()
                inside = fields[position : position + len(type.counts)]
                behind = self._behind(inside[-1].attribute)
                ops.append(Region(counter.attribute, _merge(self.operations(inside)), type.plus))
                ops += behind
                position += len(type.counts)
                continue
            if _bits(field.type) is not None:
                inside = _same_integer(fields[position:])
                ops += [self._integer(inside), *self._behind(inside[-1].attribute)]
                position += len(inside)
                continue
            if isinstance(field.type, Size):
                rest = _merge(self.operations(fields[position + 1 :]))
                ops.append(Sized(field.attribute, field.type.forms, rest))
                break
            ops += self._field(field)
            ops += self._behind(field.attribute)
            position += 1
        return ops

    def _optional(self, fields: tuple[Field, ...]) -> Optional:
        """Return the operation of the fields of one option."""
        option = fields[0].option
        assert option is not None
        octets = option.octets.lower() if option.folded else option.octets
        when = When(option.kind, option.left, octets, option.folded, option.field, option.mask, option.values)
        plain = tuple(msgspec.structs.replace(field, option=None) for field in fields)
        body = _merge(self.operations(tuple(f for f in plain if not isinstance(f.type, Present))))
        slot, *others = (field.attribute for field in plain if not field.implied)
        boolean = any(isinstance(field.type, Present) for field in plain)
        return Optional(slot, body, when, tuple(others), boolean)

    def _integer(self, fields: tuple[Field, ...]) -> Number:
        """Return the operation of the fields of one integer of bits."""
        first = _bits(fields[0].type)
        assert first is not None
        coding = Integer(first.octets, order=first.order)
        return Number(hidden(fields[0].attribute), coding, bits=tuple(map(self._bit, fields)))

    def _bit(self, field: Field) -> Bit:
        type = _bits(field.type)
        assert type is not None
        counts: tuple[str, ...] = ()
        plus = 0
        if isinstance(field.type, Counter):
            counts, plus = self._counted(field.type), field.type.plus
        slot = self.announced.get(field.attribute, "") if type.announces else ""
        return Bit(
            field.attribute, type.shift, type.width, type.boolean, type.constant, type.members, type.spare,
            counts, plus, slot,
        )  # fmt: skip

    def _behind(self, slot: str) -> list[Op]:
        """Return the marks after a field, and the checksums that are complete then."""
        return [*map(Mark, self.marks_behind.pop(slot, ())), *self.checks.pop(slot, ())]

    def _counted(self, counter: Counter) -> tuple[str, ...]:
        """Return the slots that a counter counts: those of the numbers in front of values, too."""
        first = self.types[counter.counts[0]]
        if _counts_itself(first, counter):
            return counter.counts
        slots: list[str] = []
        for name in counter.counts:
            type = self.types[name]
            prefixed = isinstance(type, Text | Octets) and type.span.kind == "prefix"
            if prefixed or (isinstance(type, ListOf | Pairs) and type.count_octets):
                slots.append(hidden(name))
            slots.append(name)
        return tuple(slots)

    def _field(self, field: Field) -> list[Op]:
        slot = field.attribute
        if isinstance(field.type, Counter):
            number = field.type.number
            assert not isinstance(number, Bits)
            return [Number(slot, number, self._counted(field.type), field.type.plus)]
        if isinstance(field.type, Checksum):
            return [Number(slot, field.type.number, checks=True)]
        counter = self.counters.get(slot)
        count = (counter[0].attribute, counter[1].plus) if counter else None
        found = _value(field.type, slot, self.found, count, flags=field.flags)
        return [Optional(slot, _merge(found))] if field.optional else found


def _bits(type: Type) -> Bits | None:
    """Return the bits of a field that is some bits of an integer; None for other fields."""
    found = type.number if isinstance(type, Counter) else type
    return found if isinstance(found, Bits) else None


def _same_integer(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the first fields, which are the bits of one integer."""
    for position, field in enumerate(fields):
        bits = _bits(field.type)
        if bits is None:
            break
        if not bits.shift:
            return fields[: position + 1]
    raise TypeError(f"{fields[0].attribute}: bits of an integer are missing")


def _same_option(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the first fields, which have the same option."""
    return tuple(takewhile(lambda field: field.option == fields[0].option, fields))


def _counts_itself(type: Type, counter: Counter) -> bool:
    """Return whether the counter is the length of one value or the number of its items, rather than
    a region's."""
    match type:
        case Text(span=span) | Octets(span=span):
            return len(counter.counts) == 1 and span.kind == "counted"
        case ListOf(counted=counted) | Pairs(counted=counted):
            return len(counter.counts) == 1 and counted
    return False


def _merge(ops: list[Op]) -> Body:
    """Return operations with adjacent ones of fixed size as one `Fixed`."""
    body: list[Op] = []
    run: list[Op] = []
    for op in ops:
        if fixed_octets(op) is not None:
            run.append(op)
            continue
        _close(run, body)
        run = []
        body.append(op)
    _close(run, body)
    return tuple(body)


def _close(run: list[Op], body: list[Op]) -> None:
    if run:
        body.append(Fixed(sum(fixed_octets(op) or 0 for op in run), tuple(run)))


def _value(
    type: Type,
    slot: str,
    found: _Found,
    count: tuple[str, int] | None = None,
    *,
    flags: bool = False,
) -> list[Op]:
    """Return the operations of one value; `count` is the slot that counts it, and the number to
    subtract."""
    match type:
        case Constant(octets=octets, words=words, folded=folded):
            return [Expect(slot, octets, words, folded)]
        case Keyword(options=options, folded=folded):
            return [Word(slot, options, folded)]
        case Padding(octets=number, fill=fill, multiple=multiple):
            return [Pad(slot, number, fill, multiple)]
        case Integer() | Float() | Boolean() | Varint() | Digits():
            return [Number(slot, type, flags=flags)]
        case Uuid(order=order):
            return [TakeOctets(slot, Extent("fixed", 16), uuid=order)]
        case Json():
            return [TakeText(slot, Extent("rest"), json=True)]
        case Text(span=span):
            taken = TakeText(slot, _extent(span, slot, count), type.pattern, type.terminated, type.padding)
            return [*_prefix(span, slot), taken]
        case Octets(span=span):
            extent = _extent(span, slot, count)
            return [*_prefix(span, slot), TakeOctets(slot, extent, type.minimum, type.maximum)]
        case ListOf() | Pairs():
            return _loop(type, slot, found, count)
        case Record():
            _keep(type, found)
            return [Nest(slot, type.class_name)]
        case Union(options=choices, tags=tags, folded=folded, name=name):
            names = [option.class_name for option in choices]
            choose = Choose(slot, by_tag(names, tags, folded=folded), folded)
            found.unions[name] = choose
            for option in choices:
                _keep(option, found)
            return [choose]
        case Enclosing(name=name) if name in found.unions:
            return [msgspec.structs.replace(found.unions[name], slot=slot)]
        case Enclosing(name=name):
            return [Nest(slot, name)]
        case Size() | Counter() | Checksum() | Bits() | Present():
            raise TypeError(f"{slot} belongs to a run of fields")


def _loop(type: ListOf | Pairs, slot: str, found: _Found, count: tuple[str, int] | None) -> list[Op]:
    coding = type.number or Integer(type.count_octets)
    prefix = [Number(hidden(slot), coding, (slot,))] if type.count_octets else []
    number, plus = count or (hidden(slot) if prefix else "", 0)
    pairs: Literal["", "both", "first", "last"] = ""
    last = ITEM
    rule = None
    if isinstance(type, ListOf):
        body = _value(type.element, ITEM, found)
    elif type.value is None:
        body, pairs, rule = _value(type.name, ITEM, found), type.split or "first", type.rule
    else:
        between = _constant(VALUE, type.between)
        body = [*_value(type.name, NAME, found), *between, *_value(type.value, VALUE, found)]
        pairs, rule, last = "both", type.rule, VALUE
    first = NAME if last == VALUE else ITEM
    whole = _merge([*_constant(first, type.before), *body, *_constant(last, type.after)])
    return [*prefix, Loop(slot, whole, number, plus, type.minimum, pairs, rule, type.until)]


def _constant(slot: str, octets: bytes) -> list[Op]:
    """Return the operation of constant octets around a value of a loop, if there are any."""
    return [Expect(slot, octets, show(octets))] if octets else []


def _keep(record: Record, found: _Found) -> None:
    if record.class_name not in found.records:
        body = _body(record.fields, found)
        found.records[record.class_name] = RecordPlan(record.class_name, body, record.rule)


def _prefix(span: Span, slot: str) -> list[Op]:
    if span.kind != "prefix":
        return []
    return [Number(hidden(slot), span.number or Integer(span.octets), (slot,))]


def _extent(span: Span, slot: str, count: tuple[str, int] | None) -> Extent:
    match span.kind:
        case "prefix":
            return Extent("slot", slot=hidden(slot))
        case "fixed":
            return Extent("fixed", span.octets)
        case "until":
            return Extent("until", until=span.until)
        case "run":
            return Extent("run", span.octets, among=span.among)
        case "counted" if count:
            return Extent("slot", slot=count[0], plus=count[1])
    return Extent("rest", span.octets)
