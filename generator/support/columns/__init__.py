"""Column types that the schemas of all packages share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from specwire.generated.column_metadata import message_metadata, rule_metadata

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


def rule_field(
    edition: str,
    name: str,
    kind: pa.DataType,
    comment: str,
    rule: str,
    line: int = 0,
    *,
    named: bool = True,
    **more: str,
) -> pa.Field[Any]:
    """Return the column for a field of a message; for the other arguments see `rule_metadata`."""
    metadata = rule_metadata(edition, comment, rule, line, named=named, **more)
    return pa.field(name, kind, metadata=metadata)


def decoded(messages: Mapping[str, tuple[str, list[pa.Field[Any]]]]) -> pa.Schema:
    """Return the columns of decoded messages: the common ones, and one for each message class.

    Args:
        messages: for each message class name, the rule that defines it, and its fields.
    """
    own = [pa.field(n, pa.struct(f), metadata=message_metadata(rule)) for n, (rule, f) in messages.items()]
    return pa.schema([*COMMON, *own])
