# Written by specwire from generator/support/messages.py. Do not edit; change that file and run `make generate`.
"""What every generated message can do, whatever its protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec


class KeywordOnly(msgspec.StructMeta):
    """The type of classes that take keywords only: msgspec gives them no order for patterns, we do."""

    if not TYPE_CHECKING:  # The stubs have an attribute there, which a class sets for itself.

        @property
        def __match_args__(cls) -> tuple[str, ...]:
            return cls.__struct_fields__


class Record(msgspec.Struct, frozen=True, gc=False):
    """A run of fields: immutable, comparable, hashable, picklable; fields in wire order.

    `NAME` is the grammar's name. Of a record that is one of several in its place, `TAGGED` is true.
    """

    NAME: ClassVar[str] = ""
    TAGGED: ClassVar[bool] = False

    def replace(self, **changes: Any) -> Self:
        """Return a copy with `changes` made.

        Raises:
            TypeError: a name in `changes` is not a field.
        """
        return msgspec.structs.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, in wire order; other values than records are as in the message.

        Records inside are dictionaries too; with ``_type``, the grammar's name, where there is a choice.
        """
        return {name: _plain(value) for name, value in msgspec.structs.asdict(self).items()}


class Message(Record, frozen=True, gc=False):
    """A message: a record that goes over the wire by itself, such as ``ICANHAZ-OK``.

    `PROTOCOL` is the package's name.
    """

    PROTOCOL: ClassVar[str] = ""

    def encode(self, *, strict: bool = False) -> list[bytes]:
        """Return the ZeroMQ frames of the message.

        Args:
            strict: write the letter of the specification instead of what deployed peers read.

        Raises:
            EncodeError: a field's value cannot be put on the wire.
        """
        raise TypeError(f"{type(self).__name__} is not a message of any protocol")


def _plain(value: Any) -> Any:
    """A value of a field with its records as dictionaries."""
    if isinstance(value, Record):
        return {"_type": value.NAME} | value.to_dict() if value.TAGGED else value.to_dict()
    if isinstance(value, tuple) and value and isinstance(value[0], Record | tuple):
        return tuple(map(_plain, value))
    return value
