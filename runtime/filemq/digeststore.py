"""Digests of published files, kept from one run of a server to the next, so that a restart reads no file again.

One SQLite database holds those of all folders that were ever published by this user. It is a help and nothing
more: what is wrong with it (it is damaged, of another version, on a full disk, not to be written, locked by another
server for long) is told once in the log, and the server does without. It cannot make a digest wrong: each has a
checksum over itself and the name of its file, and is believed only where the file is still in the state in which it
was read (`Digest.still_holds`). For the same reason two servers may share a database, and one may lose what the
other has written.

Beside the digests it remembers the device of each folder, and whether somebody still has to confirm
that files are gone (`FolderState`). A digest that is `fresh` is kept as one that no state of a file
fits: the file is read again.

A damaged database is made again. Folders that no server has published for `KEEP_DAYS` are
forgotten.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from specwire.runtime.filemq.catalogue import Signature
from specwire.runtime.filemq.digests import Digest
from specwire.runtime.filemq.policy import FolderState

logger = logging.getLogger(__name__)

NAME = "filemq-digests.sqlite3"
VERSION = 1
KEEP_DAYS = 90
BUSY_S = 5.0
DAY_S = 24 * 3600

_TABLES = (
    """CREATE TABLE folder (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, used_day INTEGER NOT
    NULL, state BLOB)""",
    """CREATE TABLE digest (folder INTEGER NOT NULL, name BLOB NOT NULL, record BLOB NOT NULL,
    PRIMARY KEY (folder, name)) WITHOUT ROWID""",
)
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)  # the last: other tables
_CHECK_OCTETS = 4
_NO_STATE_NS = -1
"""In place of the time when a file's state changed: no file has it."""

T = TypeVar("T")


class _OtherVersionError(Exception):
    """A database that another version of this program has made."""


class _Record(msgspec.Struct, frozen=True, array_like=True):
    sha1: bytes
    signature: Signature
    touched_ns: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Record)
_state_encoder = msgspec.json.Encoder()
_state_decoder = msgspec.json.Decoder(FolderState)


class DigestStore:
    """The digests in one database, by published folder and name of the file in it; for use from any thread.

    Args:
        folder: where the database is, or will be made when it is first used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self._path = self.folder / NAME
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._off = self._warned = False

    def is_inside(self, published: Path) -> bool:
        """Tell whether the database would be published with a folder: each change would cause the next."""
        return self.folder.resolve().is_relative_to(published.resolve())

    def load(self, published: Path) -> dict[str, Digest]:
        """Return what is known of the files in a folder, by their names in it."""
        return self._attempt(lambda connection: _load(connection, os.fsencode(published))) or {}

    def load_state(self, published: Path) -> FolderState:
        """Return what is known of a folder itself."""
        found = self._attempt(lambda connection: _load_state(connection, os.fsencode(published)))
        return found or FolderState()

    def save(
        self, published: Path, changes: Mapping[str, Digest | None], state: FolderState | None = None
    ) -> None:
        """Note digests of files in a folder, None for a file that is gone, and the folder's state."""
        self._attempt(lambda connection: _save(connection, os.fsencode(published), changes, state))

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._disconnect()

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Work in one transaction; None where that cannot be done."""
        with self._lock:
            if self._off:
                return None
            try:
                connection = self._connection or self._connect()
                connection.execute("BEGIN IMMEDIATE")
                with connection:
                    return work(connection)
            except (sqlite3.Error, OSError, _OtherVersionError) as error:
                self._do_without(error)
                return None

    def _connect(self) -> sqlite3.Connection:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        connection = sqlite3.connect(
            self._path, timeout=BUSY_S, isolation_level=None, check_same_thread=False
        )
        self._connection = connection
        _use_log(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            _prepare(connection)
        return connection

    def _do_without(self, error: Exception) -> None:
        """Say so once. What is damaged is thrown away and made anew; after anything else this run does without."""
        self._disconnect()
        damaged = isinstance(error, _OtherVersionError) or _code_of(error) in _DAMAGE
        if not self._warned:
            self._warned = True
            fate = "it is made anew" if damaged else "files are read again after a restart"
            logger.warning("the digests kept in %s cannot be used: %s; %s", self._path, error, fate)
        if not damaged:
            self._off = True
            return
        try:
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(NAME + suffix).unlink(missing_ok=True)
        except OSError:
            self._off = True

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


def _use_log(connection: sqlite3.Connection) -> None:
    """Have a write-ahead log, for speed. SQLite does not wait where another server is changing to it, or writes.

    Then the file has the log through the other one, or does without until it is opened the next time.
    """
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError as error:
        if _code_of(error) != sqlite3.SQLITE_BUSY:
            raise


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the tables where there are none, and forget folders that were not published for long."""
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version == 0:
        for table in _TABLES:
            connection.execute(table)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    elif version != VERSION:
        raise _OtherVersionError(f"they are of version {version}, not {VERSION}")
    elif "state" not in (row[1] for row in connection.execute("PRAGMA table_info(folder)")):
        connection.execute("ALTER TABLE folder ADD COLUMN state BLOB")  # made by 0.1, which does without it
    long_ago = _today() - KEEP_DAYS
    connection.execute(
        "DELETE FROM digest WHERE folder IN (SELECT id FROM folder WHERE used_day < ?)", (long_ago,)
    )
    connection.execute("DELETE FROM folder WHERE used_day < ?", (long_ago,))


def _load(connection: sqlite3.Connection, folder: bytes) -> dict[str, Digest]:
    rows = connection.execute(
        "SELECT name, record FROM digest WHERE folder = ?", (_number_of(connection, folder),)
    )
    return {
        name.decode(): digest
        for name, record in rows
        if (digest := _unpack(folder, name, record)) is not None
    }


def _load_state(connection: sqlite3.Connection, folder: bytes) -> FolderState:
    number = _number_of(connection, folder)
    [octets] = connection.execute("SELECT state FROM folder WHERE id = ?", (number,)).fetchone()
    return _unpack_state(folder, octets)


def _save(
    connection: sqlite3.Connection,
    folder: bytes,
    changes: Mapping[str, Digest | None],
    state: FolderState | None = None,
) -> None:
    number = _number_of(connection, folder)
    if state is not None:
        octets = _state_encoder.encode(state)
        row = (_checksum(folder, b"", octets) + octets, number)
        connection.execute("UPDATE folder SET state = ? WHERE id = ?", row)
    for text, digest in changes.items():
        name = text.encode()
        if digest is None:
            connection.execute("DELETE FROM digest WHERE folder = ? AND name = ?", (number, name))
        else:
            record = (number, name, _pack(folder, name, digest))
            connection.execute("INSERT OR REPLACE INTO digest VALUES (?, ?, ?)", record)


def _number_of(connection: sqlite3.Connection, folder: bytes) -> int:
    """Return the number of a folder that is in use today."""
    connection.execute("INSERT OR IGNORE INTO folder (path, used_day) VALUES (?, 0)", (folder,))
    connection.execute("UPDATE folder SET used_day = ? WHERE path = ?", (_today(), folder))
    [number] = connection.execute("SELECT id FROM folder WHERE path = ?", (folder,)).fetchone()
    assert isinstance(number, int)
    return number


def _code_of(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # what is above says more exactly what went wrong


def _today() -> int:
    return int(time.time() // DAY_S)


def _pack(folder: bytes, name: bytes, digest: Digest) -> bytes:
    touched_ns = _NO_STATE_NS if digest.fresh else digest.touched_ns
    record = _encoder.encode(_Record(bytes.fromhex(digest.sha1), digest.signature, touched_ns))
    return _checksum(folder, name, record) + record


def _unpack(folder: bytes, name: object, octets: object) -> Digest | None:
    """Return the digest of one row, None for a row that is damaged: SQLite checks no content."""
    if not (isinstance(name, bytes) and isinstance(octets, bytes)):
        return None
    check, record = octets[:_CHECK_OCTETS], octets[_CHECK_OCTETS:]
    if check != _checksum(folder, name, record):
        return None
    known = _decoder.decode(record)
    return Digest(known.sha1.hex().upper(), known.signature, fresh=False, touched_ns=known.touched_ns)


def _unpack_state(folder: bytes, octets: object) -> FolderState:
    """Return what is remembered of a folder: nothing where the row is of 0.1, or damaged."""
    if not isinstance(octets, bytes) or octets[:_CHECK_OCTETS] != _checksum(
        folder, b"", octets[_CHECK_OCTETS:]
    ):
        return FolderState()
    return _state_decoder.decode(octets[_CHECK_OCTETS:])


def _checksum(folder: bytes, name: bytes, record: bytes) -> bytes:
    return zlib.crc32(b"\0".join((folder, name, record))).to_bytes(_CHECK_OCTETS, "big")
