"""The checked description of one protocol: the single input of every emitter.

Everything here is frozen, ordered as the specification orders it, and prints as JSON
(``specwire show ir PROTOCOL --json``). A pass that builds it has checked everything an emitter relies
on: an emitter never finds an impossible case.

A *message* is a list of *parts*, the ZeroMQ frames in their order: a `Frame` with fields inside, a
`Stack` of frames up to an empty delimiter, or a `Rest` of frames up to the end. Octets are written as
lower-case hexadecimal text, so that the JSON form needs no encoding of its own.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from specwire.generator.dialogs import Dialog

IR_VERSION = 1
"""Raised whenever a reader of the JSON form would have to change."""


class Length(msgspec.Struct, frozen=True):
    """How many octets a value has.

    ``prefix``: a big-endian unsigned integer of `octets` octets stands before it and counts them;
    ``fixed``: always `octets`; ``rest``: all that is left of the frame (`octets` is 0).
    """

    kind: Literal["prefix", "fixed", "rest"]
    octets: int = 0


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
    """An unsigned big-endian integer of `octets` octets; `enum` names the enumeration it must be of."""

    octets: int
    enum: str | None = None
    bitmask: bool = False


class TextType(msgspec.Struct, frozen=True, tag="text", tag_field="type"):
    """UTF-8 text.

    `pattern` is the grammar's character class as a regular expression over octets, applied under
    ``strict`` only. `terminated`: the letter ends it with NUL; by default it is read with or without
    and written without.
    """

    length: Length
    pattern: str | None = None
    terminated: bool = False


class OctetsType(msgspec.Struct, frozen=True, tag="octets", tag_field="type"):
    """Opaque octets, at least `minimum` of them."""

    length: Length
    minimum: int = 0


class JsonType(msgspec.Struct, frozen=True, tag="json", tag_field="type"):
    """The rest of a frame as UTF-8 JSON text, kept as text; ``strict`` wants an object."""


class ListType(msgspec.Struct, frozen=True, tag="list", tag_field="type"):
    """A count of `count_octets` octets, then so many elements."""

    count_octets: int
    element: IntegerType | TextType | OctetsType


class PairsType(msgspec.Struct, frozen=True, tag="pairs", tag_field="type"):
    """A dictionary: a count of `count_octets` octets, then so many (name, value) pairs in wire order.

    With `split`, name and value share one text, divided at its first or last ``=``, and `value` is None.
    `rule` is the grammar's rule for one entry, None where it has no name.
    """

    count_octets: int
    name: TextType
    value: TextType | None = None
    split: Literal["first", "last"] | None = None
    rule: str | None = None


Type = ConstantType | KeywordType | IntegerType | TextType | OctetsType | JsonType | ListType | PairsType

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

    @property
    def constant(self) -> bool:
        """Whether the grammar fixes the value: a class variable, not a field of the message."""
        return isinstance(self.type, ConstantType)


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

    @property
    def fields(self) -> tuple[Field, ...]:
        """Every field in wire order, constants included."""
        found: list[Field] = []
        for part in self.parts:
            found.extend(part.fields if isinstance(part, Frame) else (part.field,))
        return tuple(found)


class Selector(msgspec.Struct, frozen=True):
    """Where the octets stand that tell messages apart: a slice of a frame (negative: from the last).

    `octets` None is the whole frame.
    """

    frame: int
    octets: int | None


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


class Stream(msgspec.Struct, frozen=True):
    """Framing of messages on a byte stream: magic, length, then each part with its size.

    A size below `escape` takes one octet; otherwise the octet `escape` and a big-endian integer of
    `long_octets`. `magics` are read alike; `native` names the one that is written where the host is
    little-endian, the first elsewhere.
    """

    magics: tuple[str, ...]
    length_octets: int
    escape: int
    long_octets: int


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
    stream: Stream | None = None
