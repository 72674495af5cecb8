"""Plan of a protocol: the operations that read and write its messages.

`specwire.generated.lowering` makes a plan of a layout.

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
from typing import Literal, TypeAlias, get_args

import msgspec

from .layout import ALWAYS, Boolean, Coding, Digits, Float, Integer, Order, Presence

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


def is_hidden(op: Number | Bit) -> bool:
    """Return whether the slot of a number, or of some bits of one, is hidden."""
    if isinstance(op, Bit):
        return op.constant is not None or op.spare or bool(op.counts or op.announces)
    return op.checks or bool(op.counts or op.bits)


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

    With `multiple`, there are as many as it takes for the position to be a multiple of it, from the
    start of the innermost frame, record, or octets that a number counts; `octets` is 0.
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

    Each form is a tag and the width of the big-endian integer after it. A form without a tag applies if
    no tag of another form matches. Encoding uses the first form that can hold the number.
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


def flag_values(parts: Sequence[Part], announcing: int) -> tuple[dict[int, set[int]], int]:
    """Return the allowed values of each mask of the flags, and the bits that announce no part.

    `announcing` are the bits that announce parts of any message of the protocol.
    """
    allowed: dict[int, set[int]] = {}
    absent = announcing
    for presence in (part.presence for part in parts if part.presence.mask):
        values = allowed.setdefault(presence.mask, set())
        values |= {0, presence.value} if presence.kind == "announced" else {presence.value}
        absent &= ~presence.mask
    return allowed, absent


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


def by_tag(
    class_names: Sequence[str], tags: Sequence[bytes], *, folded: bool
) -> tuple[tuple[bytes, str], ...]:
    """Return the options of a union, longer tags before those with which they begin."""
    rows = [(tag.lower() if folded else tag, name) for tag, name in zip(tags, class_names, strict=True)]
    inner = [tag for tag, _ in rows if any(tag != other and tag.startswith(other) for other, _ in rows)]
    return tuple(sorted(rows, key=lambda row: -len(row[0]) if row[0] in inner else 0))


def hidden(slot: str) -> str:
    """Return the hidden slot of the number directly before the value in `slot` that says how long
    it is."""
    return f"{slot}#"
