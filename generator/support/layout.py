"""Data model of message layouts: the content of a package's ``layout.py``, and the input of the
plan.

`specwire.generated.lowering.lower` makes operations of a layout. Back ends spell or perform these
operations.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Order = Literal["big", "little"]


class Span(msgspec.Struct, frozen=True):
    """Extent of a value.

    ``prefix``: counted by a number in front: `number`, or a big-endian integer of `octets` octets.
    ``fixed``: `octets`. ``rest``: the rest of the run but its last `octets` octets. ``until``: up
    to the octets `until`. ``run``: the longest run of the octets `among`, which are in ascending
    order, at least `octets` of them. ``counted``: counted by a `Counter` of the run.
    """

    kind: Literal["prefix", "fixed", "rest", "until", "run", "counted"]
    octets: int = 0
    until: bytes = b""
    number: Integer | Varint | Digits | None = None
    among: bytes = b""


class Constant(msgspec.Struct, frozen=True):
    """Octets that are always the same."""

    octets: bytes
    words: str
    """The value as errors print it."""
    folded: bool = False
    """ASCII letters are read in either case."""


class Keyword(msgspec.Struct, frozen=True):
    """One of several words that fill a frame; if `folded`, letters are read in either case."""

    options: tuple[str, ...]
    folded: bool = False


class Integer(msgspec.Struct, frozen=True, tag="integer", tag_field="coding", omit_defaults=True):
    """Integer of 1 to 8 octets. `members` are its allowed values; empty allows any value."""

    octets: int
    members: tuple[int, ...] = ()
    order: Order = "big"
    signed: bool = False


class Bits(msgspec.Struct, frozen=True, omit_defaults=True):
    """`width` bits of an integer of `octets` octets, above `shift` others.

    The fields of one integer are adjacent, the most significant bits first, and cover it. With
    `boolean`, the value is a bool. `constant` is the only allowed value; `members` are the allowed
    ones. `spare` bits have no meaning. `announces`: encoding computes the bit from the presence of
    fields.
    """

    octets: int
    shift: int
    width: int
    order: Order = "big"
    boolean: bool = False
    constant: int | None = None
    members: tuple[int, ...] = ()
    spare: bool = False
    announces: bool = False


class Float(msgspec.Struct, frozen=True, tag="float", tag_field="coding", omit_defaults=True):
    """Floating-point number of IEEE 754 in 4 or 8 octets."""

    octets: Literal[4, 8]
    order: Order = "big"


class Boolean(msgspec.Struct, frozen=True, tag="boolean", tag_field="coding", omit_defaults=True):
    """Integer of `octets` octets that is 0 for False or 1 for True."""

    octets: int = 1
    order: Order = "big"


class Varint(msgspec.Struct, frozen=True, tag="varint", tag_field="coding", omit_defaults=True):
    """Integer of one to `maximum` octets with 7 bits in each; the high bit is set but in the last.

    `order` is that of the groups. `signed` is how negative numbers are written; None for unsigned.
    """

    order: Order = "little"
    maximum: int = 10
    signed: Literal["zigzag", "complement"] | None = None


class Digits(msgspec.Struct, frozen=True, tag="digits", tag_field="coding", omit_defaults=True):
    """Integer as text: `minimum` to `maximum` digits of base 10 or 16, up to the first octet that
    is not a digit."""

    base: Literal[10, 16] = 10
    minimum: int = 1
    maximum: int = 20
    signed: bool = False


class Uuid(msgspec.Struct, frozen=True):
    """UUID of 16 octets; with ``little``, its first three parts are little-endian."""

    order: Order = "big"


class Text(msgspec.Struct, frozen=True):
    """UTF-8 text. Only strict decoding requires `pattern` (over octets) and a NUL at the end.

    `padding` is the octet that fills a text of fixed length after its content.
    """

    span: Span
    pattern: bytes | None = None
    terminated: bool = False
    padding: bytes | None = None


class Octets(msgspec.Struct, frozen=True):
    """Opaque octets: at least `minimum` and at most `maximum` of them."""

    span: Span
    minimum: int = 0
    maximum: int | None = None


class Padding(msgspec.Struct, frozen=True):
    """Octets without meaning, written as `fill`: `octets` of them.

    With `multiple`, up to a multiple of so many octets, from the start of the innermost frame,
    record, or octets that a number counts.
    """

    octets: int
    fill: bytes
    multiple: int = 0


class Counter(msgspec.Struct, frozen=True):
    """Number of the octets or items of the later fields `counts` of the run, plus `plus`."""

    number: Integer | Varint | Digits | Bits
    counts: tuple[str, ...]
    plus: int = 0


class Checksum(msgspec.Struct, frozen=True):
    """Checksum of the octets of the fields `over` of the run."""

    number: Integer
    algorithm: str
    over: tuple[str, ...]


class Size(msgspec.Struct, frozen=True):
    """Number of octets that follow in the run. Each form is a tag and the width of the big-endian
    integer after it.

    A form without a tag applies if no tag of another form matches.
    """

    forms: tuple[tuple[bytes, int], ...]


class Present(msgspec.Struct, frozen=True):
    """Whether the constants of the same `Option` are present, as a bool. It has no octets."""


class Json(msgspec.Struct, frozen=True):
    """UTF-8 JSON text up to the end of the run; strict decoding requires an object."""


class ListOf(msgspec.Struct, frozen=True):
    """Count, then that many elements. With `count_octets` 0, elements up to the octets `until`, or
    up to the end of the run. `before` and `after` surround each element."""

    count_octets: int
    element: Element
    minimum: int = 0
    counted: bool = False
    """A `Counter` of the run counts the elements."""
    number: Integer | Varint | Digits | None = None
    """How the count is written, if it is not a big-endian integer."""
    until: bytes = b""
    before: bytes = b""
    after: bytes = b""


class Pairs(msgspec.Struct, frozen=True):
    """Count, then that many names and values; with `split`, each pair is one text.

    The text is split at its first or last ``=``. With `count_octets` 0, the pairs extend up to the
    octets `until`, or to the end of the run. `before` and `after` surround each pair; `between`
    separates its name and value.
    """

    count_octets: int
    name: Text
    value: Text | Octets | None = None
    split: Literal["first", "last"] | None = None
    rule: str | None = None
    """Grammar rule of one entry, if it has a name."""
    minimum: int = 0
    counted: bool = False
    """A `Counter` of the run counts the pairs."""
    number: Integer | Varint | Digits | None = None
    """How the count is written, if it is not a big-endian integer."""
    until: bytes = b""
    before: bytes = b""
    between: bytes = b""
    after: bytes = b""


class Record(msgspec.Struct, frozen=True):
    """Run of fields inside another; the value is an instance of the class `class_name`."""

    class_name: str
    fields: tuple[Field, ...]
    rule: str | None = None


class Union(msgspec.Struct, frozen=True):
    """One of several records, told apart by the octets (`tags`) with which each begins.

    The longest tag that fits decides. If `folded`, letters of tags are read in either case.
    """

    options: tuple[Record, ...]
    tags: tuple[bytes, ...]
    folded: bool = False
    name: str = ""


class Enclosing(msgspec.Struct, frozen=True):
    """The record of the class `name`, or the union of that name, that contains this value."""

    name: str


Coding = Integer | Float | Boolean | Varint | Digits
"""How a number is written."""
Element = Coding | Uuid | Text | Octets | ListOf | Pairs | Record | Union | Enclosing
Type = Constant | Keyword | Padding | Size | Counter | Checksum | Bits | Present | Json | Element


class Option(msgspec.Struct, frozen=True, omit_defaults=True):
    """Condition for adjacent fields of a run; `number` distinguishes two options of one run.

    ``octets``: the next octets are `octets`. ``number``: the number in the earlier field `field`,
    and `mask` if that is not 0, is one of `values`. ``left``: more than `left` octets are left.
    """

    kind: Literal["octets", "number", "left"]
    number: int = 0
    octets: bytes = b""
    folded: bool = False
    field: str = ""
    mask: int = 0
    values: tuple[int, ...] = ()
    left: int = 0


class Field(msgspec.Struct, frozen=True):
    """Value in a frame: its name in errors, the message's attribute, and the grammar rule."""

    name: str
    attribute: str
    rule: str
    type: Type
    flags: bool = False
    """The field is the octet whose bits announce parts."""
    optional: bool = False
    """The run may end before this field; then it and every later field of the run are None."""
    option: Option | None = None
    """The field is present only under this condition."""

    @property
    def implied(self) -> bool:
        """Whether the octets are computed from other fields, so the class has no such attribute."""
        if isinstance(self.type, Bits):
            return self.type.constant is not None or self.type.spare or self.type.announces
        return isinstance(self.type, Constant | Padding | Size | Counter | Checksum)


class Presence(msgspec.Struct, frozen=True):
    """Condition for a part: always, if ``flags & mask == value``, or if there are enough frames."""

    kind: Literal["always", "announced", "counted"] = "always"
    mask: int = 0
    value: int = 0


ALWAYS = Presence()


class Frame(msgspec.Struct, frozen=True):
    """One ZeroMQ frame."""

    name: str
    fields: tuple[Field, ...]
    presence: Presence = ALWAYS
    letter: Literal["required", "forbidden"] | None = None


class Stack(msgspec.Struct, frozen=True):
    """Frames up to the frame `delimiter`."""

    name: str
    field: Field
    presence: Presence = ALWAYS
    letter: Literal["required", "forbidden"] | None = None
    delimiter: bytes = b""


class Rest(msgspec.Struct, frozen=True):
    """All remaining frames."""

    name: str
    field: Field


Part = Frame | Stack | Rest


class MessageLayout(msgspec.Struct, frozen=True):
    """One message: its name in the grammar, its tags (the octets at the selectors) and its parts.

    `patterns` replace the tags if messages are told apart by how their first frame begins. A
    pattern is octets in hexadecimal, with ``?`` for any half octet. The message with the longest
    matching pattern is chosen.
    """

    name: str
    class_name: str
    tags: tuple[tuple[bytes, ...], ...]
    parts: tuple[Part, ...]
    patterns: tuple[str, ...] = ()


class Shape(msgspec.Struct, frozen=True):
    """Shape of a message: how its first frames begin, whether that is all of them, and their
    number.

    `senders` are the roles that send the message; frames from other roles do not match. With
    `by_octets`, the frames alone distinguish the message, so frames of an unknown sender match too.
    `senders` is empty if `decode` accepts no sender. (Packages of specwire 0.1 have senders only
    where they are the only difference.)
    """

    frames: tuple[tuple[str, bool], ...]
    least: int
    most: int | None
    senders: tuple[str, ...] = ()
    by_octets: bool = False

    @property
    def needs_sender(self) -> bool:
        """Whether only the sender distinguishes the message from another."""
        return bool(self.senders) and not self.by_octets

    def may_be_from(self, sender: str | None, roles: tuple[str, ...]) -> bool:
        """Whether frames from `sender` can be the message. A sender that is none of `roles` excludes
        no message, but does not distinguish messages either."""
        return sender in self.senders or not (self.needs_sender or (self.senders and sender in roles))


class ProtocolLayout(msgspec.Struct, frozen=True, cache_hash=True):
    """Layout of all messages of a protocol.

    `selectors` are the slices (frame, octets or None for all) that tell messages apart. A protocol
    without selectors has `shapes` instead: classes and their shapes, the most specific first.
    `announcing` holds the bits of the flags octet that announce parts. `roles` are the letters of
    all senders; it is empty if `decode` accepts no sender. `redact` has the attributes with content
    of message classes, None if the profile does not say which have it. If `folded`, ASCII letters
    at the selectors, and in the heads of shapes, are compared in lower case; tags and heads are in
    lower case. `max_depth` is the maximum number of records that contain each other, 0 if none
    contains itself.
    """

    protocol: str
    edition: str
    selectors: tuple[tuple[int, int | None], ...]
    messages: tuple[MessageLayout, ...]
    announcing: int = 0
    shapes: tuple[tuple[str, Shape], ...] = ()
    roles: tuple[str, ...] = ()
    redact: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    folded: bool = False
    max_depth: int = 0

    @property
    def takes_sender(self) -> bool:
        """Whether `decode` accepts the sender because nothing else distinguishes some messages."""
        return any(shape.needs_sender for _, shape in self.shapes)
