"""Rows of a broker's store: one table, one row for each record, in the order of writing.

A record is MessagePack in `octets`. The body of a job or a result, which may be large, has a column of its own, so that a store
is loaded without the bodies of results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from specwire.runtime.norfab.records import (
    AssignedRecord,
    DeletedRecord,
    EventRecord,
    HeldResult,
    JobRecord,
    Record,
    ResultRecord,
    WorkerRecord,
)

SCHEMA_STATEMENTS = (
    """CREATE TABLE record (number INTEGER PRIMARY KEY, uuid TEXT NOT NULL, kind INTEGER NOT NULL,
    slot TEXT NOT NULL, octets BLOB NOT NULL, body BLOB)""",
    "CREATE INDEX record_by_uuid ON record (uuid)",
)
INSERT = "INSERT INTO record (uuid, kind, slot, octets, body) VALUES"

JOB, ASSIGNED, RESULT, EVENT, DELETED, WORKER = range(1, 7)

SELECT = "SELECT number, kind, octets, length(body) FROM record WHERE number > ? AND kind <> ? ORDER BY number LIMIT ?"
"""Rows for `read_row`."""

_KINDS: dict[int, type[Any]] = {
    JOB: JobRecord,
    ASSIGNED: AssignedRecord,
    RESULT: ResultRecord,
    EVENT: EventRecord,
    DELETED: DeletedRecord,
    WORKER: WorkerRecord,
}
_KIND_OF = {type_: kind for kind, type_ in _KINDS.items()}
_DECODERS = {kind: msgspec.msgpack.Decoder(type_) for kind, type_ in _KINDS.items()}
_encode = msgspec.msgpack.Encoder().encode
_replace = msgspec.structs.replace

Stored = Record | HeldResult
"""A record as it is loaded: a result without its body."""


def make_row(record: Record) -> tuple[Any, ...]:
    """Return the row of a record, for `INSERT`; raises UnicodeEncodeError for a text that UTF-8 cannot encode."""
    kind = _KIND_OF[type(record)]
    if isinstance(record, JobRecord):
        return record.uuid, kind, "", _encode(_replace(record, body=b"")), record.body
    if isinstance(record, ResultRecord):
        return record.uuid, kind, record.slot, _encode(_replace(record, body=b"")), record.body
    return record.uuid, kind, "", _encode(record), None


def read_row(row: Sequence[Any]) -> Stored:
    """Return the record in a row of `SELECT`, a job without its body.

    Raises:
        ValueError: the row is damaged.
    """
    _, kind, octets, length = row
    try:
        record: Record = _DECODERS[kind].decode(octets)
        if isinstance(record, ResultRecord):
            return HeldResult(record.uuid, record.slot, record.status, int(length), record.ended_at)
    except (KeyError, TypeError, msgspec.DecodeError) as error:
        raise ValueError(str(error)) from None
    return record


def read_record(kind: int, octets: bytes, body: bytes | None) -> Record:
    """Return a whole record, with its body.

    Raises:
        ValueError: the row is damaged.
    """
    try:
        record: Record = _DECODERS[kind].decode(octets)
    except (KeyError, TypeError, msgspec.DecodeError) as error:
        raise ValueError(str(error)) from None
    if not isinstance(record, JobRecord | ResultRecord):
        return record
    if not isinstance(body, bytes):
        raise ValueError("it has no body")  # noqa: TRY004 - the value is damaged, no argument is wrong
    return _replace(record, body=body)
