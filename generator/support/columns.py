"""What the column decoders of all packages share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from specwire.generated.errors import DecodeError
from specwire.generated.messages import Message

PAIRS = pa.list_(pa.struct([pa.field("name", pa.string()), pa.field("value", pa.string())]))
"""A dictionary: pairs in wire order, repeated names included."""

UINT64 = pa.decimal128(20, 0)
"""An unsigned integer of eight octets: no signed integer type holds all of its values."""

ERROR = pa.struct(
    [
        pa.field("message", pa.string()),
        pa.field("field", pa.string()),
        pa.field("frame", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("text", pa.string()),
    ]
)

COMMON = (
    pa.field(
        "_message", pa.string(), metadata={"comment": "Class of the message; null where it does not decode."}
    ),
    pa.field("_error", ERROR, metadata={"comment": "Why the message does not decode; null where it does."}),
    pa.field(
        "_frames",
        pa.list_(pa.binary()),
        metadata={"comment": "The raw frames of a message that does not decode."},
    ),
)
"""The columns that every protocol has."""

Attributes = Mapping[str, tuple[tuple[str, str], ...]]


def decode_rows(
    array: pa.Array[Any] | pa.ChunkedArray[Any],
    schema: pa.Schema,
    decode: Callable[[Sequence[bytes]], Message],
    attributes: Attributes,
) -> pa.RecordBatch:
    """Return the messages in `array` as a batch of `schema`, decoded one by one."""
    rows: dict[str, list[Any]] = {name: [] for name in schema.names}
    for frames in array.to_pylist():
        for values in rows.values():
            values.append(None)
        try:
            message = _decode(decode, frames or ())
        except DecodeError as error:
            rows["_error"][-1] = _error(error)
            rows["_frames"][-1] = frames
            continue
        name = type(message).__name__
        rows["_message"][-1] = name
        rows[name][-1] = {column: _value(message, attribute) for column, attribute in attributes[name]}
    return pa.record_batch([pa.array(rows[f.name], f.type) for f in schema], schema=schema)


def _decode(decode: Callable[[Sequence[bytes]], Message], frames: Sequence[bytes | None]) -> Message:
    """Decode a row's frames; a null among them is not known, which is another thing than empty."""
    known = [frame for frame in frames if frame is not None]
    if len(known) == len(frames):
        return decode(known)
    raise DecodeError(
        protocol="", message_name=None, field="frames", frame=frames.index(None), offset=None, kind="frames",
        expected="octets", found="null", rule="columns",
    )  # fmt: skip


def _value(message: Message, attribute: str) -> Any:
    """A field's value as pyarrow takes it; the column of a message without fields is always true."""
    if attribute == "_present":
        return True
    value = getattr(message, attribute)
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return [{"name": name, "value": content} for name, content in value]
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
