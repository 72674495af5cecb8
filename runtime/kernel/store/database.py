"""SQLite file of a store: opening, checking, creating, upgrading, and writing with few calls.

The file is in WAL mode. A commit survives the end of the process as soon as SQLite has handed it to
the operating system (durability ``process``: ``synchronous = NORMAL``), and a loss of power once
the disk has confirmed it (``full``: ``synchronous = FULL``). `PRAGMA user_version` is the version
of the schema.

Every call of SQLite releases the interpreter lock, and a thread beside a busy event loop waits up
to 5 ms to get it back. So consecutive rows for one table are written with one multi-row INSERT.
"""

from __future__ import annotations

import os
import sqlite3
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain, groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from specwire.runtime.kernel.store.lock import StoreError, StoreVersionError

Durability = Literal["process", "full"]
Connect = Callable[[Path], sqlite3.Connection]

BUSY_S = 5.0
"""How long a statement waits for another process that has the file locked."""

CHECKPOINT_PAGES = 4000
WAL_OCTETS = 64 << 20
"""Size to which the WAL is truncated after a checkpoint."""

CHECKED_OCTETS = 1 << 30
"""A larger file is not read completely when it is opened. Damage is then found on access."""

_ROWS = 512
_VALUES = 32_766
"""Rows and values of one INSERT at most."""

_SYNCHRONOUS = {"process": "NORMAL", "full": "FULL"}
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_FAULTY = (
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
)


class Insert(NamedTuple):
    """One row to insert. `into` is the statement up to and including ``VALUES``."""

    into: str
    row: tuple[Any, ...]


class Execute(NamedTuple):
    """Any other statement, with its parameters."""

    sql: str
    parameters: tuple[Any, ...]


Statement = Insert | Execute


class Schema(msgspec.Struct, frozen=True):
    """Tables of a store.

    Attributes:
        version: the `PRAGMA user_version` of a file with these tables; 1 or more.
        statements: each creates a table, an index or a trigger of a new file.
        upgrades: by older version, a function that brings a file of that version to this one. It
            runs in a transaction that also sets the new version, and returns other files of that
            version, which are deleted after the commit.
    """

    version: int
    statements: tuple[str, ...]
    upgrades: Mapping[int, Callable[[sqlite3.Connection, Path], Iterable[Path]]] = {}


class DamageError(sqlite3.DatabaseError):
    """The check of a file found damage."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection in autocommit mode; raises sqlite3.Error."""
    # SQLite takes a relative path such as ``file:x`` or ``:memory:`` for something else.
    return sqlite3.connect(path.absolute(), timeout=BUSY_S, isolation_level=None, cached_statements=256)


def open_database(
    path: Path, schema: Schema, durability: Durability, connect: Connect = connect
) -> sqlite3.Connection:
    """Return a connection to a file with the tables of `schema`, created or upgraded if necessary.

    Raises:
        StoreVersionError: the file has another version or other tables. It is unchanged.
        sqlite3.Error: it is damaged, or cannot be read or created.
        OSError: it cannot be created.
    """
    if not path.exists():
        path.touch(0o600)
    octets = path.stat().st_size
    check_wal(path, octets)
    connection = connect(path)
    try:
        version = _check(connection, path, schema, octets)
        if not octets:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute(f"PRAGMA journal_size_limit = {WAL_OCTETS}")
        if version != schema.version:
            obsolete: Iterable[Path] = ()
            with transaction(connection):
                if version:
                    obsolete = schema.upgrades[version](connection, path)
                else:
                    for statement in schema.statements:
                        connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {schema.version}")
            for file in obsolete:
                file.unlink(missing_ok=True)
        if not octets and durability == "full":
            sync_folder(path.parent)
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit at the end of the ``with`` block, or roll back after an exception.

    If that fails too, its exception is raised, and the connection is still ``in_transaction``.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def write(connection: sqlite3.Connection, statements: Sequence[Statement]) -> None:
    """Execute the statements in order; raises what SQLite and its module raise."""
    for shape, group in groupby(statements, key=_shape):
        if shape is None:
            for sql, parameters in group:
                connection.execute(sql, parameters)
        else:
            _insert(connection, *shape, [row for _, row in group])


def _shape(statement: Statement) -> tuple[str, int] | None:
    return (statement.into, len(statement.row)) if isinstance(statement, Insert) else None


def _insert(connection: sqlite3.Connection, into: str, columns: int, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert all rows. Only powers of two are counts, so that SQLite prepares few statements."""
    start = 0
    while start < len(rows):
        count = 1 << min(len(rows) - start, _VALUES // columns, _ROWS).bit_length() - 1
        values = tuple(chain.from_iterable(rows[start : start + count]))
        connection.execute(_widen(into, columns, count), values)
        start += count


@lru_cache(maxsize=256)
def _widen(into: str, columns: int, rows: int) -> str:
    row = f"({', '.join('?' * columns)})"
    return f"{into} {', '.join([row] * rows)}"


def is_damage(error: Exception) -> bool:
    """Return whether the error means that the file is damaged."""
    return _code_of(error) in _DAMAGE


def is_faulty(error: Exception) -> bool:
    """Return whether a statement or a value is at fault: it would fail again on any disk."""
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return True  # raised by Python's module: a wrong number of values, or an unknown type
    others = sqlite3.Error | OSError | MemoryError | StoreError
    return not isinstance(error, others) or _code_of(error) in _FAULTY


def _code_of(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF  # the higher bits tell details


def _check(connection: sqlite3.Connection, path: Path, schema: Schema, octets: int) -> int:
    """Read the whole file, unless it is too large; return its version.

    Raises:
        StoreVersionError: it is not one of `schema`.
        sqlite3.Error: there is damage.
    """
    try:
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if (version or tables) and version != schema.version and version not in schema.upgrades:
            has = f"has version {version}, not {schema.version}" if version else "is no store"
            raise StoreVersionError(f"{path} {has}: move it away, or use the program that made it")
        checking = "PRAGMA quick_check(1)" if octets <= CHECKED_OCTETS else "SELECT 'ok'"
        [found] = connection.execute(checking).fetchone()
    except UnicodeDecodeError:
        found = "a name or a statement in it is no text"  # SQLite quotes it in a message
    if found != "ok":
        raise DamageError(found.replace("\n", " "))
    return int(version)


def check_wal(path: Path, octets: int) -> None:
    """Check the header of the WAL, without which SQLite drops all of it silently; raises DamageError.

    SQLite also ends the WAL at the first damaged frame, and cannot distinguish that from a commit
    that a kill interrupted: what follows is lost.
    """
    try:
        with path.with_name(f"{path.name}-wal").open("rb") as file:
            header = file.read(32)
    except FileNotFoundError:
        return
    if len(header) < 32:
        return  # not one commit was complete
    order = {0x377F0682: "<", 0x377F0683: ">"}.get(int.from_bytes(header[:4], "big"), "")
    words = struct.unpack(f"{order or '<'}6I", header[:24])
    first = second = 0
    for odd, even in zip(words[::2], words[1::2], strict=True):
        first = first + odd + second & 0xFFFF_FFFF
        second = second + even + first & 0xFFFF_FFFF
    if not order or struct.pack(">2I", first, second) != header[24:]:
        raise DamageError("the header of its write-ahead log is damaged")
    if not octets:
        raise DamageError("it is empty, and its write-ahead log is not")


def sync_folder(folder: Path) -> None:
    """Make the names of new files in a folder survive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
