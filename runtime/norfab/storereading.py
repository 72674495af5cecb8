"""Read-only access to the store of a broker, a worker or a client, which may run meanwhile."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from specwire.runtime.kernel.store import StoreError, StoreVersionError
from specwire.runtime.kernel.store.database import BUSY_S, DamageError, check_wal
from specwire.runtime.norfab.storekinds import KINDS, Kind, Row, TableLayout, slots_of

PAGE_ROWS = 500
PAGE_OCTETS = 1 << 20
"""Rows, and octets of texts and blobs, after which `read_rows` begins another query."""

_UNREADABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


class NoStoreError(StoreError):
    """There is no store, or no place for a backup."""


def find_store(folder: Path) -> tuple[Path, Kind]:
    """Return the database in a folder, or a file such as a backup, and its kind; raises NoStoreError."""
    if folder.is_file():
        return folder, _identify(folder)
    found = [kind for kind in KINDS if (folder / kind.file).is_file()]
    if len(found) == 1:
        return folder / found[0].file, found[0]
    if found:
        raise NoStoreError(f"{folder} has several stores: name one, such as {folder / found[0].file}")
    names = ", ".join(kind.file for kind in KINDS)
    patterns = [f"{between}{kind.file}" for kind in KINDS for between in ("*/", "*/*/")]
    below = sorted(str(path.parent) for pattern in patterns for path in folder.glob(pattern))
    hint = f"; {below[0]} has one" if below else ""
    raise NoStoreError(f"{folder} has no store: none of {names} is there{hint}")


def _identify(file: Path) -> Kind:
    for kind in KINDS:
        if kind.file == file.name:
            return kind
    with suppress(sqlite3.Error), closing(_connect(file)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        for kind in KINDS:
            if tables >= {table.name for table in kind.tables}:
                return kind
    raise NoStoreError(f"{file} is no store")


@contextmanager
def open_store(path: Path, kind: Kind) -> Iterator[sqlite3.Connection]:
    """Open a store of the present version, read-only.

    Raises:
        StoreVersionError: it has another version.
        sqlite3.Error: it cannot be read.
    """
    _check_log(path)
    with closing(_connect(path)) as connection:
        [version] = connection.execute("PRAGMA user_version").fetchone()
        [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if not version and not tables:
            raise StoreVersionError(f"{path} is empty: the {kind.peer} creates its tables when it starts")
        if not version or version > kind.version:
            raise StoreVersionError(
                f"{path} has version {version}, not {kind.version}: use the release that wrote it"
            )
        if version < kind.version:
            again = f"start the {kind.peer} on it once with this release, which upgrades it"
            raise StoreVersionError(f"{path} has version {version}, of an earlier release: {again}")
        yield connection


def _connect(path: Path) -> sqlite3.Connection:
    """Return a read-only connection; raises sqlite3.Error.

    SQLite needs the ``-shm`` file of a WAL, and creates it. In a folder where it cannot, a database
    without a WAL is read as one that nobody changes.
    """
    location = f"{path.absolute().as_uri()}?mode=ro"
    try:
        return _try_connection(location)
    except sqlite3.OperationalError as error:
        if (error.sqlite_errorcode & 0xFF) not in _UNREADABLE:
            raise
        if size_of(path, "-wal"):
            raise sqlite3.OperationalError(
                "its write-ahead log can only be read in a folder where files can be created;"
                " copy all files there"
            ) from None
        return _try_connection(f"{location}&immutable=1")


def _try_connection(location: str) -> sqlite3.Connection:
    connection = sqlite3.connect(location, uri=True, timeout=BUSY_S, isolation_level=None)
    try:
        connection.text_factory = lambda octets: octets.decode(errors="surrogateescape")
        connection.create_function("slots_of", 2, slots_of, deterministic=True)
        connection.execute("PRAGMA user_version").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def size_of(path: Path, suffix: str = "") -> int:
    """Return the size of a file, or of the one with a suffix; 0 where it is missing."""
    try:
        return path.with_name(f"{path.name}{suffix}").stat().st_size
    except OSError:
        return 0


def _check_log(path: Path) -> None:
    """Check the header of the WAL, without which SQLite ignores all of it; raises DamageError."""
    octets = size_of(path)
    try:
        check_wal(path, octets)
    except DamageError:
        time.sleep(0.1)  # its writer may have been writing it
        check_wal(path, octets)


def read_rows(
    connection: sqlite3.Connection,
    table: TableLayout,
    uuid: str | None = None,
    *,
    page_rows: int = PAGE_ROWS,
    page_octets: int = PAGE_OCTETS,
) -> Iterator[Row]:
    """Yield the rows of a table, or those of one job, in the order of the key; raises sqlite3.Error.

    They are read by pages: no query is open while a row is yielded.
    """
    key, marks = ", ".join(table.key), ", ".join("?" * len(table.key))
    of_job, jobs = "TRUE", []
    if uuid is not None:
        of_job, jobs = "uuid = ?", [None if _is_damaged(uuid) else uuid]  # nothing equals NULL
    last: tuple[Any, ...] = ()
    more = True
    while more:
        after = f"({key}) > ({marks})" if last else "TRUE"
        sql = f"SELECT * FROM ({table.select}) WHERE {of_job} AND {after} ORDER BY {key}"
        page: list[Row] = []
        octets, more = 0, False
        with closing(connection.execute(sql, (*jobs, *last))) as cursor:
            names = [name for name, *_ in cursor.description]
            for values in cursor:
                page.append(dict(zip(names, values, strict=True)))
                octets += sum(len(value) for value in values if isinstance(value, bytes | str))
                last = tuple(page[-1][name] for name in table.key)
                more = (len(page) >= page_rows or octets >= page_octets) and all(map(_is_comparable, last))
                if more:
                    break
        yield from page


def _is_comparable(value: Any) -> bool:
    """Return whether a query can continue behind a row with this key: not behind a damaged one."""
    return value is not None and not (isinstance(value, str) and _is_damaged(value))


def _is_damaged(text: str) -> bool:
    """Return whether it was not UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def decode_row(table: TableLayout, row: Row) -> tuple[str, Row]:
    """Return kind and fields of the record in a row; raises ValueError."""
    fields = {name: _convert(name, row[name], type_) for name, type_ in table.fields.items()}
    return table.decode(row) if table.decode is not None else (table.kind, fields)


def _convert(name: str, value: Any, type_: type) -> Any:
    if type_ is bool and type(value) is int and value in (0, 1):
        return bool(value)
    if type(value) is not type_:
        raise ValueError(f"{name} is {type(value).__name__}, not {type_.__name__}")
    if isinstance(value, str) and _is_damaged(value):
        raise ValueError(f"{name} is not UTF-8")
    return value


def name_row(table: TableLayout, row: Row) -> tuple[str, str]:
    """Return the name of a row, such as ``record 12``, and the uuid of its job."""
    uuid = row["uuid"]
    return f"{table.name} {row[table.key[-1]]}", uuid if isinstance(uuid, str) else ""
