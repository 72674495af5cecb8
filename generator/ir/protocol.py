"""The protocol of the IR: its messages, the frames of each, and how a receiver distinguishes them."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from specwire.generator.ir.dialogs import Dialog
from specwire.generator.ir.payloads import Payloads
from specwire.generator.ir.types import Always, Field, Letter, Presence, Type

IR_VERSION = 5
"""Raised whenever a reader of the JSON form would have to change."""


class Frame(msgspec.Struct, frozen=True, tag="frame", tag_field="part"):
    """One ZeroMQ frame and the fields in it, in order."""

    name: str
    fields: tuple[Field, ...]
    presence: Presence = Always()
    letter: Letter = None


class Stack(msgspec.Struct, frozen=True, tag="stack", tag_field="part"):
    """Frames up to and including a delimiter, top first: one field, a tuple of the frames.

    `delimiter` is hexadecimal; by default the delimiter is an empty frame.
    """

    name: str
    field: Field
    presence: Presence = Always()
    letter: Letter = None
    delimiter: str = ""


class Rest(msgspec.Struct, frozen=True, tag="rest", tag_field="part"):
    """All remaining frames, possibly none: one field, a tuple of the frames."""

    name: str
    field: Field


Part = Frame | Stack | Rest


class FrameHead(msgspec.Struct, frozen=True):
    """Beginning of a frame: hexadecimal octets, ``?`` for any half octet.

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
    whole frame. With `pattern`, the tags are patterns of the beginning of the frame, with ``?``
    for any half octet, and the longest pattern that fits identifies the message: ``Command``, whose name
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
    """Messages of one frame that follow each other on a byte stream, and say themselves where they end.

    No head begins with another's prefix. Without heads, the ends follow from the layouts of the
    messages.
    """

    heads: tuple[UnitHead, ...] = ()


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
    folded: bool = False
    """ASCII letters at the selectors, and in the heads of shapes, are compared in lower case: there, tags and
    heads are in lower case."""
    max_depth: int = 0
    """Maximum number of records that contain each other in a frame; 0 if no record contains itself."""
    payloads: Payloads = Payloads()
    """What the payloads of messages hold, as far as the profile says."""
