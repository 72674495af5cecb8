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


class Message(msgspec.Struct, frozen=True, gc=False):
    """A message: immutable, comparable, hashable, picklable; fields in wire order.

    `NAME` is the grammar's name, such as ``ICANHAZ-OK``; `PROTOCOL` the package's name.
    """

    NAME: ClassVar[str] = ""
    PROTOCOL: ClassVar[str] = ""

    def encode(self, *, strict: bool = False) -> list[bytes]:
        """Return the ZeroMQ frames of the message.

        Args:
            strict: write the letter of the specification instead of what deployed peers read.

        Raises:
            EncodeError: a field's value cannot be put on the wire.
        """
        raise TypeError(f"{type(self).__name__} is not a message of any protocol")

    def replace(self, **changes: Any) -> Self:
        """Return a copy with `changes` made.

        Raises:
            TypeError: a name in `changes` is not a field.
        """
        return msgspec.structs.replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, in wire order; values are as in the message."""
        return msgspec.structs.asdict(self)
