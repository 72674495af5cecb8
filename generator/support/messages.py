"""Base classes of all generated messages and records, for both builds of a package.

A package has two builds: Python on msgspec, and C. `Record` and `Message` define their common
interface; the functions here make both builds behave alike. Messages of either build are equal,
have the same hash and print alike. They are pickled under one name, that of the package, and
unpickling creates the class of the build that is active there.

With ``decode(frames, copy=False)``, octets may be views on frames that the program still holds.
Printing, hashing and pickling use the octets of the view.

A peer may send records that contain each other up to a maximum depth. To stay within the recursion
limit of Python, `_plain` and `_copied` call themselves through `map` only.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from importlib import import_module
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, Self

import msgspec

from specwire.generated.field_docs import FieldDocs


class Record:
    """Run of fields: immutable, comparable, hashable, picklable. Fields are in wire order.

    `NAME` is the name in the grammar. `TAGGED` is true for a record that is one of several
    alternatives.
    """

    __slots__ = ()

    NAME: ClassVar[str] = ""
    TAGGED: ClassVar[bool] = False

    if TYPE_CHECKING:
        __match_args__: ClassVar[tuple[str, ...]]

    def replace(self, **changes: Any) -> Self:
        """Return a copy with `changes` applied.

        Raises:
            TypeError: a name in `changes` is not a field.
        """
        return type(self)(**{**dict(self._items()), **changes})

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, in wire order.

        Nested records become dictionaries as well. If a record is one of several alternatives, its
        dictionary has the name in the grammar as ``_type``. Other values are unchanged.
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
        copied: Self = _copied(self, memo)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        kind = type(self)
        return restore, (kind.__module__, kind.__qualname__, tuple(map(_owned, self._values())))

    def _values(self) -> tuple[Any, ...]:
        """Return the values of the fields in wire order."""
        return tuple(getattr(self, name) for name in type(self).__match_args__)

    def _items(self) -> Iterator[tuple[str, Any]]:
        """Yield names and values in wire order."""
        return zip(type(self).__match_args__, self._values(), strict=True)


class Message(Record):
    """Record that is sent as one message, such as ``ICANHAZ-OK``.

    `PROTOCOL` is the name of the package.
    """

    __slots__ = ()

    PROTOCOL: ClassVar[str] = ""

    def encode(self, *, strict: bool = False) -> list[bytes]:
        """Return the ZeroMQ frames of the message.

        Args:
            strict: follow the specification to the letter instead of what deployed peers accept.

        Raises:
            EncodeError: the value of a field cannot be encoded.
        """
        raise TypeError(f"{type(self).__name__} is not a message of any protocol")


def hash_values(name: str, values: tuple[Any, ...]) -> int:
    """Return the hash of a record's `name` in the grammar and its values; both builds use it.

    Raises:
        TypeError: a value cannot be hashed, such as a list in place of a tuple.
    """
    try:
        return hash((name, *values))
    except (TypeError, ValueError):
        # The object behind a view may be unhashable; its octets are not.
        return hash((name, *map(_owned, values)))


def restore(package: str, class_name: str, values: tuple[Any, ...]) -> Record:
    """Return an unpickled message or record, as a class of the build of `package` that is active here.

    Raises:
        ImportError, AttributeError: the package does not exist, or no longer has the class.
        TypeError: the fields of the class have changed.
    """
    class_: type[Record] = getattr(import_module(package), class_name)
    names = class_.__match_args__
    if len(names) != len(values):
        raise TypeError(
            f"{class_name} has {len(names)} fields, and {len(values)} were pickled: another edition"
        )
    return class_(**dict(zip(names, values, strict=True)))


class KeywordOnly(msgspec.StructMeta):
    """Metaclass of classes that accept keywords only; gives them positional pattern matching.

    msgspec sets no ``__match_args__`` for them. On Python 3.11, creating an instance of such a
    class takes 90 ns longer.
    """

    if not TYPE_CHECKING:  # The stubs have a property there, which a class sets itself.

        @property
        def __match_args__(cls) -> tuple[str, ...]:
            return cls.__struct_fields__


class PureRecord(Record, msgspec.Struct, frozen=True, gc=False):
    """Record of the Python build."""

    if TYPE_CHECKING:
        __match_args__: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        """Name the class after the package that exports it, and attach the docstrings of its fields."""
        home = cls.__module__
        package, _, module = home.rpartition(".")
        if module == "codec" and "NAME" in vars(cls):
            cls.__module__ = package
            type.__setattr__(cls, "__slots__", FieldDocs(home, cls.__name__))

    def __repr__(self) -> str:
        text = msgspec.Struct.__repr__(self)
        return super().__repr__() if "<memory at " in text else text

    def replace(self, **changes: Any) -> Self:
        """Return a copy with `changes` applied.

        Raises:
            TypeError: a name in `changes` is not a field.
        """
        return msgspec.structs.replace(self, **changes)

    def _values(self) -> tuple[Any, ...]:
        return msgspec.structs.astuple(self)


class PureMessage(Message, PureRecord, frozen=True, gc=False):
    """Message of the Python build."""

    if TYPE_CHECKING:
        __match_args__: ClassVar[tuple[str, ...]]


def _owned(value: Any) -> Any:
    """Return a value with views replaced by copies of their octets."""
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, tuple):
        return tuple(map(_owned, value))
    return value


def _plain(value: Any) -> Any:
    """Return the value of a field with its records as dictionaries."""
    if isinstance(value, Record):
        plain = dict(zip(type(value).__match_args__, map(_plain, value._values()), strict=True))
        return {"_type": value.NAME} | plain if value.TAGGED else plain
    if isinstance(value, tuple) and value and isinstance(value[0], Record | tuple):
        return tuple(map(_plain, value))
    return value


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """Return a deep copy of a value; a view becomes its octets."""
    if isinstance(value, Record):
        copies = map(_copied, value._values(), repeat(memo))
        return type(value)(**dict(zip(type(value).__match_args__, copies, strict=True)))
    if isinstance(value, tuple):
        return tuple(map(_copied, value, repeat(memo)))
    return deepcopy(_owned(value), memo)
