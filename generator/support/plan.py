"""Plan of a protocol: the layout of its messages, lowered to operations.

Every back end spells or performs these operations, and none looks at the layout again. The
operations read and write the same octets, one after the other:

- `Expect`, `Number`, `TakeText`, `TakeOctets`, `Word`, `Pad`: one value
- `Loop`, `Nest`, `Choose`: many values, a record, one of several records
- `Optional`, `Sized`, `Region`: values that the end of the octets, or a number of octets, decides
- `Mark`, `Verify`: a position, and the checksum of the octets between positions
- `Fixed`: adjacent operations whose number of octets is known, for one check of the end

A value is read into a *slot*, the attribute of its field. A number that only says how long another
value is has a *hidden* slot: the slot of that value and ``#`` if it stands directly before the
value, else the attribute of its own field. Messages have no attribute for it, and encoding computes
it. Checksums are hidden, too. Inside a loop, the slot of an item is ``[]``; that of a name and a
value, ``[name]`` and ``[value]``.

A *body* is a sequence of operations: those of a frame, a record, an item of a loop, or inside
`Sized` and `Region`, which say where it ends. An operation that extends to the end is the last of
its body.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, TypeAlias, get_args

import msgspec

from .layout import (
    ALWAYS,
    Boolean,
    Checksum,
    Coding,
    Constant,
    Counter,
    Digits,
    Field,
    Float,
    Frame,
    Integer,
    Json,
    Keyword,
    ListOf,
    MessageLayout,
    Octets,
    Order,
    Padding,
    Pairs,
    Presence,
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

ITEM, NAME, VALUE = "[]", "[name]", "[value]"
"""Slots inside a loop."""


class Extent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Number of octets of a value.

    ``fixed``: always `octets`. ``slot``: the number in the slot `slot`, less `plus`. ``rest``: up
    to the end of the body but its last `octets` octets. ``until``: up to the octets `until`, which
    are expected after the value.
    """

    kind: Literal["fixed", "slot", "rest", "until"]
    octets: int = 0
    slot: str = ""
    plus: int = 0
    until: bytes = b""


class Expect(msgspec.Struct, frozen=True, tag="expect", tag_field="op"):
    """Octets that are always the same; `words` is the value as errors print it."""

    slot: str
    octets: bytes
    words: str


class Number(msgspec.Struct, frozen=True, tag="number", tag_field="op", omit_defaults=True):
    """Number, written as `coding` says.

    With `counts`, the slot is hidden: the number is that of all octets of those slots, or of the
    items of the one slot of a `Loop`, plus `plus`. With `checks`, the slot is hidden, and `Verify`
    says what it is. With `flags`, its bits announce parts of the message.
    """

    slot: str
    coding: Coding
    counts: tuple[str, ...] = ()
    plus: int = 0
    checks: bool = False
    flags: bool = False


class TakeText(msgspec.Struct, frozen=True, tag="text", tag_field="op", omit_defaults=True):
    """UTF-8 text.

    Only strict decoding requires `pattern` (over octets), a NUL at the end if `terminated`, and an
    object if `json`. `padding` is the octet that fills a text of fixed length after its content.
    """

    slot: str
    extent: Extent
    pattern: bytes | None = None
    terminated: bool = False
    padding: bytes | None = None
    json: bool = False


class TakeOctets(msgspec.Struct, frozen=True, tag="octets", tag_field="op", omit_defaults=True):
    """Opaque octets, at least `minimum` and at most `maximum` of them.

    With `uuid`, they are the 16 octets of a UUID; with ``little``, its first three parts are
    little-endian.
    """

    slot: str
    extent: Extent
    minimum: int = 0
    maximum: int | None = None
    uuid: Order | None = None


class Word(msgspec.Struct, frozen=True, tag="word", tag_field="op"):
    """One of several words that fill the body."""

    slot: str
    options: tuple[str, ...]


class Pad(msgspec.Struct, frozen=True, tag="pad", tag_field="op", omit_defaults=True):
    """Octets without meaning: any are read, `octets` times the octet `fill` is written.

    With `multiple`, there are as many as it takes for the position, from the start of the body, to
    be a multiple of it; `octets` is 0.
    """

    slot: str
    octets: int
    fill: bytes
    multiple: int = 0


class Loop(msgspec.Struct, frozen=True, tag="loop", tag_field="op", omit_defaults=True):
    """Items one after the other: the number in the slot `count` less `plus`, or up to the end of
    the body.

    The value is a tuple of the items. With `pairs`, an item is a pair: of the slots ``[name]`` and
    ``[value]``, or of the text in the slot ``[]``, split at its first or last ``=``. `rule` is the
    grammar's rule for one pair.
    """

    slot: str
    body: Body
    count: str = ""
    plus: int = 0
    minimum: int = 0
    pairs: Literal["", "both", "first", "last"] = ""
    rule: str | None = None


class Nest(msgspec.Struct, frozen=True, tag="nest", tag_field="op"):
    """A record: the body of the class `record`."""

    slot: str
    record: str


class Choose(msgspec.Struct, frozen=True, tag="choose", tag_field="op"):
    """The record whose tag begins here; `options` are tags and classes. No tag begins with
    another."""

    slot: str
    options: tuple[tuple[bytes, str], ...]


class Optional(msgspec.Struct, frozen=True, tag="optional", tag_field="op"):
    """Operations on the slot `slot` that are omitted, with all later ones, if the octets end before
    them."""

    slot: str
    body: Body


class Sized(msgspec.Struct, frozen=True, tag="sized", tag_field="op"):
    """The number of all octets of `body`, then `body`, the rest of the body that contains this
    operation.

    Each form is a tag and the width of the integer after it. A form without a tag applies if no tag
    of another form matches. Encoding uses the first form that can hold the number.
    """

    slot: str
    forms: tuple[tuple[bytes, int], ...]
    body: Body


class Region(msgspec.Struct, frozen=True, tag="region", tag_field="op", omit_defaults=True):
    """Operations on exactly as many octets as the number in the slot `count` says, less `plus`."""

    count: str
    body: Body
    plus: int = 0


class Mark(msgspec.Struct, frozen=True, tag="mark", tag_field="op"):
    """A position, for `Verify`. It has no octets."""

    name: str


class Verify(msgspec.Struct, frozen=True, tag="verify", tag_field="op"):
    """Check that the number in the slot `slot` is the checksum of the octets between pairs of
    marks.

    It follows the last of the marks and the number. `algorithm` is a name of
    `specwire.generated.checksums`, or ``module:function``.
    """

    slot: str
    algorithm: str
    ranges: tuple[tuple[str, str], ...]


class Fixed(msgspec.Struct, frozen=True, tag="fixed", tag_field="op"):
    """Adjacent operations that have `octets` octets in total, each a fixed number."""

    octets: int
    body: Body


Op: TypeAlias = (
    Expect | Number | TakeText | TakeOctets | Word | Pad | Loop | Nest | Choose | Optional | Sized | Region
    | Mark | Verify | Fixed
)  # fmt: skip
Body: TypeAlias = tuple[Op, ...]


class OneFrame(msgspec.Struct, frozen=True, tag="frame", tag_field="part", omit_defaults=True):
    """One ZeroMQ frame."""

    name: str
    body: Body
    presence: Presence = ALWAYS
    letter: Literal["required", "forbidden"] | None = None


class ManyFrames(msgspec.Struct, frozen=True, tag="frames", tag_field="part", omit_defaults=True):
    """Frames with one value each: up to an empty delimiter, or all that remain. The value is a
    tuple."""

    name: str
    slot: str
    body: Body
    delimited: bool
    presence: Presence = ALWAYS
    letter: Literal["required", "forbidden"] | None = None


Part: TypeAlias = OneFrame | ManyFrames


class MessagePlan(msgspec.Struct, frozen=True):
    """One message: its name in the grammar, its class, and its frames in order."""

    name: str
    class_name: str
    parts: tuple[Part, ...]


class RecordPlan(msgspec.Struct, frozen=True):
    """Body of a record of the class `class_name`; `rule` is the grammar's rule for it."""

    class_name: str
    body: Body
    rule: str | None = None


class Plan(msgspec.Struct, frozen=True):
    """Operations of all messages of a protocol, and the records in them, inner ones first."""

    protocol: str
    edition: str
    messages: tuple[MessagePlan, ...]
    records: tuple[RecordPlan, ...]


_METHODS = {kind: str(kind.__struct_config__.tag) for kind in get_args(Op)}


class Visitor:
    """Base of the back ends: `visit` calls the method of each operation, in order."""

    def visit(self, body: Body) -> None:
        """Spell or perform every operation of a body."""
        for op in body:
            self.operation(op)

    def operation(self, op: Op) -> None:
        """Call the method of one operation; it has the name of the operation's tag."""
        getattr(self, _METHODS[type(op)])(op)

    def expect(self, op: Expect) -> None:
        """Constant octets."""
        raise NotImplementedError

    def number(self, op: Number) -> None:
        """An integer."""
        raise NotImplementedError

    def text(self, op: TakeText) -> None:
        """A text."""
        raise NotImplementedError

    def octets(self, op: TakeOctets) -> None:
        """Opaque octets."""
        raise NotImplementedError

    def word(self, op: Word) -> None:
        """One of several words."""
        raise NotImplementedError

    def pad(self, op: Pad) -> None:
        """Octets without meaning."""
        raise NotImplementedError

    def loop(self, op: Loop) -> None:
        """Many values."""
        raise NotImplementedError

    def nest(self, op: Nest) -> None:
        """A record."""
        raise NotImplementedError

    def choose(self, op: Choose) -> None:
        """One of several records."""
        raise NotImplementedError

    def optional(self, op: Optional) -> None:
        """A value that the end of the octets may omit."""
        raise NotImplementedError

    def sized(self, op: Sized) -> None:
        """A number of octets, and the octets."""
        raise NotImplementedError

    def region(self, op: Region) -> None:
        """Octets that an earlier number counts."""
        raise NotImplementedError

    def mark(self, op: Mark) -> None:
        """A position."""
        raise NotImplementedError

    def verify(self, op: Verify) -> None:
        """A checksum."""
        raise NotImplementedError

    def fixed(self, op: Fixed) -> None:
        """Operations of fixed size; by default one after the other."""
        self.visit(op.body)


def lower(layout: ProtocolLayout) -> Plan:
    """Return the plan of a protocol."""
    records: dict[str, RecordPlan] = {}
    messages = tuple(_message(message, records) for message in layout.messages)
    return Plan(layout.protocol, layout.edition, messages, tuple(records.values()))


def fixed_octets(op: Op) -> int | None:
    """Return the number of octets of an operation; None if it varies."""
    match op:
        case Expect(octets=octets):
            return len(octets)
        case Number(coding=coding):
            return coded_octets(coding)
        case Pad(octets=number, multiple=0) | Fixed(octets=number):
            return number
        case TakeText(extent=extent) | TakeOctets(extent=extent):
            return extent.octets if extent.kind == "fixed" else None
    return None


def coded_octets(coding: Coding) -> int | None:
    """Return the number of octets of a number; None if it varies."""
    match coding:
        case Integer(octets=octets) | Float(octets=octets) | Boolean(octets=octets):
            return octets
        case Digits(minimum=minimum, maximum=maximum, signed=False) if minimum == maximum:
            return minimum
    return None


def operations(body: Body) -> Iterator[Op]:
    """Yield the operations of a body, those of `Fixed` one by one; not those of other
    operations."""
    for op in body:
        if isinstance(op, Fixed):
            yield from op.body
        else:
            yield op


def _message(message: MessageLayout, records: dict[str, RecordPlan]) -> MessagePlan:
    return MessagePlan(
        message.name, message.class_name, tuple(_part(part, records) for part in message.parts)
    )


def _part(part: Frame | Stack | Rest, records: dict[str, RecordPlan]) -> Part:
    match part:
        case Frame(name=name, fields=fields, presence=presence, letter=letter):
            return OneFrame(name, _body(fields, records), presence, letter)
        case Stack(name=name, field=field, presence=presence, letter=letter):
            body = _merge(_value(field.type, ITEM, records))
            return ManyFrames(name, field.attribute, body, True, presence, letter)
        case Rest(name=name, field=field):
            return ManyFrames(name, field.attribute, _merge(_value(field.type, ITEM, records)), False)


def _body(fields: tuple[Field, ...], records: dict[str, RecordPlan]) -> Body:
    """Return the operations of a run of fields."""
    return _merge(_Run(fields, records).operations(fields))


class _Run:
    """Lowering of one run: its counters by the fields that they count, and its checksums."""

    def __init__(self, fields: tuple[Field, ...], records: dict[str, RecordPlan]) -> None:
        self.records = records
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
        for found in self.regions.values():
            found.sort(key=lambda entry: len(entry[1].counts))

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
        """Return the operations of fields, those of a region as one."""
        ops: list[Op] = []
        position = 0
        while position < len(fields):
            field = fields[position]
            ops += map(Mark, self.marks.pop(field.attribute, ()))
            if regions := self.regions.get(field.attribute):
                counter, type = regions.pop()
                inside = fields[position : position + len(type.counts)]
                behind = self._behind(inside[-1].attribute)
                ops.append(Region(counter.attribute, _merge(self.operations(inside)), type.plus))
                ops += behind
                position += len(type.counts)
                continue
            if isinstance(field.type, Size):
                rest = _merge(self.operations(fields[position + 1 :]))
                ops.append(Sized(field.attribute, field.type.forms, rest))
                break
            ops += self._field(field)
            ops += self._behind(field.attribute)
            position += 1
        return ops

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
            return [Number(slot, field.type.number, self._counted(field.type), field.type.plus)]
        if isinstance(field.type, Checksum):
            return [Number(slot, field.type.number, checks=True)]
        counter = self.counters.get(slot)
        count = (counter[0].attribute, counter[1].plus) if counter else None
        found = _value(field.type, slot, self.records, count, flags=field.flags)
        return [Optional(slot, _merge(found))] if field.optional else found


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
    records: dict[str, RecordPlan],
    count: tuple[str, int] | None = None,
    *,
    flags: bool = False,
) -> list[Op]:
    """Return the operations of one value; `count` is the slot that counts it, and the number to
    subtract."""
    match type:
        case Constant(octets=octets, words=words):
            return [Expect(slot, octets, words)]
        case Keyword(options=options):
            return [Word(slot, options)]
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
            return _loop(type, slot, records, count)
        case Record():
            _keep(type, records)
            return [Nest(slot, type.class_name)]
        case Union(options=choices, tags=tags):
            for option in choices:
                _keep(option, records)
            return [Choose(slot, tuple((tag, o.class_name) for tag, o in zip(tags, choices, strict=True)))]
        case Size() | Counter() | Checksum():
            raise TypeError(f"{slot} belongs to a run of fields")


def _loop(
    type: ListOf | Pairs, slot: str, records: dict[str, RecordPlan], count: tuple[str, int] | None
) -> list[Op]:
    coding = type.number or Integer(type.count_octets)
    prefix = [Number(hidden(slot), coding, (slot,))] if type.count_octets else []
    number, plus = count or (hidden(slot) if prefix else "", 0)
    if isinstance(type, ListOf):
        loop = Loop(slot, _merge(_value(type.element, ITEM, records)), number, plus, type.minimum)
    elif type.value is None:
        body = _merge(_value(type.name, ITEM, records))
        loop = Loop(slot, body, number, plus, type.minimum, type.split or "first", type.rule)
    else:
        both = [*_value(type.name, NAME, records), *_value(type.value, VALUE, records)]
        loop = Loop(slot, _merge(both), number, plus, type.minimum, "both", type.rule)
    return [*prefix, loop]


def _keep(record: Record, records: dict[str, RecordPlan]) -> None:
    if record.class_name not in records:
        body = _body(record.fields, records)
        records[record.class_name] = RecordPlan(record.class_name, body, record.rule)


def hidden(slot: str) -> str:
    """Return the hidden slot of the number directly before the value in `slot` that says how long
    it is."""
    return f"{slot}#"


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
        case "counted" if count:
            return Extent("slot", slot=count[0], plus=count[1])
    return Extent("rest", span.octets)
