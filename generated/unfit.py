# Written by specwire from generator/support/unfit.py. Do not edit; change that file and run `make generate`.
"""Why a message cannot be put on the wire: the slow path that follows a failed encode.

A value is refused where it has no octets (wrong type, out of range, too long for its length prefix) and
where its octets would decode to something else: a NUL in a text that NUL ends, ``=`` in a name that ``=``
ends, an empty route, a flag bit that says a frame is there.
"""

from __future__ import annotations

from operator import index
from reprlib import repr as shorten
from typing import Any, NoReturn, SupportsIndex

from specwire.generated.errors import DecodeError, EncodeError, Kind
from specwire.generated.layout import (
    Constant,
    Field,
    Frame,
    Integer,
    Json,
    Keyword,
    ListOf,
    MessageLayout,
    Octets,
    Pairs,
    ProtocolLayout,
    Rest,
    Stack,
    Text,
    Type,
)
from specwire.generated.messages import Message
from specwire.generated.refusal import check_letter
from specwire.generated.words import octets_word


def explain_encode(layout: ProtocolLayout, message: Message, strict: bool = False) -> EncodeError:
    """Return the error that says which field of `message` does not fit and why."""
    found = next(entry for entry in layout.messages if entry.name == message.NAME)
    try:
        _Check(layout, found, message, strict).message()
    except EncodeError as error:
        return error
    return EncodeError(
        protocol=layout.protocol, message_name=found.name, field=None, frame=None, offset=None, kind="frames",
        expected="fields that both paths can write", found="a disagreement between them; please report it",
        rule=layout.edition,
    )  # fmt: skip


def check_encoded(layout: ProtocolLayout, frames: list[bytes]) -> list[bytes]:
    """Return `frames`, the letter of the specification checked.

    Raises:
        EncodeError: a field is not what the letter allows.
    """
    try:
        check_letter(layout, frames)
    except DecodeError as error:
        raise EncodeError(**error.attributes()) from None
    return frames


class _Check:
    """One pass over the fields of one message."""

    def __init__(self, layout: ProtocolLayout, entry: MessageLayout, message: Message, strict: bool) -> None:
        self.layout = layout
        self.entry = entry
        self.instance = message
        self.strict = strict
        self.field: Field | None = None
        self.path = ""
        self.rule: str | None = None

    def message(self) -> None:
        """Check every field; raise EncodeError at the first that does not fit."""
        self._one_reading()
        absent = False
        for part in self.entry.parts:
            for field in part.fields if isinstance(part, Frame) else (part.field,):
                if isinstance(field.type, Constant):
                    continue
                self.field, self.path, self.rule = field, field.name, None
                value = getattr(self.instance, field.attribute)
                optional = not isinstance(part, Rest) and part.presence.kind != "always"
                if value is None and optional:
                    absent = absent or (not isinstance(part, Rest) and part.presence.kind == "counted")
                    continue
                if absent:
                    self._refuse("frames", "None, as the field before it", _describe(value))
                self._part(part, field, value)

    def _one_reading(self) -> None:
        """Two parts that are two readings of one frame cannot both be there."""
        groups: dict[int, list[Field]] = {}
        for part in self.entry.parts:
            if isinstance(part, Frame) and part.presence.kind == "announced":
                field = part.fields[0]
                if getattr(self.instance, field.attribute) is not None:
                    groups.setdefault(part.presence.mask, []).append(field)
        for fields in groups.values():
            if len(fields) > 1:
                self.field, self.path = fields[1], fields[1].name
                self._refuse("frames", f"None beside {fields[0].name}", "a value")

    def _part(self, part: Frame | Stack | Rest, field: Field, value: object) -> None:
        if isinstance(part, Frame):
            if field.flags:
                self._flags(value)
            self._value(field.type, value)
            return
        for number, element in enumerate(self._sequence(value)):
            self.path = f"{field.name}[{number}]"
            if isinstance(part, Stack) and not element and isinstance(element, str | bytes):
                self._refuse("length", "at least 1 octet: an empty frame ends the stack", "0 octets")
            self._value(field.type, element)

    def _flags(self, value: object) -> None:
        announcing = self.layout.announcing
        if isinstance(value, SupportsIndex) and index(value) & announcing:
            expected = f"no bit of 0x{announcing:02x}: they follow from the other fields"
            self._refuse("range", expected, f"0x{index(value) & announcing:02x}")

    def _value(self, type: Type, value: object) -> None:
        match type:
            case Integer(octets=octets, members=members):
                self._integer(value, octets, members)
            case Keyword(options=options):
                if value not in options:
                    self._refuse("constant", " or ".join(options), _describe(value))
            case Text():
                self._text(type, value)
            case Json():
                self._encoded(value)
            case Octets():
                self._octets(type, value)
            case ListOf(count_octets=count, element=element):
                self._list(count, element, value)
            case Pairs():
                self._pairs(type, value)

    def _integer(self, value: object, octets: int, members: tuple[int, ...]) -> None:
        if not isinstance(value, SupportsIndex):
            self._refuse("range", "an integer", _describe(value))
        number = index(value)
        if not 0 <= number < 256**octets:
            found = str(number) if number.bit_length() <= 128 else _describe(number)
            self._refuse("range", f"0 to {256**octets - 1}", found)
        if members and number not in members:
            self._refuse("range", " or ".join(map(str, members)), str(number))

    def _text(self, type: Text, value: object) -> bytes:
        raw = self._encoded(value)
        if type.terminated and b"\0" in raw:
            self._refuse("text", "text without NUL", "0x00")
        if type.span.kind == "prefix":
            self._fits(len(raw), type.span.octets)
        return raw

    def _encoded(self, value: object) -> bytes:
        if not isinstance(value, str):
            self._refuse("text", "text", _describe(value))
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            self._refuse("text", "text that UTF-8 can write", repr(value[error.start : error.end]))

    def _fits(self, length: int, octets: int) -> None:
        if length >= 256**octets:
            self._refuse("length", f"at most {256**octets - 1} octets", str(length))

    def _octets(self, type: Octets, value: object) -> None:
        if not isinstance(value, bytes | bytearray | memoryview):
            self._refuse("text", "octets", _describe(value))
        length, span = len(bytes(value)), type.span
        if span.kind == "fixed" and length != span.octets:
            self._refuse("length", octets_word(span.octets), str(length))
        if length < type.minimum:
            self._refuse("length", f"at least {octets_word(type.minimum)}", str(length))
        if span.kind == "prefix":
            self._fits(length, span.octets)

    def _sequence(self, value: object) -> tuple[Any, ...]:
        if not isinstance(value, tuple):
            self._refuse("count", "a tuple", _describe(value))
        return value

    def _list(self, count_octets: int, element: Type, value: object) -> None:
        name = self.path
        for number, item in enumerate(self._counted(count_octets, value)):
            self.path = f"{name}[{number}]"
            self._value(element, item)

    def _counted(self, count_octets: int, value: object) -> tuple[Any, ...]:
        items = self._sequence(value)
        if len(items) >= 256**count_octets:
            self._refuse("count", f"at most {256**count_octets - 1} entries", str(len(items)))
        return items

    def _pairs(self, type: Pairs, value: object) -> None:
        path = self.path
        items = self._counted(type.count_octets, value)
        self.rule = type.rule
        for number, item in enumerate(items):
            self.path = f"{path}[{number}]"
            if not isinstance(item, tuple) or len(item) != 2:
                self._refuse("count", "a pair of name and value", _describe(item))
            if type.value is None:
                self._divided(type, *item)
                continue
            self.path = f"{path}[{number}].name"
            self._text(type.name, item[0])
            self.path = f"{path}[{number}].value"
            self._text(type.value, item[1])

    def _divided(self, type: Pairs, name: object, value: object) -> None:
        """Name and value in one text: the one before the dividing ``=`` must not hold another."""
        path = self.path
        self.path = f"{path}.name"
        octets = self._encoded(name) + b"="
        if type.split == "first" and octets.count(b"=") > 1:
            self._refuse("text", "a name without '='", repr(name))
        self.path = f"{path}.value"
        octets += (content := self._encoded(value))
        if type.split == "last" and b"=" in content:
            self._refuse("text", "a value without '='", repr(value))
        self.path = path
        self._fits(len(octets), type.name.span.octets)

    def _refuse(self, kind: Kind, expected: str, found: str) -> NoReturn:
        raise EncodeError(
            protocol=self.layout.protocol, message_name=self.entry.name, field=self.path, frame=None, offset=None,
            kind=kind, expected=expected, found=found,
            rule=f"{self.layout.edition} {self.rule or (self.field.rule if self.field else self.entry.name)}",
        )  # fmt: skip


def _describe(value: object) -> str:
    """A value with its type, never long; a number too long to print is not printed."""
    if value is None:
        return "None"
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    try:
        return f"{type(value).__name__} {shorten(value)}"
    except ValueError:  # Such a number inside a sequence.
        return type(value).__name__
