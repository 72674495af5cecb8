"""Column types that the schemas of all packages share."""

from __future__ import annotations

import pyarrow as pa

PAIRS = pa.list_(pa.struct([pa.field("name", pa.string()), pa.field("value", pa.string())]))
"""Type of a dictionary: pairs in wire order, repeated names included."""

BINARY_PAIRS = pa.list_(pa.struct([pa.field("name", pa.string()), pa.field("value", pa.binary())]))
"""Type of a dictionary whose values are octets."""

UINT64 = pa.decimal128(20, 0)
"""Type of an unsigned integer of eight octets: no signed integer type holds all of its values."""

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
"""Columns that every protocol has."""
