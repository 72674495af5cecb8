"""The fields of a message as schemas have them: in wire order, without what is implied, and when they can be absent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from specwire.generated.layout import Field, Frame, MessageLayout, ProtocolLayout, Record, Rest, Type

PRESENT = "_present"
"""The column of a message or record that has no fields."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A field of a message or record; `many`: it holds the values of several frames."""

    name: str
    """The grammar's, as columns and JSON have it."""
    type: Type
    many: bool
    absent: bool
    """It can be None: the part that holds it can be left out, or the run may end before it."""


def layout_of(package: ModuleType) -> ProtocolLayout:
    """Return the layout of a package."""
    from importlib import import_module

    found: ProtocolLayout = import_module(f"{package.__name__}.layout").LAYOUT
    return found


def messages_of(package: ModuleType, chosen: str | None = None) -> list[MessageLayout]:
    """Return the layouts of the messages, of the class `chosen` alone where one is named."""
    return [
        message for message in layout_of(package).messages if chosen is None or message.class_name == chosen
    ]


def entries_of(message: MessageLayout) -> Iterator[Entry]:
    """Yield the fields of a message."""
    for part in message.parts:
        left_out = not isinstance(part, Rest) and part.presence.kind != "always"
        if isinstance(part, Frame):
            yield from fields_of(part.fields, absent=left_out)
        else:
            yield Entry(part.field.name, part.field.type, many=True, absent=left_out)


def fields_of(fields: Iterable[Field], *, absent: bool = False) -> Iterator[Entry]:
    """Yield the fields of a run that are not implied."""
    for field in fields:
        if not field.implied:
            absent_too = absent or field.optional
            yield Entry(field.name, field.type, many=False, absent=absent_too)


def option_name(package: ModuleType, option: Record) -> str:
    """Return what one of several records is called."""
    name: str = getattr(package, option.class_name).NAME
    return name


class Words:
    """What the specification says about messages and fields, from the metadata of a package's columns."""

    def __init__(self, package: ModuleType) -> None:
        self._schema = package.columns.SCHEMA

    def of_message(self, class_name: str) -> Mapping[str, str]:
        """Return what is said about a message."""
        return _decoded(self._schema.field(class_name).metadata)

    def of_field(self, class_name: str, name: str) -> Mapping[str, str]:
        """Return what is said about a field of a message."""
        inside: Any = self._schema.field(class_name).type
        index = inside.get_field_index(name)
        return _decoded(inside.field(index).metadata) if index >= 0 else {}


def _decoded(metadata: Mapping[bytes, bytes] | None) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in (metadata or {}).items()}
