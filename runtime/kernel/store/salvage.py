"""Replacement of a damaged database by a new file with the rows that can still be read.

A row can be read if it is reached from either end of its table: up to the first damage in ascending
order of the key, and down to the last in descending order. The new file gets the tables and the
version of the damaged one, so a file of an earlier version is upgraded afterwards.

A process killed between any two steps loses nothing, and the next start continues:

1. Build ``PATH.salvaging``. A kill means: start again.
2. Rename it to ``PATH.salvaged``: it is complete.
3. Rename the damaged file and its companions to ``PATH.damaged-TIME``. Nothing is deleted.
4. Rename ``PATH.salvaged`` to ``PATH``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from specwire.runtime.kernel.store.database import Schema, is_faulty, sync_folder, transaction

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
_COMPANIONS = ("-wal", "-shm", "-journal", "")
"""Suffixes of the files that make up a database. A WAL that stayed would be applied to the new file."""


def salvage(path: Path, schema: Schema, fault: str) -> str:
    """Replace the damaged database at `path`; return one sentence about the rows that were kept.

    No other connection may be open, in this process or another.

    Raises:
        OSError, sqlite3.Error: the new file cannot be written, or the damaged one not renamed.
    """
    salvaging = _beside(path, ".salvaging")
    for suffix in _COMPANIONS:
        _beside(salvaging, suffix).unlink(missing_ok=True)
    salvaging.touch(0o600)
    with closing(sqlite3.connect(salvaging.absolute(), isolation_level=None)) as target:
        # SQLite would delete the WAL of an empty file.
        rows = _copy(path, schema, target) if path.stat().st_size else 0
    salvaging.rename(_beside(path, ".salvaged"))
    aside = finish_salvage(path)
    return (
        f"{path} was damaged ({fault}): {rows} rows could be read and were kept; the damaged file is {aside}"
    )


def finish_salvage(path: Path) -> Path | None:
    """Do steps 3 and 4 if ``PATH.salvaged`` exists; return the new name of the damaged file.

    Raises:
        OSError: a file cannot be renamed.
    """
    salvaged = _beside(path, ".salvaged")
    if not salvaged.exists():
        return None
    sync_folder(path.parent)  # the new names are on the disk in this order
    made = datetime.fromtimestamp(salvaged.stat().st_mtime, UTC)  # the same after a kill
    aside = _beside(path, f".damaged-{made:%Y%m%dT%H%M%S.%fZ}")
    for suffix in _COMPANIONS:
        if _beside(path, suffix).exists():
            _beside(path, suffix).rename(_beside(aside, suffix))
    sync_folder(path.parent)
    salvaged.rename(path)
    sync_folder(path.parent)
    return aside


def _copy(path: Path, schema: Schema, target: sqlite3.Connection) -> int:
    """Copy what can be read; return the number of rows."""
    rows = 0
    target.execute("PRAGMA auto_vacuum = INCREMENTAL")
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as source:
        # A text that is not UTF-8 becomes one that cannot be inserted: its row is skipped.
        source.text_factory = lambda octets: octets.decode(errors="surrogateescape")
        source.execute("PRAGMA writable_schema = ON")  # skip a damaged entry of the schema
        created = [*_read(source, "SELECT type, sql FROM sqlite_master WHERE sql IS NOT NULL")]
        version = next(_read(source, "PRAGMA user_version"), (0,))[0] if created else 0
        later = [sql for kind, sql in created if kind != "table"]  # a trigger must not run for a copied row
        if version == schema.version:
            later += schema.statements  # what the damaged file has lost; SQLite refuses the others
        with transaction(target):
            for kind, sql in created:
                if kind == "table":
                    _try(target, sql)
            for (table,) in target.execute(_TABLES).fetchall():
                rows += _copy_rows(source, target, table)
            for sql in later:
                _try(target, sql)
            target.execute(f"PRAGMA user_version = {version}")
    return rows


def _copy_rows(source: sqlite3.Connection, target: sqlite3.Connection, table: str) -> int:
    """Copy rows from both ends of a table, up to the damage between them; return their number."""
    found = target.execute(
        "SELECT name, pk FROM pragma_table_info(?) ORDER BY pk = 0, pk", (table,)
    ).fetchall()
    columns, keys, table = [_quote(name) for name, _ in found], sum(pk > 0 for _, pk in found), _quote(table)
    if _try(target, f"SELECT _rowid_ FROM {table} LIMIT 0"):  # it is not WITHOUT ROWID
        columns, keys = ["_rowid_", *columns], 1
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    rows, last = 0, None
    for direction in ("ASC", "DESC"):
        order = ", ".join(f"{name} {direction}" for name in columns[:keys])
        for row in _read(source, f"SELECT {names} FROM {table} ORDER BY {order}"):
            if direction == "ASC":
                last = row[:keys]
            elif row[:keys] == last:
                break
            rows += _try(target, f"INSERT INTO {table} ({names}) VALUES ({marks})", row)
    return rows


def _read(source: sqlite3.Connection, sql: str) -> Iterator[tuple[Any, ...]]:
    """Yield rows up to the first that cannot be read."""
    with suppress(sqlite3.Error, UnicodeError):
        yield from source.execute(sql)


def _try(target: sqlite3.Connection, sql: str, row: tuple[Any, ...] = ()) -> bool:
    """Execute a statement; return False if it is damaged itself. Raises sqlite3.Error for a failing disk."""
    try:
        target.execute(sql, row)
    except Exception as error:
        if not is_faulty(error):
            raise
        return False
    return True


def _quote(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f"{path.name}{suffix}")
