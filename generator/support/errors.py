"""Errors and findings of decoding, encoding and dialog checks, for every generated package.

`DecodeError` and `EncodeError` report the position of a fault: the message, the path of the field,
the frame, and the octet in that frame. Frames and octets are counted from 0. A `Violation` is a
value, not an exception: a session returns it for a message that the dialog does not allow.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Kind = Literal[
    "constant", "tag", "length", "count", "text", "range", "frames", "trailing", "limit", "checksum"
]  # fmt: skip


class CodecError(ValueError):
    """Message that cannot be decoded or encoded; the base of `DecodeError` and `EncodeError`.

    Attributes:
        protocol: name of the package, such as ``filemq``.
        message_name: name of the message in the grammar; None if the octets do not identify one.
        field: path of the field, such as ``headers[1].value``; None if no field is at fault.
        frame: index of the ZeroMQ frame, from 0; None if no frame is at fault.
        offset: octets from the start of that frame to the fault; None if no octet is at fault.
        kind: category of the fault, one of `Kind`.
        expected: what should be there, in words.
        found: what is there, in words.
        rule: edition and rule of the specification, such as ``FILEMQ v2 credit``.
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
        """Pickle by keyword, so that the error can cross process boundaries, as in Spark workers."""
        kept = dict(self.__dict__)
        # Skip attributes added by others, such as notes: the constructor does not accept them.
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
        """Return the attributes of the error as keyword arguments of the constructor."""
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
    """Message with a field value that cannot be encoded.

    Attributes:
        row: row number in the encoded columns, from 0; None for a single message.
    """

    row: int | None = None

    def __str__(self) -> str:
        return super().__str__() if self.row is None else f"row {self.row}: {super().__str__()}"


class Violation(msgspec.Struct, frozen=True):
    """Message that the dialog does not allow in its current state.

    Attributes:
        role: letter of the side that sent the message and is at fault.
        message: class name of the message.
        state: name of the dialog's state at that moment.
        expected: messages that the dialog allows in that state, each as ``ROLE:Message``.
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
