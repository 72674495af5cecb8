# Written by specwire from generator/support/place.py. Do not edit; change that file and run `make generate`.
"""Where the slow path of decoding is: the frame, the run, the field, its path, for the error that may come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from specwire.generated.errors import DecodeError, Kind
from specwire.generated.layout import Field, MessageLayout, ProtocolLayout
from specwire.generated.words import octets_word


@dataclass(slots=True)
class Place:
    """A place in the frames of one message."""

    layout: ProtocolLayout
    message: MessageLayout
    frames: list[bytes]
    strict: bool
    index: int = 0
    """The frame, from 0."""
    end: int = 0
    """The octet of the frame at which the innermost run ends."""
    field: Field | None = None
    path: str = ""
    """The field as errors name it: ``headers[1]``."""
    rule: str | None = None
    """The rule of the entry, where it is another than the field's."""
    divided: int | None = None
    """In a text that holds a name and a value: the octet between the two."""

    @property
    def frame(self) -> bytes:
        """The octets of the frame."""
        return self.frames[self.index]

    @property
    def rule_name(self) -> str:
        """The rule that is not kept to here."""
        return self.rule or (self.field.rule if self.field else self.message.name)

    def enter(self, field: Field | None, path: str) -> None:
        """Go on to another field, or to none."""
        self.field, self.path, self.rule, self.divided = field, path, None, None

    def open(self, field: Field | None, path: str) -> None:
        """Go on to a field at the start of the frame."""
        self.enter(field, path)
        self.end = len(self.frame)

    def take(self, at: int, octets: int) -> bytes:
        """Return so many octets from octet `at` of the frame on.

        Raises:
            DecodeError: the run ends before.
        """
        if octets > self.end - at:
            self.refuse("length", octets_word(octets), str(self.end - at), at)
        return self.frame[at : at + octets]

    def peek(self, at: int, octets: int) -> bytes:
        """Return so many octets from octet `at` of the frame on, fewer where the run ends before."""
        return self.frame[at : min(at + octets, self.end)]

    def refuse(self, kind: Kind, expected: str, found: str, at: int | None) -> NoReturn:
        """Raise the DecodeError for a fault at octet `at` of the frame, None where no octet is meant."""
        path = self.path
        if self.divided is not None and at is not None:
            path += ".name" if at < self.divided else ".value"
        raise DecodeError(
            protocol=self.layout.protocol, message_name=self.message.name, field=path or None,
            frame=min(self.index, len(self.frames)) if self.frames else None, offset=at, kind=kind,
            expected=expected, found=found, rule=f"{self.layout.edition} {self.rule_name}",
        )  # fmt: skip
