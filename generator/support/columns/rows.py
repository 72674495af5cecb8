"""Messages to columns and back one by one, for rows that cannot be read or written together.

The row codec decodes and encodes each such row, so errors and values are those of a single message;
in an encoding error, the number of the row is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from types import ModuleType
from typing import Any, NoReturn
from uuid import UUID

import pyarrow as pa

from specwire.generated.columns.assembly import announced
from specwire.generated.columns.enclosed import enclosed_octets, read_value
from specwire.generated.columns.intake import PAIR, field_of, plain
from specwire.generated.columns.pieces import pieces_of
from specwire.generated.columns.slots import Enclosed, Value, values_of, visible
from specwire.generated.columns.writer import Scope
from specwire.generated.errors import DecodeError, EncodeError, Kind
from specwire.generated.layout import Boolean, Float, ProtocolLayout
from specwire.generated.messages import Message, Record
from specwire.generated.named_plan import NamedMessage
from specwire.generated.plan import (
    ITEM,
    Bit,
    Choose,
    Extent,
    Loop,
    Nest,
    Number,
    Optional,
    TakeOctets,
    TakeText,
)

Convert = Callable[[Any], Any]
"""Function that converts a value for pyarrow; it is never called with None."""

Column = tuple[str, str] | tuple[str, str, Convert]
"""A column, the attribute that it is read from, and optionally a conversion."""

Attributes = Mapping[str, tuple[Column, ...]]

_TEXT = TakeText(ITEM, Extent("rest"))


def pairs(value: Any) -> list[dict[str, Any]]:
    """Return the pairs of a dictionary as structs."""
    return [{"name": name, "value": content} for name, content in value]


def each(convert: Convert) -> Convert:
    """Return a function that converts every item of a sequence."""
    return lambda value: [convert(item) for item in value]


def record(*columns: Column) -> Convert:
    """Return a function that converts a record or message to a struct."""
    return lambda value: {
        column: _value(value, attribute, *convert) for column, attribute, *convert in columns
    }


def option(**records: tuple[str, Convert]) -> Convert:
    """Return a function that converts one of several records; for each class, its column and conversion."""

    def convert(value: Any) -> dict[str, Any]:
        name, inside = records[type(value).__name__]
        return {name: inside(value)}

    return convert


def decode_rows(
    rows: Sequence[Sequence[bytes | None] | None],
    schema: pa.Schema,
    decode: Callable[..., Message],
    attributes: Attributes,
    layout: ProtocolLayout,
    senders: Sequence[str | None] | None = None,
) -> pa.RecordBatch:
    """Return messages decoded one by one as a batch of `schema`.

    `senders` is None if `decode` does not accept a sender.
    """
    known = repeat({}) if senders is None else ({"sender": sender} for sender in senders)
    convert = {name: record(*columns) for name, columns in attributes.items()}
    found: dict[str, list[Any]] = {name: [] for name in schema.names}
    for frames, sent in zip(rows, known, strict=False):
        for values in found.values():
            values.append(None)
        try:
            message = _decode(decode, frames or (), sent)
        except DecodeError as error:
            found["_error"][-1] = _error(error)
            found["_frames"][-1] = frames
            continue
        name = type(message).__name__
        found["_message"][-1] = name
        row = convert[name](message)
        if layout.max_depth and frames:
            whole = [frame for frame in frames if frame is not None]
            row = _with_octets(row, enclosed_octets(layout, whole, **sent))
        found[name][-1] = row
    return pa.record_batch([pa.array(found[f.name], f.type) for f in schema], schema=schema)


def _decode(
    decode: Callable[..., Message], frames: Sequence[bytes | None], sent: Mapping[str, str | None]
) -> Message:
    """Decode the frames of a row; a null frame is unknown, which differs from empty."""
    known = [frame for frame in frames if frame is not None]
    if len(known) == len(frames):
        return decode(known, **sent)
    raise DecodeError(
        protocol="", message_name=None, field="frames", frame=frames.index(None), offset=None, kind="frames",
        expected="octets", found="null", rule="columns",
    )  # fmt: skip


def _value(owner: object, attribute: str, convert: Convert | None = None) -> Any:
    """Return an attribute's value for pyarrow; the column of a class without fields is always true."""
    if attribute == "_present":
        return True
    value = getattr(owner, attribute)
    return _plain(value) if convert is None or value is None else convert(value)


def _plain(value: Any) -> Any:
    """Return a value for pyarrow, which takes UUIDs as texts."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, UUID) else value


def _with_octets(value: Any, octets: Iterator[bytes]) -> Any:
    """Return a value for pyarrow with the next `octets` in place of each record without columns."""
    match value:
        case Record():
            return next(octets)
        case dict():
            return {name: _with_octets(inside, octets) for name, inside in value.items()}
        case list():
            return [_with_octets(item, octets) for item in value]
    return value


def _error(error: DecodeError) -> dict[str, Any]:
    return {
        "message": error.message_name,
        "field": error.field,
        "frame": error.frame,
        "offset": error.offset,
        "kind": error.kind,
        "text": str(error),
    }


def encode_row(
    layout: ProtocolLayout, message: NamedMessage, home: ModuleType, row: pa.Array[Any], scope: Scope
) -> list[bytes]:
    """Return the frames of one message, the only element of `row`; `home` has the classes.

    Raises:
        EncodeError: the message cannot be encoded.
    """
    class_name, maker = message.layout.class_name, _Maker(home, scope)
    ops = (op for part in message.parts for op in values_of(part))
    try:
        values = maker.fields(class_name, ops, row, "")
    except DecodeError as error:
        refuse(layout, message.layout.name, error.field, error.kind, error.expected, error.found)
    slot = message.flags[1].slot if message.flags and layout.announcing else ""
    if slot and isinstance(values[slot], int):
        wire, field = values[slot], message.fields[slot]
        said, derived = wire & layout.announcing, announced(message, row, scope)
        if 0 <= wire <= 0xFF and said != derived:
            expected = f"0x{derived:02x}: the bits of the parts that are there"
            name = message.layout.name
            refuse(layout, name, field.name, "range", expected, f"0x{said:02x}", rule=field.rule)
        values[slot] = wire & ~layout.announcing
    frames: list[bytes] = vars(home)[class_name](**values).encode(strict=scope.strict)
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


class _Maker:
    """Maker of the values of messages from arrays of one element."""

    def __init__(self, home: ModuleType, scope: Scope) -> None:
        self.home = home
        self.scope = scope

    def fields(self, owner: str, ops: Iterable[Value], array: pa.Array[Any], prefix: str) -> dict[str, Any]:
        """Return the values for the constructor of the class `owner`; `prefix` begins their paths."""
        names = {op.slot: (op, self.scope.fields[owner][op.slot].name) for op in ops}
        return {
            slot: self.value(op, field_of(array, name), prefix + name) for slot, (op, name) in names.items()
        }

    def value(self, op: Value, array: pa.Array[Any], path: str) -> Any:
        """Return the value of the only element of an array.

        Raises:
            DecodeError: the octets of an enclosed value are not one.
        """
        array = plain(array)
        if array.null_count:
            return None
        match op:
            case Number(coding=Float() | Boolean()) | Bit(boolean=True) | Optional():
                return array[0].as_py()
            case Number() | Bit():
                return int(array[0].as_py())
            case TakeOctets(uuid=None):
                return pieces_of(array).octets.tobytes()
            case TakeOctets():
                return _uuid(array[0].as_py())
            case Loop(body=body, pairs=""):
                (item,) = visible(body)
                return tuple(
                    self.value(item, one, f"{path}[{number}]") for number, one in enumerate(_items(array))
                )
            case Loop():
                return tuple(self._pair(op, one) for one in _items(array))
            case Nest(record=record):
                inside = visible(self.scope.records.bodies[record])
                return vars(self.home)[record](**self.fields(record, inside, array, f"{path}."))
            case Choose():
                return self._option(op, array, path)
            case Enclosed():
                octets = pieces_of(array).octets.tobytes()
                return read_value(self.scope.plan, op, octets, self.home, path)
        # Octets that are not UTF-8 become text that UTF-8 cannot encode, which the row codec refuses.
        return pieces_of(array).octets.tobytes().decode("utf-8", "surrogateescape")

    def _pair(self, op: Loop, item: pa.Array[Any]) -> Any:
        if item.null_count:
            return None
        sides = tuple(visible(op.body)) if op.pairs == "both" else (_TEXT, _TEXT)
        return tuple(
            self.value(side, field_of(item, name), "")
            for side, name in zip(sides, PAIR.values(), strict=True)
        )

    def _option(self, op: Choose, array: pa.Array[Any], path: str) -> Any:
        """Return the only record that is present; several or none are returned as they are and do not fit."""
        records = [
            self.value(Nest(op.slot, record), field_of(array, self.scope.options[record]), path)
            for _, record in op.options
        ]
        there = [record for record in records if record is not None]
        return there[0] if len(there) == 1 else tuple(there) or None


def _uuid(text: str) -> UUID | str:
    """Return a text as a UUID; a text that is none as it is, which the row codec refuses."""
    try:
        return UUID(text)
    except ValueError:
        return text


def _items(array: pa.Array[Any]) -> list[pa.Array[Any]]:
    """Return the elements of the only list in an array, each as an array."""
    lists: Any = array
    inside = plain(lists.flatten())
    return [inside.slice(index, 1) for index in range(len(inside))]
