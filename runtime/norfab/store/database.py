"""The SQLite file of a store: opened, checked, and moved aside where it is damaged.

It is in WAL mode. A commit is safe against the end of the process when SQLite has handed it to the system
(``process``: synchronous=NORMAL), and against the loss of power when the disk has confirmed it (``full``:
synchronous=FULL). What is damaged is never thrown away: it is moved aside under a name that says when, and a new file takes
its place.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from specwire.runtime.norfab.store.errors import StoreError, StoreVersionError

Durability = Literal["process", "full"]

BUSY_S = 5.0
CHECKPOINT_PAGES = 4000
CACHED_STATEMENTS = 512
WAL_OCTETS = 64 << 20
"""What the file of a log that was worked off is cut to."""

CHECKED_OCTETS = 1 << 30
"""A file beyond this size is not read through before it is used: damage is then told when it is come across."""

_SYNCHRONOUS = {"process": "NORMAL", "full": "FULL"}
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_REOPEN = (*_DAMAGE, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
_FAULTY = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
)
_COMPANIONS = ("", "-wal", "-shm")

_BROUGHT_IN = "CREATE TABLE IF NOT EXISTS redo (one INTEGER PRIMARY KEY, serial INTEGER NOT NULL)"
BRING_IN = "INSERT OR REPLACE INTO redo VALUES (?, ?)"
"""Up to which serial number the database has the records of its redo log; see `RedoLog`."""


def is_damage(error: Exception) -> bool:
    """Tell whether the error means that the file is damaged."""
    return _code_of(error) in _DAMAGE


def is_locked(error: Exception) -> bool:
    """Tell whether another process kept the file locked for `BUSY_S`; trying again at once would take as long."""
    return _code_of(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def is_faulty(error: Exception) -> bool:
    """Tell whether the statement is at fault: carried out again it fails again, whatever becomes of the disk."""
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return True  # the module's own: values of another number, or of a type that SQLite has not
    return not isinstance(error, sqlite3.Error | OSError | StoreError) or _code_of(error) in _FAULTY


def spoils_connection(error: Exception) -> bool:
    """Tell whether a connection is not to be trusted after this error: what the system has of the file is uncertain."""
    return _code_of(error) in _REOPEN


def _code_of(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # what is above says more exactly what went wrong


def open_database(
    path: Path, schema: Sequence[str], version: int, durability: Durability, *, check: bool = False
) -> sqlite3.Connection:
    """Return a connection for one thread to a file that has `schema`, which is made where there is none.

    With `check` the whole file is read to see whether it is damaged, where it is not too large for that.

    Raises:
        StoreVersionError: the file is of another version, or has other tables.
        sqlite3.Error: it is damaged, or cannot be read or made.
    """
    fresh = not path.exists()
    connection = sqlite3.connect(
        path,
        timeout=BUSY_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=CACHED_STATEMENTS,
    )
    try:
        if fresh:
            os.chmod(path, 0o600)
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_OCTETS}")
        _prepare(connection, path, schema, version)
        connection.execute(_BROUGHT_IN)
        if check and path.stat().st_size <= CHECKED_OCTETS:
            _check(connection)
        if fresh and durability == "full":
            _sync_folder(path.parent)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, schema: Sequence[str], version: int) -> None:
    [found] = connection.execute("PRAGMA user_version").fetchone()
    if found == version:
        return
    [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if found or tables:
        what = f"of version {found}, and this program has version {version}" if found else "no store"
        raise StoreVersionError(f"{path} is {what}: move it away, or use the program that made it")
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        for statement in schema:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {version}")


def _check(connection: sqlite3.Connection) -> None:
    """Raise sqlite3.DatabaseError, as SQLite does for damage that it comes across, where there is any."""
    [found] = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        damage = sqlite3.DatabaseError(str(found).replace("\n", " "))
        damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        raise damage


def brought_in(connection: sqlite3.Connection) -> int:
    """Return up to which serial number the database has the records of its redo log."""
    [serial] = connection.execute("SELECT coalesce(max(serial), 0) FROM redo").fetchone()
    return int(serial)


def move_aside(path: Path) -> Path:
    """Give a damaged file, and its log, a name that nobody uses; return it.

    Raises:
        StoreError: that is not possible.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    names = (path.with_name(f"{path.name}.damaged-{stamp}{number}") for number in ("", *range(2, 1000)))
    aside = next(name for name in names if not name.exists())
    try:
        for companion in _COMPANIONS:
            with suppress(FileNotFoundError):
                path.with_name(path.name + companion).rename(aside.with_name(aside.name + companion))
    except OSError as error:
        raise StoreError(f"{path} is damaged and cannot be moved aside: {error.strerror}") from None
    return aside


def _sync_folder(folder: Path) -> None:
    """Have the names of new files survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
