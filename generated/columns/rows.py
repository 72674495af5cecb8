# Written by specwire from generator/support/columns/rows.py. Do not edit; change that file and run `make generate`.
"""Messages to columns one by one, for rows that are no messages or cannot be read together.

The row codec decodes each such row, so its errors and values are the same as in a single decode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa
from specwire.generated.errors import DecodeError
from specwire.generated.messages import Message

Convert = Callable[[Any], Any]
"""Function that converts a value for pyarrow; it is never called with None."""

Column = tuple[str, str] | tuple[str, str, Convert]
"""A column, the attribute that it is read from, and optionally a conversion."""

Attributes = Mapping[str, tuple[Column, ...]]


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
        found[name][-1] = convert[name](message)
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
    return value if convert is None or value is None else convert(value)


def _error(error: DecodeError) -> dict[str, Any]:
    return {
        "message": error.message_name,
        "field": error.field,
        "frame": error.frame,
        "offset": error.offset,
        "kind": error.kind,
        "text": str(error),
    }
