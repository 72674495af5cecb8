"""Digests of published files, kept from one run of a server to the next.

One SQLite database has the digests of all folders that this user has published, the devices of each
folder, and which places wait for a confirmation (`FolderState`). Its format, version and the
salvage of a damaged file are those of the kernel's store (`runtime.kernel.store`). Unlike a store,
it has no exclusive owner and no thread: several servers may use it at once, and the thread that
walks through a folder queries it directly.

The digests save time and nothing more. Any trouble with the database (a full disk, a newer version,
another program that has it locked) is logged once, and the server continues without it. The
database cannot make a digest wrong: each has a checksum over itself and the name of its file, and
is used only for a file in the same state (`Digest.still_holds`). A `fresh` digest is stored with a
state that no file has, so its file is read again.

Folders that were not published for `KEEP_DAYS` are forgotten.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from specwire.runtime.filemq.catalogue import Signature
from specwire.runtime.filemq.policy import FolderState
from specwire.runtime.filemq.reading import Digest, mode_of
from specwire.runtime.kernel.store import Schema, StoreError, StoreInUseError
from specwire.runtime.kernel.store.database import BUSY_S, is_damage, open_database, transaction
from specwire.runtime.kernel.store.lock import StoreLock
from specwire.runtime.kernel.store.salvage import finish_salvage, salvage

logger = logging.getLogger(__name__)

NAME = "filemq-digests.sqlite3"
KEEP_DAYS = 90
DAY_S = 24 * 3600
LOCK_POLL_S = 0.01

BATCH_FILES = 1000
BATCH_OCTETS = 1 << 30
"""Digests are written after so many files, or octets that were read, and at the end of a look."""

_CHECK_OCTETS = 4
_NO_STATE_NS = -1
"""ctime that no file has."""

T = TypeVar("T")


def _add_state(connection: sqlite3.Connection, path: Path) -> Iterable[Path]:
    """Upgrade version 1. A later release of that version had the column already."""
    if "state" not in (row[1] for row in connection.execute("PRAGMA table_info(folder)")):
        connection.execute("ALTER TABLE folder ADD COLUMN state BLOB")
    return ()


SCHEMA = Schema(
    version=2,
    statements=(
        """CREATE TABLE folder (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE,
        used_day INTEGER NOT NULL, state BLOB)""",
        """CREATE TABLE digest (folder INTEGER NOT NULL, name BLOB NOT NULL, record BLOB NOT NULL,
        PRIMARY KEY (folder, name)) WITHOUT ROWID""",
    ),
    upgrades={1: _add_state},
)


class _Record(msgspec.Struct, frozen=True, array_like=True):
    sha1: bytes
    signature: Signature
    touched_ns: int


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Record)
_state_encoder = msgspec.json.Encoder()
_state_decoder = msgspec.json.Decoder(FolderState)


class DigestStore:
    """Digests in one database, by published folder and name of the file in it. For any thread.

    Args:
        folder: folder of the database, which is created at the first use.
        busy_s: how long to wait for another program that has the database locked.
    """

    def __init__(self, folder: Path, *, busy_s: float = BUSY_S) -> None:
        self.folder = folder.absolute()
        self._path = self.folder / NAME
        self._busy_s = busy_s
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._off = False

    def is_inside(self, published: Path) -> bool:
        """Return whether the database would be published itself: each change would cause another."""
        return self.folder.resolve().is_relative_to(published.resolve())

    def load(self, published: Path) -> dict[str, Digest]:
        """Return the digests of the files in a folder, by their names in it."""
        return self._attempt(lambda connection: _load(connection, os.fsencode(published))) or {}

    def load_state(self, published: Path) -> FolderState:
        """Return the state of a folder."""
        found = self._attempt(lambda connection: _load_state(connection, os.fsencode(published)))
        return found or FolderState()

    def save(
        self, published: Path, changes: Mapping[str, Digest | None], state: FolderState | None = None
    ) -> None:
        """Store digests of files in a folder, None for a file that is gone, and the folder's state."""
        self._attempt(lambda connection: _save(connection, os.fsencode(published), changes, state))

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._disconnect()

    def _attempt(self, work: Callable[[sqlite3.Connection], T]) -> T | None:
        """Do work in one transaction; return None if that is impossible."""
        with self._lock:
            for is_last in (False, True):
                if self._off:
                    break
                try:
                    connection = self._connection or self._connect()
                    with transaction(connection):
                        return work(connection)
                except (sqlite3.Error, OSError, StoreError) as error:
                    self._disconnect()
                    if is_damage(error) and not is_last:
                        continue  # it is checked, and salvaged, when it is opened again
                    self._off = True
                    reason = "files are read again after a restart"
                    logger.warning("the digests in %s cannot be used: %s; %s", self._path, error, reason)
            return None

    def _connect(self) -> sqlite3.Connection:
        """Open the database alone, as another server may be creating or salvaging it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = self._wait_for_lock()
        try:
            finish_salvage(self._path)
            try:
                connection = open_database(self._path, SCHEMA, "process", self._connect_to)
            except sqlite3.Error as error:
                if not is_damage(error):
                    raise
                logger.warning("%s", salvage(self._path, SCHEMA, str(error)))
                connection = open_database(self._path, SCHEMA, "process", self._connect_to)
        finally:
            lock.release()
        self._connection = connection
        with transaction(connection):
            _forget_old_folders(connection)
        return connection

    def _wait_for_lock(self) -> StoreLock:
        deadline = time.monotonic() + self._busy_s
        while True:
            try:
                return StoreLock(self._path)
            except StoreInUseError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(LOCK_POLL_S)

    def _connect_to(self, path: Path) -> sqlite3.Connection:
        return sqlite3.connect(path, timeout=self._busy_s, isolation_level=None, check_same_thread=False)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()


class StoredDigests:
    """Digests of one publication's files from earlier runs, by virtual name. For one thread.

    The digests are loaded at once, and each waits until its file is found. A file in the same state
    need not be read; a file that cannot be read keeps this digest. Changes are written in batches,
    so that a server that is killed during its first walk continues near there.

    Args:
        store: the database; None: nothing is stored.
        folder: the published folder.
        path: its virtual path.

    Attributes:
        state: state of the folder, with virtual names.
    """

    def __init__(self, store: DigestStore | None = None, folder: Path = Path(), path: str = "/") -> None:
        self._store, self._folder, self._path = store, folder, path
        self._prefix = "/" if path == "/" else f"{path}/"
        self._waiting: dict[str, Digest] = {}
        self.state = FolderState()
        if store is not None:
            self._waiting = {self._prefix + name: digest for name, digest in store.load(folder).items()}
            self.state = _rename_places(store.load_state(folder), self._to_virtual)
        self._saved = self.state
        self._changes: dict[str, Digest | None] = {}
        self._read_octets = 0

    def find(self, name: str, state: os.stat_result) -> Digest | None:
        """Return the digest of a file that is found for the first time, None if it must be read."""
        digest = self._waiting.get(name)
        if digest is None or not digest.still_holds(state):
            return None
        return self._waiting.pop(name)._replace(mode=mode_of(state))

    def pop(self, name: str) -> Digest | None:
        """Return the last digest of a file that cannot be read, None if there is none."""
        return self._waiting.pop(name, None)

    def unfound(self) -> set[str]:
        """Return the names of files that were not found yet."""
        return {*self._waiting}

    def put(self, name: str, digest: Digest) -> None:
        """Store the digest of a file that was read."""
        self._waiting.pop(name, None)
        self._changes[name] = digest
        self._read_octets += digest.signature.size
        if len(self._changes) >= BATCH_FILES or self._read_octets >= BATCH_OCTETS:
            self.save()

    def remove(self, name: str) -> None:
        """Remove the digest of a file that is gone."""
        self._waiting.pop(name, None)
        self._changes[name] = None

    def save(self) -> None:
        """Write the changes."""
        if self._store is not None and (self._changes or self.state != self._saved):
            changes = {name[len(self._prefix) :]: digest for name, digest in self._changes.items()}
            self._store.save(self._folder, changes, _rename_places(self.state, self._to_inner))
        self._changes, self._read_octets, self._saved = {}, 0, self.state

    def _to_virtual(self, inner: str) -> str:
        return self._prefix + inner if inner else self._path

    def _to_inner(self, name: str) -> str:
        return "" if name == self._path else name[len(self._prefix) :]


def _rename_places(state: FolderState, rename: Callable[[str], str]) -> FolderState:
    """Return the state with other names for its places."""
    devices = {rename(place): device for place, device in state.devices.items()}
    return FolderState(devices, tuple(map(rename, state.asked)))


def _forget_old_folders(connection: sqlite3.Connection) -> None:
    day = _today() - KEEP_DAYS
    connection.execute(
        "DELETE FROM digest WHERE folder IN (SELECT id FROM folder WHERE used_day < ?)", (day,)
    )
    connection.execute("DELETE FROM folder WHERE used_day < ?", (day,))


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
    """Return the number of a folder, and note that it is in use today."""
    connection.execute("INSERT OR IGNORE INTO folder (path, used_day) VALUES (?, 0)", (folder,))
    connection.execute("UPDATE folder SET used_day = ? WHERE path = ?", (_today(), folder))
    [number] = connection.execute("SELECT id FROM folder WHERE path = ?", (folder,)).fetchone()
    assert isinstance(number, int)
    return number


def _today() -> int:
    return int(time.time() // DAY_S)


def _pack(folder: bytes, name: bytes, digest: Digest) -> bytes:
    touched_ns = _NO_STATE_NS if digest.fresh else digest.touched_ns
    record = _encoder.encode(_Record(bytes.fromhex(digest.sha1), digest.signature, touched_ns))
    return _checksum(folder, name, record) + record


def _unpack(folder: bytes, name: object, octets: object) -> Digest | None:
    """Return the digest of one row, None if the row is damaged: SQLite checks no content."""
    if not (isinstance(name, bytes) and isinstance(octets, bytes)):
        return None
    check, record = octets[:_CHECK_OCTETS], octets[_CHECK_OCTETS:]
    if check != _checksum(folder, name, record):
        return None
    known = _decoder.decode(record)
    return Digest(known.sha1.hex().upper(), known.signature, fresh=False, touched_ns=known.touched_ns)


def _unpack_state(folder: bytes, octets: object) -> FolderState:
    """Return the state of a folder: an empty one if there is none, or the row is damaged."""
    if not isinstance(octets, bytes) or octets[:_CHECK_OCTETS] != _checksum(
        folder, b"", octets[_CHECK_OCTETS:]
    ):
        return FolderState()
    return _state_decoder.decode(octets[_CHECK_OCTETS:])


def _checksum(folder: bytes, name: bytes, record: bytes) -> bytes:
    return zlib.crc32(b"\0".join((folder, name, record))).to_bytes(_CHECK_OCTETS, "big")
