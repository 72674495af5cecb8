"""The checked description of one protocol: the single input of every emitter.

Everything here is frozen, ordered as the specification orders it, and prints as JSON
(``specwire show ir PROTOCOL --json``). A pass that builds it has checked everything an emitter relies
on: an emitter never finds an impossible case.

A *message* is a list of *parts*, the ZeroMQ frames in their order: a `Frame` with fields inside, a
`Stack` of frames up to an empty delimiter, or a `Rest` of frames up to the end. Octets are written as
lower-case hexadecimal text, so that the JSON form needs no encoding of its own.

The fields of a frame are a *run*: one value directly after the other, the last up to the frame's end. A
`RecordType` is a run inside another; it ends by itself, or a `SizeType` in it says where. A value without
an end of its own (a `Length` or a count that is the rest) is the last of its run.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from specwire.generator.dialogs import Dialog

IR_VERSION = 3
"""Raised whenever a reader of the JSON form would have to change."""


class Length(msgspec.Struct, frozen=True):
    """How many octets a value has.

    ``prefix``: a big-endian unsigned integer of `octets` octets (1 to 8) stands before it and counts them;
    ``fixed``: always `octets`; ``rest``: all that is left of the run (`octets` is 0); ``until``: up to where the
    octets `until` (hexadecimal) stand first, which are the constant behind the value (text only).
    """

    kind: Literal["prefix", "fixed", "rest", "until"]
    octets: int = 0
    until: str = ""


class ConstantType(msgspec.Struct, frozen=True, tag="constant", tag_field="type"):
    """Octets that are always the same; `text` where they read as a word, `number` where as an integer."""

    hex: str
    text: str | None = None
    number: int | None = None

    @property
    def octets(self) -> bytes:
        """The octets on the wire."""
        return bytes.fromhex(self.hex)


class KeywordType(msgspec.Struct, frozen=True, tag="keyword", tag_field="type"):
    """One of several constants that fill a frame; a text field, the first option its default."""

    options: tuple[str, ...]


class IntegerType(msgspec.Struct, frozen=True, tag="integer", tag_field="type"):
    """An unsigned big-endian integer of `octets` octets, 1 to 8.

    `enum` names the enumeration it must be of; `values` are those that it may have where they have no
    names (``%x00 / %x01``), empty for any.
    """

    octets: int
    enum: str | None = None
    bitmask: bool = False
    values: tuple[int, ...] = ()


class TextType(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    """UTF-8 text.

    `pattern` is the grammar's character class as a regular expression over octets, applied under
    ``strict`` only, to the octets without padding. `terminated`: the letter ends it with NUL; by default it
    is read with or without and written without. `padding`: the octet that fills a text of fixed length
    behind its content; the value is the text without the padding at its end.
    """

    length: Length
    pattern: str | None = None
    terminated: bool = False
    padding: str | None = None


class OctetsType(msgspec.Struct, frozen=True, tag="octets", tag_field="type"):
    """Opaque octets, at least `minimum` of them and at most `maximum` (None: as many as there is room for)."""

    length: Length
    minimum: int = 0
    maximum: int | None = None


class PaddingType(msgspec.Struct, frozen=True, tag="padding", tag_field="type"):
    """Octets that mean nothing: read whatever they are, written as `octets` times the octet `fill`."""

    octets: int
    fill: str = "00"


class SizeForm(msgspec.Struct, frozen=True):
    """One way to write a size: the octets `tag` (none where there is one form only), then an integer."""

    tag: str
    octets: int


class SizeType(msgspec.Struct, frozen=True, tag="size", tag_field="type"):
    """How many octets follow in the run: all of them, no more and no fewer.

    It is derived on encode, in the first of `forms` whose integer can hold it, and every form is read. No
    two forms can be taken for each other: no tag begins with another.
    """

    forms: tuple[SizeForm, ...]


class JsonType(msgspec.Struct, frozen=True, tag="json", tag_field="type"):
    """The rest of a frame as UTF-8 JSON text, kept as text; ``strict`` wants an object."""


class ListType(msgspec.Struct, frozen=True, tag="list", tag_field="type"):
    """A count of `count_octets` octets, then so many elements; at least `minimum`.

    Without a count (`count_octets` is 0) the elements go on to the end of the run. An element takes an
    octet or more and says itself where it ends.
    """

    count_octets: int
    element: Element
    minimum: int = 0


class PairsType(msgspec.Struct, frozen=True, tag="pairs", tag_field="type"):
    """A dictionary: a count of `count_octets` octets, then so many (name, value) pairs in wire order.

    Without a count (`count_octets` is 0) the pairs go on to the end of the run. With `split`, name and value
    share one text, divided at its first or last ``=``, and `value` is None. `rule` is the grammar's rule
    for one entry, None where it has no name.
    """

    count_octets: int
    name: TextType
    value: TextType | OctetsType | None = None
    split: Literal["first", "last"] | None = None
    rule: str | None = None
    minimum: int = 0


class RecordType(msgspec.Struct, frozen=True, tag="record", tag_field="type"):
    """A run of fields inside another: a value with fields of its own.

    It has an end: no field is open, or a `SizeType` stands before the open one. `rule` is the grammar's
    rule for it, None for a group in place.
    """

    name: str
    class_name: str
    fields: tuple[Field, ...]
    rule: str | None = None
    doc: str = ""


class UnionType(msgspec.Struct, frozen=True, tag="union", tag_field="type"):
    """One of several records, told apart by the octets (`tags`, one for each option) that each begins with.

    No tag begins with another.
    """

    name: str
    options: tuple[RecordType, ...]
    tags: tuple[str, ...]


Element = IntegerType | TextType | OctetsType | ListType | PairsType | RecordType | UnionType
"""What a list can be made of."""

Type = ConstantType | KeywordType | PaddingType | SizeType | JsonType | Element

Default = int | str | tuple[()] | None


class Field(msgspec.Struct, frozen=True):
    """A value inside a frame.

    `name` is the grammar's, in snake case; `attribute` the Python spelling, which differs where a
    keyword or a method is in the way. `rule` is the grammar rule that gives the type, None for a
    literal in place. `line` counts from 1 in grammar.abnf, 0 for what only the profile says.
    """

    name: str
    attribute: str
    type: Type
    rule: str | None
    line: int
    doc: str
    unit: str | None = None
    default: Default = None
    required: bool = True
    nullable: bool = False
    """May be None: the part that holds it can be absent."""
    sentinels: tuple[str, ...] = ()
    """Names of constants that mean something special in this field."""
    optional: bool = False
    """The frame may end before it, and before all fields behind it, which are optional too; None then.

    A value of no octets would not be there: it is refused on encode.
    """
    content: Literal["json"] | None = None
    """What text or octets may hold, as far as tables are concerned; one NUL more may end it."""

    @property
    def constant(self) -> bool:
        """Whether the grammar fixes the value: a class variable, not a field of the message."""
        return isinstance(self.type, ConstantType)

    @property
    def implied(self) -> bool:
        """Whether the octets follow from the rest of the message: no field of the class."""
        return isinstance(self.type, ConstantType | PaddingType | SizeType)


class Always(msgspec.Struct, frozen=True, tag="always", tag_field="presence"):
    """The part is in every message; ``flags & mask == value`` where a flag says so all the same."""

    mask: int = 0
    value: int = 0


class Announced(msgspec.Struct, frozen=True, tag="announced", tag_field="presence"):
    """The part is there when ``flags & mask == value``."""

    mask: int
    value: int


class Counted(msgspec.Struct, frozen=True, tag="counted", tag_field="presence"):
    """The part is there when the message has frames enough: trailing parts may be left out."""


Presence = Always | Announced | Counted
Letter = Literal["required", "forbidden"] | None
"""What the prose of the specification demands of an announced part, checked under ``strict`` only."""


class Frame(msgspec.Struct, frozen=True, tag="frame", tag_field="part"):
    """One ZeroMQ frame and the fields in it, in order."""

    name: str
    fields: tuple[Field, ...]
    presence: Presence = Always()
    letter: Letter = None


class Stack(msgspec.Struct, frozen=True, tag="stack", tag_field="part"):
    """Frames up to and including an empty delimiter, top first: one field, a tuple of the frames."""

    name: str
    field: Field
    presence: Presence = Always()
    letter: Letter = None


class Rest(msgspec.Struct, frozen=True, tag="rest", tag_field="part"):
    """All frames that are left, none or more: one field, a tuple of the frames."""

    name: str
    field: Field


Part = Frame | Stack | Rest


class FrameHead(msgspec.Struct, frozen=True):
    """How a frame begins: hexadecimal octets, ``??`` for any; with `whole` the frame has no more than these."""

    octets: str
    whole: bool = False


class Shape(msgspec.Struct, frozen=True):
    """Shape of a message: how its first frames begin, and how many frames it has.

    `senders` are the roles that send the message; frames of another role are not this message. With
    `needs_sender`, only the sender tells it from another message with the same frames.
    """

    frames: tuple[FrameHead, ...]
    least: int
    most: int | None
    """None: any number."""
    senders: tuple[str, ...] = ()
    needs_sender: bool = False


class Message(msgspec.Struct, frozen=True):
    """One message of the protocol; `senders` are the roles that the dialog lets send it."""

    name: str
    """The grammar's name without role, as errors print it: ``ICANHAZ-OK``."""
    rule: str
    """The grammar's rule, role included: ``C:request``."""
    class_name: str
    doc: str
    line: int
    senders: tuple[str, ...]
    parts: tuple[Part, ...]
    tags: tuple[str, ...]
    """The octets (hexadecimal) that the protocol's `Selector`s find in this message, one for each spelling."""
    shadowed: bool = False
    """Other messages' patterns or shapes are more of this one's: its values must not spell one of them."""
    shapes: tuple[Shape, ...] = ()
    """In a protocol without selectors: what tells the message from others; the one with most octets fixed is meant."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """Every field in wire order, constants included."""
        found: list[Field] = []
        for part in self.parts:
            found.extend(part.fields if isinstance(part, Frame) else (part.field,))
        return tuple(found)


class Selector(msgspec.Struct, frozen=True):
    """Where the octets stand that tell messages apart: a slice of a frame (negative: from the last).

    A protocol without any is one whose messages have `Shape`s. `octets` None is the whole frame. With `pattern` the tags are patterns of how the frame begins, ``??`` for
    any octet, and a message is the one whose longest pattern fits: ``Command`` with its name still open is
    what no command with a name of its own is. Such a protocol has one selector, and `octets` is 0.
    """

    frame: int
    octets: int | None
    pattern: bool = False


class NamedRule(msgspec.Struct, frozen=True):
    """A rule of the grammar with a layout of its own: a value, a run of fields, or one of other rules."""

    name: str
    line: int
    type: Type | None = None
    fields: tuple[Field, ...] = ()
    one_of: tuple[str, ...] = ()


class FlagBit(msgspec.Struct, frozen=True):
    """One bit of the flags octet; `announces` names the part that it says is there."""

    name: str
    value: int
    doc: str
    announces: str | None = None


class Enum(msgspec.Struct, frozen=True):
    """Named values of an integer field."""

    name: str
    class_name: str
    members: tuple[tuple[str, int], ...]


class Constant(msgspec.Struct, frozen=True):
    """A named number that a package exports, such as ``NODEID_ANY``."""

    name: str
    value: int
    doc: str


class Role(msgspec.Struct, frozen=True):
    """A side of the dialog: its letter in the grammar, its name, its ZeroMQ socket type."""

    letter: str
    name: str
    socket: str
    doc: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What a role replies to a message that does not decode; the first row that fits applies.

    `message`, `field` and `kind` are those of the DecodeError, None fits any. `reply` is a message
    class name; None is silence.
    """

    role: str
    reply: str | None = None
    message: str | None = None
    field: str | None = None
    kind: str | None = None


class Stream(msgspec.Struct, frozen=True, tag="parts", tag_field="stream"):
    """Framing of messages on a byte stream: magic, length, then each part with its size.

    A size below `escape` takes one octet; otherwise the octet `escape` and a big-endian integer of
    `long_octets`. `magics` are read alike; `native` names the one that is written where the host is
    little-endian, the first elsewhere.
    """

    magics: tuple[str, ...]
    length_octets: int
    escape: int
    long_octets: int


class UnitHead(msgspec.Struct, frozen=True):
    """How a message on a stream begins, and how long it is.

    It begins with the octets `prefix`; then, `skip` octets later, a size of `size_octets` octets counts what
    follows it; without a size the message has `octets` octets in all.
    """

    prefix: str
    skip: int = 0
    size_octets: int = 0
    octets: int = 0


class UnitStream(msgspec.Struct, frozen=True, tag="units", tag_field="stream"):
    """Messages of one frame that follow each other on a byte stream, each saying itself how long it is.

    No head begins with another's prefix.
    """

    heads: tuple[UnitHead, ...]


class Protocol(msgspec.Struct, frozen=True):
    """A whole protocol, ready to be written in any language."""

    ir_version: int
    name: str
    title: str
    edition: str
    source: str
    digest: str
    roles: tuple[Role, ...]
    messages: tuple[Message, ...]
    selectors: tuple[Selector, ...]
    rules: tuple[NamedRule, ...]
    flags: tuple[FlagBit, ...]
    enums: tuple[Enum, ...]
    constants: tuple[Constant, ...]
    timers: tuple[tuple[str, float], ...]
    answers: tuple[Answer, ...]
    unexpected: tuple[tuple[str, str], ...]
    """For a role's letter, the message class it sends in answer to an unexpected command."""
    dialogs: tuple[Dialog, ...]
    stream: Stream | UnitStream | None = None
