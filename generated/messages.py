# Written by specwire from generator/support/messages.py. Do not edit; change that file and run `make generate`.
"""What every generated message can do, whatever its protocol and whichever build made it.

A package exists in two builds: Python over msgspec, and C. Their classes have nothing in common but what is
here: `Record` and `Message`, which say what is promised, and the functions that make the promises hold across
builds. So messages of either build are equal, hash alike, print alike, and are pickled under one name, the
package's; whoever reads the pickle gets the class of the build that is active there.

Octets may be views on a frame that the program still holds (``decode(frames, copy=False)``). A message shows,
hashes and pickles them as the octets that they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec
from specwire.generated.field_docs import FieldDocs


class Record:
    """A run of fields: immutable, comparable, hashable, picklable; fields in wire order.

    `NAME` is the grammar's name. Of a record that is one of several in its place, `TAGGED` is true.
    """

    __slots__ = ()

    NAME: ClassVar[str] = ""
    TAGGED: ClassVar[bool] = False

    if TYPE_CHECKING:
        __match_args__: ClassVar[tuple[str, ...]]

    def replace(self, **changes: Any) -> Self:
        """Return a copy with `changes` made.

        Raises:
            TypeError: a name in `changes` is not a field.
        """
        return type(self)(**{**dict(self._items()), **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, in wire order; other values than records are as in the message.

        Records inside are dictionaries too; with ``_type``, the grammar's name, where there is a choice.
        """
        return {name: _plain(value) for name, value in self._items()}

    def __replace__(self, **changes: Any) -> Self:
        return self.replace(**changes)

    def __hash__(self) -> int:
        return hash_values(self.NAME, self._values())

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={_owned(value)!r}" for name, value in self._items())
        return f"{type(self).__name__}({values})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, _owned(value)) for name, value in self._items()]

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(**{name: deepcopy(_owned(value), memo) for name, value in self._items()})

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self)
        return restore, (kind.__module__, kind.__qualname__, tuple(map(_owned, self._values())))

    def _values(self) -> tuple[Any, ...]:
        """The values of the fields in wire order."""
        return tuple(getattr(self, name) for name in type(self).__match_args__)

    def _items(self) -> Iterator[tuple[str, Any]]:
        """Names and values in wire order."""
        return zip(type(self).__match_args__, self._values(), strict=True)


class Message(Record):
    """A message: a record that goes over the wire by itself, such as ``ICANHAZ-OK``.

    `PROTOCOL` is the package's name.
    """

    __slots__ = ()

    PROTOCOL: ClassVar[str] = ""

    def encode(self, *, strict: bool = False) -> list[bytes]:
        """Return the ZeroMQ frames of the message.

        Args:
            strict: write the letter of the specification instead of what deployed peers read.

        Raises:
            EncodeError: a field's value cannot be put on the wire.
        """
        raise TypeError(f"{type(self).__name__} is not a message of any protocol")


def hash_values(name: str, values: tuple[Any, ...]) -> int:
    """Return the hash of a record with the grammar's `name`: of its name and its values, the same in both builds.

    Raises:
        TypeError: a value cannot be hashed, such as a list that stands where a tuple belongs.
    """
    try:
        return hash((name, *values))
    except (TypeError, ValueError):
        # What a view looks at may refuse to be hashed; its octets do not.
        return hash((name, *map(_owned, values)))


def restore(package: str, class_name: str, values: tuple[Any, ...]) -> Record:
    """Return the message or record that was pickled, of the build of `package` that is active here.

    Raises:
        ImportError, AttributeError: there is no such package, or it has lost the class.
        TypeError: the class has other fields now.
    """
    class_: type[Record] = getattr(import_module(package), class_name)
    names = class_.__match_args__
    if len(names) != len(values):
        raise TypeError(
            f"{class_name} has {len(names)} fields, and {len(values)} were pickled: another edition"
        )
    return class_(**dict(zip(names, values, strict=True)))


class KeywordOnly(msgspec.StructMeta):
    """The type of classes that take keywords only: msgspec gives them no order for patterns, we do.

    Python 3.11 calls classes of a type like this one on a longer way: their messages take 90 ns more to make.
    """

    if not TYPE_CHECKING:  # The stubs have an attribute there, which a class sets for itself.

        @property
        def __match_args__(cls) -> tuple[str, ...]:
            return cls.__struct_fields__


class PureRecord(Record, msgspec.Struct, frozen=True, gc=False):
    """A record of the build in Python."""

    if TYPE_CHECKING:
        __match_args__: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        """Give a class of a package's codec the name under which the package exports it, and its fields docs."""
        home = cls.__module__
        package, _, module = home.rpartition(".")
        if module == "codec" and "NAME" in vars(cls):
            cls.__module__ = package
            type.__setattr__(cls, "__slots__", FieldDocs(home, cls.__name__))

    def __repr__(self) -> str:
        text = msgspec.Struct.__repr__(self)
        return super().__repr__() if "<memory at " in text else text

    def replace(self, **changes: Any) -> Self:
        """Return a copy with `changes` made.

        Raises:
            TypeError: a name in `changes` is not a field.
        """
        return msgspec.structs.replace(self, **changes)

    def _values(self) -> tuple[Any, ...]:
        return msgspec.structs.astuple(self)


class PureMessage(Message, PureRecord, frozen=True, gc=False):
    """A message of the build in Python."""

    if TYPE_CHECKING:
        __match_args__: ClassVar[tuple[str, ...]]


def _owned(value: Any) -> Any:
    """A value with octets of its own where it has views on those of others."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, tuple):
        return tuple(map(_owned, value))
    return value


def _plain(value: Any) -> Any:
    """A value of a field with its records as dictionaries."""
    if isinstance(value, Record):
        return {"_type": value.NAME} | value.to_dict() if value.TAGGED else value.to_dict()
    if isinstance(value, tuple) and value and isinstance(value[0], Record | tuple):
        return tuple(map(_plain, value))
    return value
