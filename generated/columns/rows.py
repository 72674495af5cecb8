# Written by specwire from generator/support/columns/rows.py. Do not edit; change that file and run `make generate`.
"""Messages to columns one by one, for the rows that are no messages or are not read together.

The row codec decides what such a row is, so errors and values are the same by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any

import pyarrow as pa
from specwire.generated.errors import DecodeError
from specwire.generated.messages import Message

Convert = Callable[[Any], Any]
"""Makes of a value what pyarrow takes; it is never given None."""

Column = tuple[str, str] | tuple[str, str, Convert]
"""A column, the attribute that it is read from, and what makes a row of the value where that takes something."""

Attributes = Mapping[str, tuple[Column, ...]]


def pairs(value: Any) -> list[dict[str, Any]]:
    """Return a dictionary's pairs as structs."""
    return [{"name": name, "value": content} for name, content in value]


def each(convert: Convert) -> Convert:
    """Return what converts every item of a sequence."""
    return lambda value: [convert(item) for item in value]


def record(*columns: Column) -> Convert:
    """Return what makes a struct of a record or a message."""
    return lambda value: {
        column: _value(value, attribute, *convert) for column, attribute, *convert in columns
    }


def option(**records: tuple[str, Convert]) -> Convert:
    """Return what makes a struct of one of several records: for each class, its column and its conversion."""

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
    """Return messages as a batch of `schema`, decoded one by one; `senders` None says that `decode` takes none."""
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
    """Decode a row's frames; a null among them is not known, which is another thing than empty."""
    known = [frame for frame in frames if frame is not None]
    if len(known) == len(frames):
        return decode(known, **sent)
    raise DecodeError(
        protocol="", message_name=None, field="frames", frame=frames.index(None), offset=None, kind="frames",
        expected="octets", found="null", rule="columns",
    )  # fmt: skip


def _value(owner: object, attribute: str, convert: Convert | None = None) -> Any:
    """An attribute's value as pyarrow takes it; the column of a class without fields is always true."""
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
