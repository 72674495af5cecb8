"""The layout of a protocol's messages as data: what the slow paths of decoding and encoding walk over.

The fast paths are straight code that only finds out *that* something is wrong. `specwire.generated.refusal`
then walks the frames with these tables, field by field, and finds *what* is wrong and *where*.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Span:
    """How many octets: counted by an integer in front, always the same, or all that is left."""

    kind: Literal["prefix", "fixed", "rest"]
    octets: int = 0


@dataclass(frozen=True, slots=True)
class Constant:
    """Octets that are always the same."""

    octets: bytes
    words: str
    """The value as errors print it."""


@dataclass(frozen=True, slots=True)
class Keyword:
    """One of several words that fill a frame."""

    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Integer:
    """An unsigned big-endian integer; `members` are the values that it may have, empty for any."""

    octets: int
    members: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """UTF-8 text; `pattern` (over octets) and a NUL at the end are demanded under strict only."""

    span: Span
    pattern: bytes | None = None
    terminated: bool = False


@dataclass(frozen=True, slots=True)
class Octets:
    """Opaque octets, at least `minimum`."""

    span: Span
    minimum: int = 0


@dataclass(frozen=True, slots=True)
class Json:
    """UTF-8 JSON text up to the end of the frame; strict demands an object."""


@dataclass(frozen=True, slots=True)
class ListOf:
    """A count, then so many elements."""

    count_octets: int
    element: Integer | Text | Octets


@dataclass(frozen=True, slots=True)
class Pairs:
    """A count, then so many names and values; with `split` one text, divided at its first or last ``=``."""

    count_octets: int
    name: Text
    value: Text | None = None
    split: Literal["first", "last"] | None = None
    rule: str | None = None
    """The grammar's rule for one entry, where it has a name."""


Type = Constant | Keyword | Integer | Text | Octets | Json | ListOf | Pairs


@dataclass(frozen=True, slots=True)
class Field:
    """A value in a frame: its name in errors, the attribute of the message, the rule of the grammar."""

    name: str
    attribute: str
    rule: str
    type: Type
    flags: bool = False
    """The field is the octet whose bits announce parts."""


@dataclass(frozen=True, slots=True)
class Presence:
    """When a part is there: always, when ``flags & mask == value``, or when there are frames enough."""

    kind: Literal["always", "announced", "counted"] = "always"
    mask: int = 0
    value: int = 0


ALWAYS = Presence()


@dataclass(frozen=True, slots=True)
class Frame:
    """One ZeroMQ frame."""

    name: str
    fields: tuple[Field, ...]
    presence: Presence = ALWAYS
    letter: Literal["required", "forbidden"] | None = None


@dataclass(frozen=True, slots=True)
class Stack:
    """Frames up to an empty delimiter."""

    name: str
    field: Field
    presence: Presence = ALWAYS
    letter: Literal["required", "forbidden"] | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """All frames that are left."""

    name: str
    field: Field


Part = Frame | Stack | Rest


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """One message: the grammar's name, its tags (what the selectors find in it), its parts."""

    name: str
    class_name: str
    tags: tuple[tuple[bytes, ...], ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class ProtocolLayout:
    """All messages; `selectors` are the slices (frame, octets or None for all) that tell them apart.

    `announcing` are the bits of the flags octet that announce parts.
    """

    protocol: str
    edition: str
    selectors: tuple[tuple[int, int | None], ...]
    messages: tuple[MessageLayout, ...]
    announcing: int = 0
