"""Upgrade of stores that version 0.1 wrote.

A store of version 0.1 is an SQLite file with ``user_version`` 1, a redo log beside it (``FILE-redo``: statements that a killed
process had made durable and not committed yet), and for a worker a file ``begun`` (the number of the job that began last).
Each function runs in the transaction that also sets the new version, so a kill leaves either the old store, whole, or the
new one. Each returns the other files, which are not needed after that.

Redo log: a key of 16 octets, then records. Each has a serial number (8 octets, little-endian), its length (4), a keyed BLAKE2b
signature of both and the record (8), and the record: a MessagePack list of statements with their parameters. The table ``redo``
of the database has the serial number of the last record that was committed. The first record that is cut off, or does not fit
its signature or the number before it, ends the log.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Any

import msgspec

from specwire.runtime.norfab.rows import INSERT, SCHEMA_STATEMENTS

_KEY_OCTETS = 16
_HEAD = Struct("<QI8s")
_SIGNED = Struct("<QI")
_MARK = Struct("<QQ")
_ALL_BITS = (1 << 64) - 1
_JOB_BITS = 20
"""Version 0.1 numbered the records of a broker: number of the job, shifted by so many bits, plus number in the job."""

_Statements = list[tuple[str, list[Any]]]
_decode_statements = msgspec.msgpack.Decoder(_Statements).decode


class _Keyed(msgspec.Struct):
    """The part that all records of a broker have in common."""

    uuid: str


_decode_keyed = msgspec.msgpack.Decoder(_Keyed).decode


def upgrade_broker(connection: sqlite3.Connection, path: Path) -> tuple[Path, ...]:
    """Number rows in the order of writing, and store the uuid of each, which numbers stood for before.

    Version 0.1 could give a record the number of another one (a row of history). Both are kept here.
    """
    after = _committed_serial(connection)
    connection.execute("ALTER TABLE record RENAME TO old_record")
    for statement in SCHEMA_STATEMENTS:
        connection.execute(statement)
    connection.create_function("uuid_of", 1, _uuid_of, deterministic=True)
    connection.execute(
        "INSERT INTO record (uuid, kind, slot, octets, body)"
        " SELECT uuid_of(octets), kind, coalesce(slot, ''), octets, body FROM old_record ORDER BY number"
    )
    uuids = dict(connection.execute(f"SELECT number >> {_JOB_BITS}, uuid_of(octets) FROM old_record"))
    for statements in _read_redo(path, after):
        for sql, row in statements:
            if sql.startswith("INSERT"):
                number, kind, slot, octets, body = row
                uuid = uuids[number >> _JOB_BITS] = _uuid_of(octets)
                connection.execute(f"{INSERT} (?, ?, ?, ?, ?)", (uuid, kind, slot or "", octets, body))
            else:  # DELETE FROM record WHERE number BETWEEN ? AND ?: all records of one job
                uuid = uuids.pop(row[0] >> _JOB_BITS, "")
                connection.execute("DELETE FROM record WHERE uuid = ?", (uuid,))
    connection.execute("DROP TABLE old_record")
    connection.execute("DROP TABLE redo")
    return (_redo_file(path),)


def upgrade_worker(connection: sqlite3.Connection, path: Path) -> tuple[Path, ...]:
    """Commit what the redo log has, and the number of the job that began last."""
    _replay(connection, path)
    mark = path.with_name("begun")
    marked = _read_mark(mark)
    if marked is not None:
        [known] = connection.execute("SELECT max(number) FROM begun").fetchone()
        connection.execute("INSERT OR REPLACE INTO begun VALUES (1, ?)", (max(marked, known or 0),))
    return _redo_file(path), mark


def upgrade_client(connection: sqlite3.Connection, path: Path) -> tuple[Path, ...]:
    """Commit what the redo log has."""
    _replay(connection, path)
    return (_redo_file(path),)


def _replay(connection: sqlite3.Connection, path: Path) -> None:
    for statements in _read_redo(path, _committed_serial(connection)):
        for sql, row in statements:
            connection.execute(sql, row)
    connection.execute("DROP TABLE redo")


def _committed_serial(connection: sqlite3.Connection) -> int:
    connection.execute("CREATE TABLE IF NOT EXISTS redo (one INTEGER PRIMARY KEY, serial INTEGER NOT NULL)")
    [serial] = connection.execute("SELECT coalesce(max(serial), 0) FROM redo").fetchone()
    return int(serial)


def _read_redo(path: Path, after: int) -> Iterator[_Statements]:
    """Yield the statements of each record whose serial number is larger than `after`; raises OSError."""
    try:
        content = _redo_file(path).read_bytes()
    except FileNotFoundError:
        return
    key, at = content[:_KEY_OCTETS], _KEY_OCTETS
    before: int | None = None
    while at + _HEAD.size <= len(content):
        serial, octets, signature = _HEAD.unpack_from(content, at)
        record = content[at + _HEAD.size : at + _HEAD.size + octets]
        signed = _SIGNED.pack(serial, len(record)) + record
        if len(record) < octets or signature != blake2b(signed, digest_size=8, key=key).digest():
            return
        if before is not None and serial != before + 1:
            return
        at, before = at + _HEAD.size + octets, serial
        if serial > after:
            yield _decode_statements(record)


def _read_mark(file: Path) -> int | None:
    """Return the number in a file ``begun``; None where it is missing or damaged.

    It has two copies, each a number and its complement, which were written in turn.
    """
    try:
        octets = file.read_bytes()
    except FileNotFoundError:
        return None
    if len(octets) != 2 * _MARK.size:
        return None
    return max(
        (number for number, check in _MARK.iter_unpack(octets) if number ^ check == _ALL_BITS), default=None
    )


def _uuid_of(octets: bytes) -> str:
    try:
        return _decode_keyed(octets).uuid
    except msgspec.DecodeError:
        return ""  # damaged; reported when the store is loaded


def _redo_file(path: Path) -> Path:
    return path.with_name(f"{path.name}-redo")
