# Written by specwire from generator/support/writing.py. Do not edit; change that file and run `make generate`.
"""Encoding of values with full checks: the slow path of encoding.

A value is refused in two cases:

- It has no octets: wrong type, out of range, too long for its length prefix.
- Its octets would decode to something else: a NUL in a NUL-terminated text, ``=`` in a name that
  ``=`` ends, padding at the end of a padded text, a value after an omitted one.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from reprlib import repr as shorten
from typing import Any, NoReturn, SupportsIndex

from specwire.generated.errors import EncodeError, Kind
from specwire.generated.layout import (
    Constant,
    Field,
    Integer,
    Json,
    Keyword,
    ListOf,
    MessageLayout,
    Octets,
    Padding,
    Pairs,
    ProtocolLayout,
    Record,
    Size,
    Span,
    Text,
    Type,
    Union,
)
from specwire.generated.words import either, octets_word, show

Pieces = list[tuple[Field, bytes]]
"""Fields of a run, each with its octets."""


class Writer:
    """Encoder of the values of one message; tracks its position for error messages.

    `home` is the module with the classes of the message and its records.
    """

    def __init__(self, layout: ProtocolLayout, entry: MessageLayout, home: str, strict: bool) -> None:
        self.layout = layout
        self.entry = entry
        self.home = home
        self.strict = strict
        self.field: Field | None = None
        self.path = ""
        self.rule: str | None = None

    def enter(self, field: Field | None, path: str) -> None:
        """Move to another field."""
        self.field, self.path, self.rule = field, path, None

    def run(self, fields: Sequence[Field], owner: object, outer: str = "") -> Pieces:
        """Return the octets of the fields of a run, whose values are attributes of `owner`.

        Raises:
            EncodeError: a value does not fit.
        """
        pieces: Pieces = []
        for field in self._written(fields, owner, outer):
            self.enter(field, outer + field.name)
            value = None if field.implied else getattr(owner, field.attribute)
            pieces.append((field, self.value(field.type, value)))
            if field.optional and not pieces[-1][1]:
                self.refuse("length", "at least 1 octet: without any it would be read as None", "0 octets")
        for at in reversed(range(len(pieces))):
            field = pieces[at][0]
            if isinstance(field.type, Size):
                self.enter(field, outer + field.name)
                behind = sum(len(octets) for _, octets in pieces[at + 1 :])
                pieces[at] = field, self._size(field.type, behind)
        return pieces

    def _written(self, fields: Sequence[Field], owner: object, outer: str) -> Sequence[Field]:
        """Return the fields before the first that is omitted."""
        end = len(fields)
        for number, field in enumerate(fields):
            value = getattr(owner, field.attribute) if field.optional else None
            if field.optional and value is None:
                end = min(end, number)
            elif number > end:
                self.enter(field, outer + field.name)
                self.refuse("length", "None, as the field before it", describe(value))
        return fields[:end]

    def value(self, type: Type, value: object) -> bytes:
        """Return the octets of a value.

        Raises:
            EncodeError: the value does not fit its type.
        """
        match type:
            case Constant(octets=constant):
                return constant
            case Padding(octets=number, fill=fill):
                return fill * number
            case Size():
                return b""  # Known once the octets after it are.
            case Integer():
                return self._integer(type, value)
            case Keyword(options=options):
                if value not in options:
                    self.refuse("constant", either(options), describe(value))
                return self._encoded(value)
            case Text():
                return self._text(type, value)
            case Json():
                return self._encoded(value)
            case Octets():
                return self._octets(type, value)
            case ListOf():
                return self._list(type, value)
            case Pairs():
                return self._pairs(type, value)
            case Record() | Union():
                return self._record(type, value)

    def _integer(self, type: Integer, value: object) -> bytes:
        if not isinstance(value, SupportsIndex):
            self.refuse("range", "an integer", describe(value))
        number, most = index(value), 256**type.octets - 1
        if not 0 <= number <= most:
            found = str(number) if number.bit_length() <= 128 else describe(number)
            self.refuse("range", f"0 to {most}", found)
        if type.members and number not in type.members:
            self.refuse("range", either(map(str, type.members)), str(number))
        return number.to_bytes(type.octets, "big")

    def _size(self, type: Size, behind: int) -> bytes:
        for tag, octets in type.forms:
            if behind < 256**octets:
                size = tag + behind.to_bytes(octets, "big")
                # A size without a tag must not begin like another form.
                if tag or not any(other and size.startswith(other) for other, _ in type.forms):
                    return size
        most = max(256**octets for _, octets in type.forms) - 1
        self.refuse("length", f"at most {most} octets after it", str(behind))

    def _text(self, type: Text, value: object) -> bytes:
        raw = self._encoded(value)
        if type.terminated:
            if b"\0" in raw:
                self.refuse("text", "text without NUL", "0x00")
            raw += b"\0" * self.strict
        if type.padding is not None:
            if len(raw) > type.span.octets:
                self.refuse("length", f"at most {octets_word(type.span.octets)}", str(len(raw)))
            if raw.endswith(type.padding):
                self.refuse(
                    "text",
                    f"text that does not end with {show(type.padding)}, which fills it up",
                    describe(value),
                )
            return raw.ljust(type.span.octets, type.padding)
        return self._spanned(type.span, raw)

    def _encoded(self, value: object) -> bytes:
        if not isinstance(value, str):
            self.refuse("text", "text", describe(value))
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            self.refuse("text", "text that UTF-8 can write", repr(value[error.start : error.end]))

    def _octets(self, type: Octets, value: object) -> bytes:
        if not isinstance(value, bytes | bytearray | memoryview):
            self.refuse("text", "octets", describe(value))
        raw = bytes(value)
        if type.span.kind == "fixed":
            return self._spanned(type.span, raw)
        if len(raw) < type.minimum:
            self.refuse("length", f"at least {octets_word(type.minimum)}", str(len(raw)))
        if type.maximum is not None and len(raw) > type.maximum:
            self.refuse("length", f"at most {octets_word(type.maximum)}", str(len(raw)))
        return self._spanned(type.span, raw)

    def _spanned(self, span: Span, raw: bytes) -> bytes:
        """Return octets with their length or terminator."""
        if span.kind == "fixed" and len(raw) != span.octets:
            self.refuse("length", octets_word(span.octets), str(len(raw)))
        if span.kind == "until" and (raw + span.until).index(span.until) != len(raw):
            self.refuse("text", f"text without {show(span.until)}", show(raw))
        if span.kind != "prefix":
            return raw
        if len(raw) >= 256**span.octets:
            self.refuse("length", f"at most {256**span.octets - 1} octets", str(len(raw)))
        return len(raw).to_bytes(span.octets, "big") + raw

    def sequence(self, value: object) -> tuple[Any, ...]:
        """Return a value that must be a tuple."""
        if not isinstance(value, tuple):
            self.refuse("count", "a tuple", describe(value))
        return value

    def _counted(self, type: ListOf | Pairs, value: object) -> tuple[bytes, tuple[Any, ...]]:
        """Return the octets of the count, and the entries."""
        items = self.sequence(value)
        if type.count_octets and len(items) >= 256**type.count_octets:
            self.refuse("count", f"at most {256**type.count_octets - 1} entries", str(len(items)))
        if len(items) < type.minimum:
            self.refuse("count", f"at least {type.minimum}", str(len(items)))
        return len(items).to_bytes(type.count_octets, "big") if type.count_octets else b"", items

    def _list(self, type: ListOf, value: object) -> bytes:
        field, path = self.field, self.path
        octets, items = self._counted(type, value)
        for number, item in enumerate(items):
            self.enter(field, f"{path}[{number}]")
            octets += self.value(type.element, item)
        self.enter(field, path)
        return octets

    def _pairs(self, type: Pairs, value: object) -> bytes:
        path = self.path
        octets, items = self._counted(type, value)
        self.rule = type.rule
        for number, item in enumerate(items):
            self.path = f"{path}[{number}]"
            if not isinstance(item, tuple) or len(item) != 2:
                self.refuse("count", "a pair of name and value", describe(item))
            octets += (
                self._divided(type, *item) if type.value is None else self._pair(type, type.value, *item)
            )
        self.path, self.rule = path, None
        return octets

    def _pair(self, type: Pairs, of_value: Text | Octets, name: object, value: object) -> bytes:
        entry = self.path
        self.path = f"{entry}.name"
        octets = self._text(type.name, name)
        self.path = f"{entry}.value"
        return octets + self.value(of_value, value)

    def _divided(self, type: Pairs, name: object, value: object) -> bytes:
        """Return name and value as one text; the side before the separator must not contain another ``=``."""
        path = self.path
        self.path = f"{path}.name"
        octets = self._encoded(name) + b"="
        if type.split == "first" and octets.count(b"=") > 1:
            self.refuse("text", "a name without '='", repr(name))
        self.path = f"{path}.value"
        octets += (content := self._encoded(value))
        if type.split == "last" and b"=" in content:
            self.refuse("text", "a value without '='", repr(value))
        self.path = path
        return self._spanned(type.name.span, octets)

    def _record(self, type: Record | Union, value: object) -> bytes:
        """Return the octets of a record; refuse a record of another package, even if its name matches."""
        options = type.options if isinstance(type, Union) else (type,)
        for option in options:
            if value.__class__.__name__ == option.class_name and value.__class__.__module__ == self.home:
                field, path = self.field, self.path
                pieces = self.run(option.fields, value, f"{path}.")
                self.enter(field, path)
                return b"".join(octets for _, octets in pieces)
        self.refuse("tag", either(option.class_name for option in options), describe(value))

    def refuse(self, kind: Kind, expected: str, found: str) -> NoReturn:
        """Raise EncodeError for a fault at the current position."""
        raise EncodeError(
            protocol=self.layout.protocol, message_name=self.entry.name, field=self.path, frame=None, offset=None,
            kind=kind, expected=expected, found=found,
            rule=f"{self.layout.edition} {self.rule or (self.field.rule if self.field else self.entry.name)}",
        )  # fmt: skip


def describe(value: object) -> str:
    """Return a value with its type, shortened; a number too long to print is not printed."""
    if value is None:
        return "None"
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    try:
        return f"{type(value).__name__} {shorten(value)}"
    except ValueError:  # A number too long to print, inside a sequence.
        return type(value).__name__
