"""A broker's records as rows: kind, slot, the record itself, and its body apart.

The body of a job or result is a column of its own, the last one: what is not asked for it, SQLite does not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from specwire.runtime.norfab.records import (
    AssignedRecord,
    DeletedRecord,
    EventRecord,
    ForgottenRecord,
    HeldResult,
    JobRecord,
    Record,
    ResultRecord,
    WorkerRecord,
)
from specwire.runtime.norfab.store.batch import blob

SCHEMA = (
    "CREATE TABLE record (number INTEGER PRIMARY KEY, kind INTEGER NOT NULL, slot TEXT, octets BLOB NOT NULL, body BLOB)",
)
INSERT = "INSERT INTO record VALUES (?, ?, ?, ?, ?)"

JOB, ASSIGNED, RESULT, EVENT, DELETED, WORKER = range(1, 7)

OCTETS, BODY = 3, 4
"""Columns of a row."""

SELECT = (
    f"SELECT number, kind, octets, length(body), CASE kind WHEN {JOB} THEN body END FROM record"
    f" WHERE number > ? AND kind <> {EVENT} ORDER BY number LIMIT ?"
)
"""What `read_row` reads: the bodies of results stay where they are."""

SELECT_BODY = f"SELECT body FROM record WHERE number BETWEEN ? AND ? AND kind = {RESULT} AND slot = ? ORDER BY number DESC LIMIT 1"

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

REPLACING = frozenset((ForgottenRecord, DeletedRecord, WorkerRecord))
"""Records of a uuid after which nothing is kept that was written of it before."""

Stored = Record | HeldResult
"""A record as it comes back: results without their bodies."""


def make_row(number: int, record: Record) -> tuple[Any, ...]:
    """Return the row of a record."""
    if type(record) is ResultRecord:
        bare = ResultRecord(record.uuid, record.slot, record.status, b"", record.ended_at)
        return number, RESULT, record.slot, bytearray(_encode(bare)), blob(record.body)
    if type(record) is JobRecord:
        head = JobRecord(
            record.uuid,
            record.client,
            record.user,
            record.service,
            record.target,
            b"",
            record.accepted_at,
            record.deadline,
            record.tasks,
        )
        return number, JOB, "", bytearray(_encode(head)), blob(record.body)
    return number, _KIND_OF[type(record)], "", blob(_encode(record)), None


def read_row(row: Sequence[Any]) -> Stored:
    """Return the record in a row of `SELECT`.

    Raises:
        ValueError: the row is none of ours, or damaged.
    """
    _, kind, octets, length, body = row
    try:
        record: Record = _DECODERS[kind].decode(octets)
        if isinstance(record, ResultRecord):
            return HeldResult(record.uuid, record.slot, record.status, int(length), record.ended_at)
        return _replace(record, body=bytes(body)) if isinstance(record, JobRecord) else record
    except (KeyError, TypeError, msgspec.DecodeError) as error:
        raise ValueError(str(error)) from None
