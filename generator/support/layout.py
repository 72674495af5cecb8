"""The layout of a protocol's messages as data: what the slow paths of decoding and encoding walk over.

The fast paths are straight code that only finds out *that* something is wrong. `specwire.generated.refusal`
then walks the frames with these tables, field by field, and finds *what* is wrong and *where*.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Span(msgspec.Struct, frozen=True):
    """How many octets: counted by an integer in front, always the same, all that is left, or up to other octets."""

    kind: Literal["prefix", "fixed", "rest", "until"]
    octets: int = 0
    until: bytes = b""


class Constant(msgspec.Struct, frozen=True):
    """Octets that are always the same."""

    octets: bytes
    words: str
    """The value as errors print it."""


class Keyword(msgspec.Struct, frozen=True):
    """One of several words that fill a frame."""

    options: tuple[str, ...]


class Integer(msgspec.Struct, frozen=True):
    """An unsigned big-endian integer; `members` are the values that it may have, empty for any."""

    octets: int
    members: tuple[int, ...] = ()


class Text(msgspec.Struct, frozen=True):
    """UTF-8 text; `pattern` (over octets) and a NUL at the end are demanded under strict only.

    `padding`: the octet that fills a text of fixed length behind its content.
    """

    span: Span
    pattern: bytes | None = None
    terminated: bool = False
    padding: bytes | None = None


class Octets(msgspec.Struct, frozen=True):
    """Opaque octets, at least `minimum`, at most `maximum`."""

    span: Span
    minimum: int = 0
    maximum: int | None = None


class Padding(msgspec.Struct, frozen=True):
    """So many octets that mean nothing, written as `fill`."""

    octets: int
    fill: bytes


class Size(msgspec.Struct, frozen=True):
    """How many octets follow in the run; each form is a tag and the octets of the integer after it.

    A form without a tag is what begins as none of the others.
    """

    forms: tuple[tuple[bytes, int], ...]


class Json(msgspec.Struct, frozen=True):
    """UTF-8 JSON text up to the end of the run; strict demands an object."""


class ListOf(msgspec.Struct, frozen=True):
    """A count, then so many elements; with `count_octets` 0 elements up to the end of the run."""

    count_octets: int
    element: Element
    minimum: int = 0


class Pairs(msgspec.Struct, frozen=True):
    """A count, then so many names and values; with `split` one text, divided at its first or last ``=``.

    With `count_octets` 0 the pairs go on to the end of the run.
    """

    count_octets: int
    name: Text
    value: Text | Octets | None = None
    split: Literal["first", "last"] | None = None
    rule: str | None = None
    """The grammar's rule for one entry, where it has a name."""
    minimum: int = 0


class Record(msgspec.Struct, frozen=True):
    """A run of fields inside another; the value is an instance of the class `class_name`."""

    class_name: str
    fields: tuple[Field, ...]
    rule: str | None = None


class Union(msgspec.Struct, frozen=True):
    """One of several records, told apart by the octets (`tags`) that each begins with."""

    options: tuple[Record, ...]
    tags: tuple[bytes, ...]


Element = Integer | Text | Octets | ListOf | Pairs | Record | Union
Type = Constant | Keyword | Padding | Size | Json | Element


class Field(msgspec.Struct, frozen=True):
    """A value in a frame: its name in errors, the attribute of the message, the rule of the grammar."""

    name: str
    attribute: str
    rule: str
    type: Type
    flags: bool = False
    """The field is the octet whose bits announce parts."""
    optional: bool = False
    """The run may end before it; the value is None then, and that of every field behind it."""

    @property
    def implied(self) -> bool:
        """Whether the octets follow from the other fields: no attribute of the class."""
        return isinstance(self.type, Constant | Padding | Size)


class Presence(msgspec.Struct, frozen=True):
    """When a part is there: always, when ``flags & mask == value``, or when there are frames enough."""

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
    """Frames up to an empty delimiter."""

    name: str
    field: Field
    presence: Presence = ALWAYS
    letter: Literal["required", "forbidden"] | None = None


class Rest(msgspec.Struct, frozen=True):
    """All frames that are left."""

    name: str
    field: Field


Part = Frame | Stack | Rest


class MessageLayout(msgspec.Struct, frozen=True):
    """One message: the grammar's name, its tags (what the selectors find in it), its parts.

    `patterns` are there instead of tags where messages are told apart by how their first frame begins: octets
    in hexadecimal, ``??`` for any; the message is the one whose longest pattern fits.
    """

    name: str
    class_name: str
    tags: tuple[tuple[bytes, ...], ...]
    parts: tuple[Part, ...]
    patterns: tuple[str, ...] = ()


class Shape(msgspec.Struct, frozen=True):
    """What a message looks like: how its first frames begin (octets, and whether that is all), and their number.

    `senders` are the roles that send the message; frames that another role sent are not it. With `by_octets` the
    frames alone tell it from other messages: then frames of an unknown sender are it, too. There are no `senders`
    where `decode` takes none. (Packages of specwire 0.1 have senders only where only these tell messages apart.)
    """

    frames: tuple[tuple[str, bool], ...]
    least: int
    most: int | None
    senders: tuple[str, ...] = ()
    by_octets: bool = False

    @property
    def needs_sender(self) -> bool:
        """Whether only the sender tells the message from another."""
        return bool(self.senders) and not self.by_octets


class ProtocolLayout(msgspec.Struct, frozen=True):
    """All messages; `selectors` are the slices (frame, octets or None for all) that tell them apart.

    `announcing` are the bits of the flags octet that announce parts. A protocol without selectors has `shapes`:
    a class and what it looks like, those that fix most first. `roles` are the letters of all senders that there
    are; it is empty where `decode` takes no sender.
    """

    protocol: str
    edition: str
    selectors: tuple[tuple[int, int | None], ...]
    messages: tuple[MessageLayout, ...]
    announcing: int = 0
    shapes: tuple[tuple[str, Shape], ...] = ()
    roles: tuple[str, ...] = ()

    @property
    def takes_sender(self) -> bool:
        """Whether `decode` takes the sender: some messages are told apart by nothing else."""
        return any(shape.needs_sender for _, shape in self.shapes)
