"""Fields of messages and records for schemas, in wire order, with their columns.

The layout says which values a field can have, and whether it can be absent. Its column has the type and
the metadata.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pyarrow as pa

from specwire.generated.layout import Field, Frame, MessageLayout, Present, ProtocolLayout, Record, Rest, Type

PRESENT = "_present"
"""The column of a message or record that has no fields."""

Column = Any
"""Arrow type of a column. The stubs lack the attributes of list and struct types."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Field of a message or record; with `many`, it has the values of several frames."""

    name: str
    """Name in the grammar, as columns and JSON have it."""
    type: Type
    column: Column
    """Type of the column; that of one value with `many`."""
    metadata: dict[str, str]
    """Metadata of the column, such as ``comment`` and ``unit``."""
    many: bool
    absent: bool
    """Can be None: its part or option can be absent, or the run may end before it."""


def layout_of(package: ModuleType) -> ProtocolLayout:
    """Return the layout of a package."""
    from importlib import import_module

    found: ProtocolLayout = import_module(f"{package.__name__}.layout").LAYOUT
    return found


def messages_of(package: ModuleType, chosen: str | None = None) -> list[MessageLayout]:
    """Return the layouts of all messages, or of the class `chosen` only."""
    return [
        message for message in layout_of(package).messages if chosen is None or message.class_name == chosen
    ]


def entries_of(message: MessageLayout, column: Column) -> Iterator[Entry]:
    """Yield the fields of a message with the type `column`."""
    for part in message.parts:
        left_out = not isinstance(part, Rest) and part.presence.kind != "always"
        if isinstance(part, Frame):
            yield from fields_of(part.fields, column, absent=left_out)
        else:
            yield _entry(part.field, column, many=True, absent=left_out)


def fields_of(fields: Iterable[Field], column: Column, *, absent: bool = False) -> Iterator[Entry]:
    """Yield the fields of a run that are not implied; `column` is the type of the record with the run."""
    for field in fields:
        if not field.implied:
            # Without its option, the value of `Present` is False.
            option = field.option is not None and not isinstance(field.type, Present)
            yield _entry(field, column, absent=absent or field.optional or option)


def _entry(field: Field, column: Column, *, many: bool = False, absent: bool) -> Entry:
    own = column.field(field.name)
    type = own.type.value_type if many else own.type
    return Entry(field.name, field.type, type, metadata_of(own), many, absent)


def metadata_of(column: pa.Field[Any]) -> dict[str, str]:
    """Return the metadata of a column as text."""
    return {key.decode(): value.decode() for key, value in (column.metadata or {}).items()}


def option_name(package: ModuleType, option: Record) -> str:
    """Return the name of a record of a union, which is that of its column."""
    name: str = getattr(package, option.class_name).NAME
    return name
