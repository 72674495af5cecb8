# Written by specwire from generator/support/place.py. Do not edit; change that file and run `make generate`.
"""Current position of the slow path of decoding: frame, run, field and path, for error messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from specwire.generated.errors import DecodeError, Kind
from specwire.generated.layout import Field, MessageLayout, ProtocolLayout
from specwire.generated.words import octets_word


@dataclass(slots=True)
class Place:
    """Position in the frames of one message."""

    layout: ProtocolLayout
    message: MessageLayout
    frames: list[bytes]
    strict: bool
    index: int = 0
    """Index of the frame, from 0."""
    end: int = 0
    """Offset in the frame at which the innermost run ends."""
    field: Field | None = None
    path: str = ""
    """Path of the field as in errors, for example ``headers[1]``."""
    rule: str | None = None
    """Rule of the entry, if it differs from the field's rule."""
    divided: int | None = None
    """In a text with a name and a value: offset of the octet between them."""

    @property
    def frame(self) -> bytes:
        """Octets of the current frame."""
        return self.frames[self.index]

    @property
    def rule_name(self) -> str:
        """Name of the rule that is violated here."""
        return self.rule or (self.field.rule if self.field else self.message.name)

    def enter(self, field: Field | None, path: str) -> None:
        """Move to another field, or to none."""
        self.field, self.path, self.rule, self.divided = field, path, None, None

    def open(self, field: Field | None, path: str) -> None:
        """Move to a field at the start of the frame."""
        self.enter(field, path)
        self.end = len(self.frame)

    def take(self, at: int, octets: int) -> bytes:
        """Return `octets` octets from offset `at` of the frame.

        Raises:
            DecodeError: the run ends earlier.
        """
        if octets > self.end - at:
            self.refuse("length", octets_word(octets), str(self.end - at), at)
        return self.frame[at : at + octets]

    def peek(self, at: int, octets: int) -> bytes:
        """Return `octets` octets from offset `at` of the frame, fewer if the run ends earlier."""
        return self.frame[at : min(at + octets, self.end)]

    def refuse(self, kind: Kind, expected: str, found: str, at: int | None) -> NoReturn:
        """Raise DecodeError for a fault at offset `at` of the frame; None if no octet is at fault."""
        path = self.path
        if self.divided is not None and at is not None:
            path += ".name" if at < self.divided else ".value"
        raise DecodeError(
            protocol=self.layout.protocol, message_name=self.message.name, field=path or None,
            frame=min(self.index, len(self.frames)) if self.frames else None, offset=at, kind=kind,
            expected=expected, found=found, rule=f"{self.layout.edition} {self.rule_name}",
        )  # fmt: skip
