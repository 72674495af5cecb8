"""The checked description of one protocol: the single input of every emitter.

Everything here is frozen, ordered as the specification orders it, and prints as JSON
(``specwire show ir PROTOCOL --json``). A pass that builds it has checked everything an emitter relies
on, so an emitter never finds an impossible case.

A *message* is a list of *parts*, the ZeroMQ frames in their order: a `Frame` with fields inside, a
`Stack` of frames up to an empty delimiter, or a `Rest` of frames up to the end. Octets are written as
lower-case hexadecimal text, so that the JSON form needs no special encoding.

The fields of a frame are a *run*: one value directly after the other, the last up to the frame's
end. A `RecordType` is a run inside another run; its fields or a `SizeType` in it define its end. An
open value (a `Length` or a count that is the rest) is the last of its run.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from specwire.generator.dialogs import Dialog

IR_VERSION = 3
"""Raised whenever a reader of the JSON form would have to change."""


Order = Literal["big", "little"]
"""Byte order: the most or the least significant octet first."""


class Length(msgspec.Struct, frozen=True):
    """Number of octets of a value.

    ``prefix``: a number before the value counts them: `number`, or without it a big-endian unsigned
    integer of `octets` octets (1 to 8). ``fixed``: always `octets`. ``rest``: the rest of the run but its last `octets` octets.
    ``until``: up to the first occurrence of the octets `until` (hexadecimal), which are the constant
    after the value (text only). ``counted``: a `CounterType` of the same run counts them.
    """

    kind: Literal["prefix", "fixed", "rest", "until", "counted"]
    octets: int = 0
    until: str = ""
    number: CountType | None = None


class ConstantType(msgspec.Struct, frozen=True, tag="constant", tag_field="type"):
    """Octets that are always the same; `text` or `number` is their value as a word or an integer."""

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
    """An integer of `octets` octets, 1 to 8; a signed one is in two's complement.

    `enum` names the enumeration of the permitted values. `values` are permitted values without names
    (``%x00 / %x01``); empty for any value.
    """

    octets: int
    enum: str | None = None
    bitmask: bool = False
    values: tuple[int, ...] = ()
    order: Order = "big"
    signed: bool = False
    open: bool = False
    """Values that `enum` does not name are permitted, too."""


class FloatType(msgspec.Struct, frozen=True, tag="float", tag_field="type"):
    """A floating-point number of IEEE 754 in 4 or 8 octets."""

    octets: Literal[4, 8]
    order: Order = "big"


class BooleanType(msgspec.Struct, frozen=True, tag="boolean", tag_field="type"):
    """An integer of `octets` octets that is 0 for False or 1 for True."""

    octets: int = 1
    order: Order = "big"


class VarintType(msgspec.Struct, frozen=True, tag="varint", tag_field="type"):
    """An integer of one to `maximum` octets, at most 10, with 7 bits in each; the high bit is set but in the last.

    `order` is that of the groups of 7 bits: ``little`` is LEB128, as in MQTT and Protocol Buffers.
    `signed`: ``zigzag`` maps 0, -1, 1, -2 to 0, 1, 2, 3; ``complement`` is signed LEB128.
    """

    order: Order = "little"
    maximum: int = 10
    signed: Literal["zigzag", "complement"] | None = None


class DigitsType(msgspec.Struct, frozen=True, tag="digits", tag_field="type"):
    """An integer as text: `minimum` to `maximum` digits, at most 20, up to the first octet that is none.

    `base` is 10 or 16; a signed number may begin with ``-``. It is written with leading zeros only up to
    `minimum` digits, hexadecimal ones in lower case.
    """

    base: Literal[10, 16] = 10
    minimum: int = 1
    maximum: int = 20
    signed: bool = False


class UuidType(msgspec.Struct, frozen=True, tag="uuid", tag_field="type"):
    """A UUID of 16 octets (RFC 9562); with ``little``, its first three parts are little-endian."""

    order: Order = "big"


class TextType(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    """UTF-8 text.

    `pattern` is the grammar's character class as a regular expression over octets; only ``strict``
    decoding applies it, to the octets without padding. `terminated`: the specification ends the
    text with NUL; by default it is read with or without the NUL and written without it. `padding`:
    the octet after the content of a text of fixed length; the value is the text without this
    padding.
    """

    length: Length
    pattern: str | None = None
    terminated: bool = False
    padding: str | None = None


class OctetsType(msgspec.Struct, frozen=True, tag="octets", tag_field="type"):
    """Opaque octets, at least `minimum` of them and at most `maximum` (None: no maximum)."""

    length: Length
    minimum: int = 0
    maximum: int | None = None


class PaddingType(msgspec.Struct, frozen=True, tag="padding", tag_field="type"):
    """Octets without meaning: any value is read; `octets` times the octet `fill` is written.

    With `multiple`, there are as many as it takes for the position in the frame or record to be a
    multiple of it; `octets` is 0.
    """

    octets: int
    fill: str = "00"
    multiple: int = 0


class SizeForm(msgspec.Struct, frozen=True):
    """One form of a size: the octets `tag` (empty if there is only one form), then an integer."""

    tag: str
    octets: int


class SizeType(msgspec.Struct, frozen=True, tag="size", tag_field="type"):
    """Number of all the octets that follow in the run.

    Encoding computes the size and uses the first of `forms` whose integer can hold it; decoding
    reads every form. Forms can be distinguished: no tag begins with another.
    """

    forms: tuple[SizeForm, ...]


class CounterType(msgspec.Struct, frozen=True, tag="counter", tag_field="type"):
    """Number of octets, or of items, of the adjacent fields `counts` that follow in the run, plus `plus`.

    One field of text or octets has the length ``counted``, and a list or pairs have `counted`. Of several
    fields, or one of another type, the octets are counted; the last of them may be open.
    """

    number: CountType
    counts: tuple[str, ...]
    plus: int = 0


class ChecksumType(msgspec.Struct, frozen=True, tag="checksum", tag_field="type"):
    """Checksum of the octets of the fields `over` of the same run, in the order of the run.

    `algorithm` is a name of `specwire.generated.checksums`, or ``module:function`` for a function from octets to
    an integer.
    """

    number: IntegerType
    algorithm: str
    over: tuple[str, ...]


class JsonType(msgspec.Struct, frozen=True, tag="json", tag_field="type"):
    """The rest of a frame as UTF-8 JSON text, kept as text; ``strict`` decoding requires an object."""


class ListType(msgspec.Struct, frozen=True, tag="list", tag_field="type"):
    """A count of `count_octets` octets, then so many elements; at least `minimum`.

    With `number`, the count is written as that says, and `count_octets` is the least number of its
    octets. Without a count (`count_octets` is 0) the elements continue to the end of the run. An element
    has at least one octet, and its layout defines its end.
    """

    count_octets: int
    element: Element
    minimum: int = 0
    counted: bool = False
    """A `CounterType` of the run counts the elements."""
    number: CountType | None = None


class PairsType(msgspec.Struct, frozen=True, tag="pairs", tag_field="type"):
    """A dictionary: a count of `count_octets` octets, then so many (name, value) pairs in wire order.

    `number` is as in `ListType`. Without a count (`count_octets` is 0) the pairs continue to the end of the run. With `split`,
    name and value are one text, split at its first or last ``=``, and `value` is None. `rule` is
    the grammar's rule for one entry, or None.
    """

    count_octets: int
    name: TextType
    value: TextType | OctetsType | None = None
    split: Literal["first", "last"] | None = None
    rule: str | None = None
    minimum: int = 0
    counted: bool = False
    """A `CounterType` of the run counts the pairs."""
    number: CountType | None = None


class RecordType(msgspec.Struct, frozen=True, tag="record", tag_field="type"):
    """A run of fields inside another run, as one value.

    Its end is defined: no field is open, or a `SizeType` precedes the open one. `rule` is the
    grammar's rule for it; None for a group in place.
    """

    name: str
    class_name: str
    fields: tuple[Field, ...]
    rule: str | None = None
    doc: str = ""


class UnionType(msgspec.Struct, frozen=True, tag="union", tag_field="type"):
    """One of several records, distinguished by the octets with which each begins.

    `tags` has one entry for each option. No tag begins with another.
    """

    name: str
    options: tuple[RecordType, ...]
    tags: tuple[str, ...]


CountType = IntegerType | VarintType | DigitsType
"""Numbers that can count octets or items; they are unsigned."""

NumberType = IntegerType | FloatType | BooleanType | VarintType | DigitsType

Element = NumberType | UuidType | TextType | OctetsType | ListType | PairsType | RecordType | UnionType
"""The types of list elements."""

Type = ConstantType | KeywordType | PaddingType | SizeType | CounterType | ChecksumType | JsonType | Element

Default = int | float | bool | str | tuple[()] | None


class Field(msgspec.Struct, frozen=True):
    """A value inside a frame.

    `name` is the grammar's, in snake case. `attribute` is the Python spelling, which differs if the
    name is a keyword or a method. `rule` is the grammar rule of the type; None for a literal in
    place. `line` counts from 1 in grammar.abnf; 0 if only the profile defines the field.
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
    """Names of constants with a special meaning in this field."""
    optional: bool = False
    """The frame may end before this field, which is then None; all fields after it are optional, too.

    Encoding rejects an empty value, because it could not be distinguished from an absent one.
    """
    content: Literal["json"] | None = None
    """Format of text or octets for readers of tables; one NUL may follow the content."""

    @property
    def constant(self) -> bool:
        """Whether the grammar fixes the value: a class variable, not a field of the message."""
        return isinstance(self.type, ConstantType)

    @property
    def implied(self) -> bool:
        """Whether the octets follow from the rest of the message, so that the class has no such field."""
        return isinstance(self.type, ConstantType | PaddingType | SizeType | CounterType | ChecksumType)


class Always(msgspec.Struct, frozen=True, tag="always", tag_field="presence"):
    """The part is in every message; if a flag announces it anyway, ``flags & mask == value``."""

    mask: int = 0
    value: int = 0


class Announced(msgspec.Struct, frozen=True, tag="announced", tag_field="presence"):
    """The part is present if ``flags & mask == value``."""

    mask: int
    value: int


class Counted(msgspec.Struct, frozen=True, tag="counted", tag_field="presence"):
    """The part is present if the message has enough frames: trailing parts are optional."""


Presence = Always | Announced | Counted
Letter = Literal["required", "forbidden"] | None
"""Requirement of the specification's prose for an announced part, checked only by ``strict`` decoding."""


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
    """All remaining frames, possibly none: one field, a tuple of the frames."""

    name: str
    field: Field


Part = Frame | Stack | Rest


class FrameHead(msgspec.Struct, frozen=True):
    """Beginning of a frame: hexadecimal octets, ``??`` for any.

    With `whole` the frame has no other octets.
    """

    octets: str
    whole: bool = False


class Shape(msgspec.Struct, frozen=True):
    """Shape of a message: the beginnings of its first frames, and its number of frames.

    `senders` are the roles that send the message; frames of another role are not this message. With
    `needs_sender`, only the sender distinguishes it from another message with the same frames.
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
    """The octets (hexadecimal) at the protocol's `Selector`s in this message, one for each spelling."""
    shadowed: bool = False
    """Patterns or shapes of other messages are more specific: values of this message must not match them."""
    shapes: tuple[Shape, ...] = ()
    """In a protocol without selectors, the shapes of the message.

    If several fit, that with most constant octets.
    """

    @property
    def fields(self) -> tuple[Field, ...]:
        """Every field in wire order, constants included."""
        found: list[Field] = []
        for part in self.parts:
            found.extend(part.fields if isinstance(part, Frame) else (part.field,))
        return tuple(found)


class Selector(msgspec.Struct, frozen=True):
    """Place of the octets that identify a message: a slice of a frame (negative: from the last).

    Messages of a protocol without selectors have `Shape`s. If `octets` is None, the slice is the
    whole frame. With `pattern`, the tags are patterns of the beginning of the frame, with ``??``
    for any octet, and the longest pattern that fits identifies the message: ``Command``, whose name
    is open, is any command that has no pattern. Such a protocol has one selector, and `octets` is
    0.
    """

    frame: int
    octets: int | None
    pattern: bool = False


class NamedRule(msgspec.Struct, frozen=True):
    """A rule of the grammar with its layout: a value, a run of fields, or one of other rules."""

    name: str
    line: int
    type: Type | None = None
    fields: tuple[Field, ...] = ()
    one_of: tuple[str, ...] = ()


class FlagBit(msgspec.Struct, frozen=True):
    """One bit of the flags octet; `announces` names the part whose presence it shows."""

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
    """Reply of a role to a message that does not decode; the first row that fits applies.

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

    A size below `escape` has one octet; a larger one is the octet `escape` and a big-endian integer
    of `long_octets`. Every one of `magics` is accepted.
    """

    magics: tuple[str, ...]
    length_octets: int
    escape: int
    long_octets: int


class UnitHead(msgspec.Struct, frozen=True):
    """Beginning and length of a message on a stream.

    The message begins with the octets `prefix`. After `skip` more octets, a size of `size_octets`
    octets counts the rest. Without a size, the message has `octets` octets in total.
    """

    prefix: str
    skip: int = 0
    size_octets: int = 0
    octets: int = 0


class UnitStream(msgspec.Struct, frozen=True, tag="units", tag_field="stream"):
    """Messages of one frame that follow each other on a byte stream, each with its length or a fixed size.

    No head begins with another's prefix.
    """

    heads: tuple[UnitHead, ...]


Redacted: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Message classes, and the attributes of each with content."""


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
    """For a role's letter, the message class that it sends in reply to an unexpected command."""
    dialogs: tuple[Dialog, ...]
    stream: Stream | UnitStream | None = None
    redact: Redacted | None = None
    """For a message class, the attributes with content; None if the profile does not say which have it."""
