# Written by specwire from generator/support/columns/unfit.py. Do not edit; change that file and run `make generate`.
"""Encoding of doubtful rows one by one: the row codec writes them or raises the error.

The error of a row is the error of its message, with the row's number added.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, NoReturn

import pyarrow as pa
from specwire.generated.columns.intake import PAIR, field_of, plain
from specwire.generated.columns.pieces import pieces_of
from specwire.generated.columns.writing_parts import announced, flags_field
from specwire.generated.errors import EncodeError, Kind
from specwire.generated.layout import (
    Field,
    Frame,
    Integer,
    ListOf,
    MessageLayout,
    Octets,
    Pairs,
    ProtocolLayout,
    Record,
    Type,
    Union,
)


def encode_row(
    layout: ProtocolLayout, entry: MessageLayout, home: ModuleType, row: pa.Array[Any], strict: bool
) -> list[bytes]:
    """Return the frames of one message, the only element of `row`; `home` has the classes.

    Raises:
        EncodeError: the message cannot be encoded.
    """
    fields = [
        (one, not isinstance(part, Frame))
        for part in entry.parts
        for one in (part.fields if isinstance(part, Frame) else (part.field,))
        if not one.implied
    ]
    values = {one.attribute: _column(one, many, row, home) for one, many in fields}
    flags = flags_field(entry)
    if flags is not None and layout.announcing and isinstance(values[flags.attribute], int):
        wire = values[flags.attribute]
        said, derived = wire & layout.announcing, int(announced(entry, row)[0])
        if 0 <= wire <= 0xFF and said != derived:
            refuse(
                layout, entry.name, flags.name, "range", f"0x{derived:02x}: the bits of the parts that are there",
                f"0x{said:02x}", rule=flags.rule,
            )  # fmt: skip
        values[flags.attribute] = wire & ~layout.announcing
    message = vars(home)[entry.class_name](**values)
    frames: list[bytes] = message.encode(strict=strict)
    return frames


def refuse(
    layout: ProtocolLayout,
    name: str | None,
    field: str | None,
    kind: Kind,
    expected: str,
    found: str,
    *,
    rule: str = "columns",
    row: int | None = None,
) -> NoReturn:
    """Raise EncodeError for a fault that only columns can have."""
    error = EncodeError(
        protocol=layout.protocol, message_name=name, field=field, frame=None, offset=None, kind=kind,
        expected=expected, found=found, rule=f"{layout.edition} {rule}",
    )  # fmt: skip
    error.row = row
    raise error


def _column(field: Field, many: bool, owner: pa.Array[Any], home: ModuleType) -> Any:
    """Return the value of a field for the constructor of its class; with `many`, a tuple of frames."""
    array = plain(field_of(owner, field.name))
    if not many or array.null_count:
        return _value(field.type, array, home)
    return tuple(_value(field.type, item, home) for item in _items(array))


def _value(type: Type, array: pa.Array[Any], home: ModuleType) -> Any:
    """Return the value of the only element of an array."""
    array = plain(array)
    if array.null_count:
        return None
    match type:
        case Integer():
            return int(array[0].as_py())
        case Octets():
            return pieces_of(array).octets.tobytes()
        case ListOf(element=element):
            return tuple(_value(element, item, home) for item in _items(array))
        case Pairs(value=value):
            inside = value if isinstance(value, Octets) else type.name
            return tuple(_pair(type.name, inside, item, home) for item in _items(array))
        case Record(class_name=class_name, fields=fields):
            valued = [field for field in fields if not field.implied]
            values = {field.attribute: _column(field, False, array, home) for field in valued}
            return vars(home)[class_name](**values)
        case Union(options=options):
            return _option(options, array, home)
    # Octets that are not UTF-8 become text that UTF-8 cannot encode, which the row codec refuses.
    return pieces_of(array).octets.tobytes().decode("utf-8", "surrogateescape")


def _items(array: pa.Array[Any]) -> list[pa.Array[Any]]:
    """Return the elements of the only list in an array, each as an array."""
    lists: Any = array
    inside = plain(lists.flatten())
    return [inside.slice(index, 1) for index in range(len(inside))]


def _pair(name: Type, value: Type, item: pa.Array[Any], home: ModuleType) -> Any:
    if item.null_count:
        return None
    return tuple(
        _value(type, field_of(item, part), home) for type, part in zip((name, value), PAIR, strict=True)
    )


def _option(options: tuple[Record, ...], array: pa.Array[Any], home: ModuleType) -> Any:
    """Return the only record that is present; several or none are returned as they are and do not fit."""
    found = {
        option.class_name: _value(option, field_of(array, vars(home)[option.class_name].NAME), home)
        for option in options
    }
    there = [value for value in found.values() if value is not None]
    return there[0] if len(there) == 1 else tuple(there) or None
