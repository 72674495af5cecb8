"""Plan of a protocol: the layout of its messages, lowered to operations.

Every back end spells or performs these operations, and none looks at the layout again. The
operations read and write the same octets, one after the other:

- `Expect`, `Number`, `TakeText`, `TakeOctets`, `Word`, `Pad`: one value
- `Loop`, `Nest`, `Choose`: many values, a record, one of several records
- `Optional`, `Sized`, `Region`: values that a condition, the end of the octets, or a number of
  octets decides
- `Mark`, `Verify`: a position, and the checksum of the octets between positions
- `Fixed`: adjacent operations whose number of octets is known, for one check of the end

A value is read into a *slot*, the attribute of its field. A number that only says how long another
value is has a *hidden* slot: the slot of that value and ``#`` if it stands directly before the
value, else the attribute of its own field. Messages have no attribute for it, and encoding computes
it. Checksums are hidden, too, and so is an integer that is made of bits; each `Bit` has a slot of
its own. Inside a loop, the slot of an item is ``[]``; that of a name and a
value, ``[name]`` and ``[value]``.

A *body* is a sequence of operations: those of a frame, a record, an item of a loop, or inside
`Sized` and `Region`, which say where it ends. An operation that extends to the end is the last of
its body.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Literal, TypeAlias, get_args

import msgspec

from .layout import (
    ALWAYS,
    Bits,
    Boolean,
    Checksum,
    Coding,
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
    Order,
    Padding,
    Pairs,
    Presence,
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
from .words import show

ITEM, NAME, VALUE = "[]", "[name]", "[value]"
"""Slots inside a loop."""


class Extent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Number of octets of a value.

    ``fixed``: always `octets`. ``slot``: the number in the slot `slot`, less `plus`. ``rest``: up
    to the end of the body but its last `octets` octets. ``until``: up to the octets `until`, which
    are expected after the value. ``run``: up to the first octet that is not one of `among` (in
    ascending order), or to the end of the body; at least `octets`.
    """

    kind: Literal["fixed", "slot", "rest", "until", "run"]
    octets: int = 0
    slot: str = ""
    plus: int = 0
    until: bytes = b""
    among: bytes = b""


class Expect(msgspec.Struct, frozen=True, tag="expect", tag_field="op", omit_defaults=True):
    """Octets that are always the same; `words` is the value as errors print it.

    If `folded`, ASCII letters are read in either case, and written as in `octets`.
    """

    slot: str
    octets: bytes
    words: str
    folded: bool = False


class Bit(msgspec.Struct, frozen=True, omit_defaults=True):
    """`width` bits of an integer, above `shift` others: an unsigned number.

    With `boolean`, which has one bit, the value is a bool. Only `constant` or one of `members` is
    allowed, if given. `spare` bits are not checked, and written as 0.

    The slot is hidden with `constant`, `spare`, `counts` or `announces`. `counts` and `plus` are as
    in `Number`. `announces` is the slot of an `Optional`: encoding writes 1 if it is present, else
    0.
    """

    slot: str
    shift: int
    width: int
    boolean: bool = False
    constant: int | None = None
    members: tuple[int, ...] = ()
    spare: bool = False
    counts: tuple[str, ...] = ()
    plus: int = 0
    announces: str = ""


def is_hidden(bit: Bit) -> bool:
    """Return whether the slot of some bits is hidden."""
    return bit.constant is not None or bit.spare or bool(bit.counts or bit.announces)


class Number(msgspec.Struct, frozen=True, tag="number", tag_field="op", omit_defaults=True):
    """Number, written as `coding` says.

    With `counts`, the slot is hidden: the number is that of all octets of those slots, or of the
    items of the one slot of a `Loop`, plus `plus`. With `checks`, the slot is hidden, and `Verify`
    says what it is. With `flags`, its bits announce parts of the message. With `bits`, the slot is
    hidden, and the integer is made of them, the most significant first.
    """

    slot: str
    coding: Coding
    counts: tuple[str, ...] = ()
    plus: int = 0
    checks: bool = False
    flags: bool = False
    bits: tuple[Bit, ...] = ()


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


class Word(msgspec.Struct, frozen=True, tag="word", tag_field="op", omit_defaults=True):
    """One of several words that fill the body.

    If `folded`, ASCII letters are read in either case; the value is the word of `options`.
    """

    slot: str
    options: tuple[str, ...]
    folded: bool = False


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
    """Items one after the other: the number in the slot `count` less `plus`; or, without it, as
    long as octets are left and the next are not `until`, if that is given.

    An item has at least one octet and never begins with `until`. The value is a tuple of the items.
    With `pairs`, an item is a pair: of the slots ``[name]`` and ``[value]``, or of the text in the
    slot ``[]``, split at its first or last ``=``. `rule` is the grammar's rule for one pair.
    """

    slot: str
    body: Body
    count: str = ""
    plus: int = 0
    minimum: int = 0
    pairs: Literal["", "both", "first", "last"] = ""
    rule: str | None = None
    until: bytes = b""


class Nest(msgspec.Struct, frozen=True, tag="nest", tag_field="op"):
    """A record: the body of the class `record`."""

    slot: str
    record: str


class Choose(msgspec.Struct, frozen=True, tag="choose", tag_field="op", omit_defaults=True):
    """The record of the first option whose tag begins here; `options` are tags and classes, longer
    tags before those with which they begin.

    If `folded`, the tags are in lower case, and ASCII letters are read in either case.
    """

    slot: str
    options: tuple[tuple[bytes, str], ...]
    folded: bool = False


class When(msgspec.Struct, frozen=True, omit_defaults=True):
    """Condition of `Optional`.

    ``left``: more than `left` octets are left in the body. ``octets``: the next octets are
    `octets`; if `folded`, these are in lower case, and letters are read in either case.
    ``number``: the number in the slot `slot`, and `mask` if that is not 0, is one of `values`.
    """

    kind: Literal["left", "octets", "number"]
    left: int = 0
    octets: bytes = b""
    folded: bool = False
    slot: str = ""
    mask: int = 0
    values: tuple[int, ...] = ()

    def fits(self, number: int) -> bool:
        """Return whether the condition holds for the number in its slot."""
        return (number & self.mask if self.mask else number) in self.values


LEFT = When("left")


class Optional(msgspec.Struct, frozen=True, tag="optional", tag_field="op", omit_defaults=True):
    """Operations that are performed under the condition `when`.

    Otherwise the values in the slot `slot` and the slots `others` are None. With `boolean`, the
    value is whether the condition holds, and `body` has only constants. After an omitted operation
    with the condition ``left``, all later ones of the body with this condition are omitted, too.
    For the condition ``number``, encoding checks that the number is right, unless a `Bit` announces
    it.
    """

    slot: str
    body: Body
    when: When = LEFT
    others: tuple[str, ...] = ()
    boolean: bool = False


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
    """Frames with one value each: up to the frame `delimiter`, or all that remain if it is None.

    The value is a tuple. No value of it has the octets of the delimiter.
    """

    name: str
    slot: str
    body: Body
    delimiter: bytes | None
    presence: Presence = ALWAYS
    letter: Literal["required", "forbidden"] | None = None

    @property
    def delimited(self) -> bool:
        """Whether a delimiter ends the frames."""
        return self.delimiter is not None


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
    """Operations of all messages of a protocol, and the records in them, inner ones first.

    At most `max_depth` records contain each other; 0 if no record contains itself.
    """

    protocol: str
    edition: str
    messages: tuple[MessagePlan, ...]
    records: tuple[RecordPlan, ...]
    max_depth: int = 0


class _Found:
    """Records and unions that lowering has met."""

    def __init__(self) -> None:
        self.records: dict[str, RecordPlan] = {}
        self.unions: dict[str, Choose] = {}


_METHODS = {kind: str(kind.__struct_config__.tag) for kind in get_args(Op)}


class Visitor:
    """Base of the back ends: `visit` calls the method of each operation, in order."""

    def visit(self, body: Body) -> None:
        """Spell or perform every operation of a body."""
        for op in body:
            self.operation(op)

    def operation(self, op: Op) -> Iterator[Body] | None:
        """Call the method of one operation; it has the name of the operation's tag.

        A method of an operation with others inside may return their bodies instead of visiting
        them, if `visit` performs these.
        """
        inside: Iterator[Body] | None = getattr(self, _METHODS[type(op)])(op)
        return inside

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

    def loop(self, op: Loop) -> Iterator[Body] | None:
        """Many values."""
        raise NotImplementedError

    def nest(self, op: Nest) -> Iterator[Body] | None:
        """A record."""
        raise NotImplementedError

    def choose(self, op: Choose) -> Iterator[Body] | None:
        """One of several records."""
        raise NotImplementedError

    def optional(self, op: Optional) -> Iterator[Body] | None:
        """Values that a condition may omit."""
        raise NotImplementedError

    def sized(self, op: Sized) -> Iterator[Body] | None:
        """A number of octets, and the octets."""
        raise NotImplementedError

    def region(self, op: Region) -> Iterator[Body] | None:
        """Octets that an earlier number counts."""
        raise NotImplementedError

    def mark(self, op: Mark) -> None:
        """A position."""
        raise NotImplementedError

    def verify(self, op: Verify) -> None:
        """A checksum."""
        raise NotImplementedError

    def fixed(self, op: Fixed) -> Iterator[Body] | None:
        """Operations of fixed size; by default one after the other."""
        self.visit(op.body)
        return None


def lower(layout: ProtocolLayout) -> Plan:
    """Return the plan of a protocol."""
    found = _Found()
    messages = tuple(_message(message, found) for message in layout.messages)
    return Plan(layout.protocol, layout.edition, messages, tuple(found.records.values()), layout.max_depth)


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


def by_tag(
    class_names: Sequence[str], tags: Sequence[bytes], *, folded: bool
) -> tuple[tuple[bytes, str], ...]:
    """Return the options of a union, longer tags before those with which they begin."""
    rows = [(tag.lower() if folded else tag, name) for tag, name in zip(tags, class_names, strict=True)]
    inner = [tag for tag, _ in rows if any(tag != other and tag.startswith(other) for other, _ in rows)]
    return tuple(sorted(rows, key=lambda row: -len(row[0]) if row[0] in inner else 0))


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
        case "run":
            return Extent("run", span.octets, among=span.among)
        case "counted" if count:
            return Extent("slot", slot=count[0], plus=count[1])
    return Extent("rest", span.octets)
