# Written by specwire from generator/support/errors.py. Do not edit; change that file and run `make generate`.
"""What decoding, encoding and watching a dialog can find wrong, for every generated package.

`DecodeError` and `EncodeError` say where: the message, the field's path, the frame (counted from 0),
and the octet in that frame (from 0). A `Violation` is a value, not an exception: the finding of a
dialog monitor.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Kind = Literal["constant", "tag", "length", "count", "text", "range", "frames", "trailing", "limit"]


class CodecError(ValueError):
    """A message that cannot be read or written; the base of `DecodeError` and `EncodeError`.

    Attributes:
        protocol: name of the package, such as ``filemq``.
        message_name: the grammar's name of the message, None where the octets name none.
        field: path of the field, such as ``headers[1].value``, None where no field is meant.
        frame: index of the ZeroMQ frame, from 0; None where no frame is meant.
        offset: octets from the start of that frame to the fault; None where no octet is meant.
        kind: what is wrong, one of `Kind`.
        expected: what should be there, in words.
        found: what is there, in words.
        rule: the specification's edition and rule, such as ``FILEMQ v2 credit``.
    """

    def __init__(
        self,
        *,
        protocol: str,
        message_name: str | None,
        field: str | None,
        frame: int | None,
        offset: int | None,
        kind: Kind,
        expected: str,
        found: str,
        rule: str,
    ) -> None:
        super().__init__(protocol, message_name, field, frame, offset, kind, expected, found, rule)
        self.protocol = protocol
        self.message_name = message_name
        self.field = field
        self.frame = frame
        self.offset = offset
        self.kind: Kind = kind
        self.expected = expected
        self.found = found
        self.rule = rule

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by keyword, so that an error crosses process borders (Spark's workers raise them)."""
        kept = dict(self.__dict__)
        # What others hang on an exception, such as notes, is no argument of ours.
        return _rebuild, (type(self), {name: kept.pop(name) for name in _ATTRIBUTES}), kept

    def __str__(self) -> str:
        path = ".".join(part for part in (self.message_name or self.protocol, self.field) if part)
        place = f" in frame {self.frame}" if self.frame else ""
        octet = f" at octet {self.offset}" if self.offset is not None else ""
        fault = f"expected {self.expected}, found {self.found}"
        if self.kind == "text" and self.expected == "UTF-8":
            fault = f"{self.found} is not UTF-8"
        return f"{path}{octet}{place}: {fault} [{self.rule}]"

    def attributes(self) -> dict[str, Any]:
        """Return what the error says by name, as the constructor takes it."""
        return {name: getattr(self, name) for name in _ATTRIBUTES}


_ATTRIBUTES = (
    "protocol",
    "message_name",
    "field",
    "frame",
    "offset",
    "kind",
    "expected",
    "found",
    "rule",
)


def _rebuild(cls: type[CodecError], attributes: dict[str, Any]) -> CodecError:
    return cls(**attributes)


class DecodeError(CodecError):
    """Frames that are not a message of the protocol."""


class EncodeError(CodecError):
    """A message whose field values cannot be put on the wire.

    `row` is its number in the columns that it came from, from 0; None for a message by itself.
    """

    row: int | None = None

    def __str__(self) -> str:
        return super().__str__() if self.row is None else f"row {self.row}: {super().__str__()}"


class Violation(msgspec.Struct, frozen=True):
    """A message that the dialog does not allow where it came.

    Attributes:
        role: letter of the side that sent it and so is at fault.
        message: class name of the message.
        state: name of the state the dialog was in.
        expected: the messages the dialog allows there, each as ``ROLE:Message``.
        rule: name of the dialog rule.
    """

    role: str
    message: str
    state: str
    expected: tuple[str, ...]
    rule: str

    def __str__(self) -> str:
        allowed = ", ".join(self.expected) or "nothing"
        return f"{self.role}:{self.message} in state {self.state}: expected {allowed} [{self.rule}]"
