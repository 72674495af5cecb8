"""Check, back up and export the store of a broker, a worker or a client, whether or not it runs.

The database is opened read-only: nothing is upgraded, salvaged or locked. In WAL mode a reader sees
the last commit and never blocks the writer, but the WAL grows until the reader ends its transaction.
`check` and `backup` read everything in one transaction, at the speed of the disk. `export` writes to a
pipe, which may stall for hours, so it reads in pages: a record that is written or deleted meanwhile may
be missing.

The kinds of stores differ in data only; see `storekinds`.
"""

from __future__ import annotations

import base64
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from specwire.runtime.kernel.store import StoreError
from specwire.runtime.kernel.store.database import DamageError, is_damage, sync_folder
from specwire.runtime.norfab.storekinds import Kind, Row
from specwire.runtime.norfab.storereading import (
    NoStoreError,
    decode_row,
    find_store,
    name_row,
    open_store,
    read_rows,
    size_of,
)

FAULTS = 100
"""Faults of each sort that a report lists. All are counted, except those that SQLite finds."""

COPIED_PAGES = 2000
"""Pages of the database that a backup copies before Python handles signals such as Ctrl-C."""


class StoreFault(msgspec.Struct, frozen=True):
    """A fault in a store: row, uuid of its job, reason. Both names are empty if the file is damaged."""

    row: str
    uuid: str
    fault: str


class CheckReport(msgspec.Struct):
    """Result of `check`.

    Attributes:
        faults: at most `FAULTS` of each sort; `found` is the number of all.
        counts: jobs that are ``open``, ``ended`` or ``deleted``, ``workers``, ``records``. A key is
            missing if the store has no such rows.
        octets: of the database and its WAL.
        damaged: SQLite cannot read part of the file.
    """

    path: Path
    peer: str
    faults: list[StoreFault] = []
    found: int = 0
    counts: dict[str, int] = {}
    octets: int = 0
    damaged: bool = False

    def add(self, fault: StoreFault, listed: int = 0) -> None:
        """Count a fault, and list it if fewer than `FAULTS` of its sort are listed."""
        self.found += 1
        if listed < FAULTS:
            self.faults.append(fault)


def check(folder: Path) -> CheckReport:
    """Read the whole store, and return its faults.

    Raises:
        NoStoreError: there is no store.
        StoreVersionError: another version of this program made it.
        StoreError: it cannot be read, and not because of damage.
    """
    path, kind = find_store(folder)
    report = CheckReport(path, kind.peer, octets=size_of(path) + size_of(path, "-wal"))
    try:
        with open_store(path, kind) as connection:
            connection.execute("BEGIN")
            for [found] in connection.execute(f"PRAGMA integrity_check({FAULTS})"):
                if found != "ok":
                    report.add(StoreFault("", "", " ".join(found.split())))
            if report.found:
                report.damaged = connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",)
            report.counts["records"] = 0
            _check_rows(connection, kind, report)
            _check_rules(connection, kind, report)
            for name, sql in kind.counts.items():
                [report.counts[name]] = connection.execute(sql).fetchone()
    except sqlite3.DatabaseError as error:
        report.damaged = report.damaged or is_damage(error)
        if not is_damage(error) and getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_ERROR:
            raise StoreError(f"{path} cannot be read: {error}") from None
        report.add(StoreFault("", "", str(error)))
    return report


def _check_rows(connection: sqlite3.Connection, kind: Kind, report: CheckReport) -> None:
    damaged = 0
    for table in kind.tables:
        for row in read_rows(connection, table):
            report.counts["records"] += 1
            try:
                decode_row(table, row)
            except ValueError as error:
                report.add(StoreFault(*name_row(table, row), str(error)), damaged)
                damaged += 1


def _check_rules(connection: sqlite3.Connection, kind: Kind, report: CheckReport) -> None:
    for rule in kind.rules:
        for number, (row, uuid) in enumerate(connection.execute(rule.select)):
            report.add(StoreFault(row, uuid, rule.fault), number)


def backup(folder: Path, file: Path) -> int:
    """Copy the present state of the store to a new file; return its size in octets.

    A backup that is killed leaves no `file`, but may leave a file ``.specwire-backup-…`` beside it.

    Raises:
        NoStoreError: there is no store, or `file` exists.
        StoreVersionError: another version of this program made the store.
        StoreError: the store is damaged, or the copy cannot be written.
    """
    path, kind = find_store(folder)
    _check_new(file)
    try:
        with open_store(path, kind) as source:
            descriptor, name = tempfile.mkstemp(prefix=".specwire-backup-", dir=file.absolute().parent)
            os.close(descriptor)
            try:
                _copy(source, Path(name))
                octets = os.stat(name).st_size
                _publish(Path(name), file)
            finally:
                for suffix in ("", "-journal"):
                    Path(f"{name}{suffix}").unlink(missing_ok=True)
    except sqlite3.Error as error:
        if is_damage(error):
            raise StoreError(f"{path} is damaged, and was not copied: {error}") from None
        raise StoreError(f"{path} cannot be copied to {file}: {error}") from None
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error.strerror}") from None
    return octets


def _copy(source: sqlite3.Connection, file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as target:
        source.execute("BEGIN")
        source.execute("SELECT 1 FROM sqlite_master").fetchone()  # later commits are not copied
        source.backup(target, pages=COPIED_PAGES, progress=lambda *_: None)  # Python handles signals in it
        target.execute("PRAGMA journal_mode = DELETE")  # one file, until a store opens it
        [found] = target.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise DamageError(" ".join(found.split()))


def _publish(partial: Path, file: Path) -> None:
    """Give the copy its name; raises NoStoreError if that exists by now."""
    try:
        os.link(partial, file)
    except OSError:  # not every file system has links
        _check_new(file)
        partial.rename(file)
    sync_folder(file.absolute().parent)


def _check_new(file: Path) -> None:
    if file.exists() or file.is_symlink():
        raise NoStoreError(f"{file} exists: choose another name, a backup overwrites nothing")


def export(
    folder: Path, uuid: str | None = None, *, on_fault: Callable[[StoreFault], None] = lambda fault: None
) -> Iterator[Row]:
    """Yield each record as values for JSON: ``kind``, ``uuid``, and all fields.

    Args:
        folder: as for `find_store`.
        uuid: only records of this job.
        on_fault: called with each record that cannot be decoded, and is skipped.

    Raises:
        NoStoreError: there is no store.
        StoreVersionError: another version of this program made it.
        StoreError: it cannot be read.
    """
    path, kind = find_store(folder)
    try:
        with open_store(path, kind) as connection:
            for table in kind.tables:
                for row in read_rows(connection, table, uuid):
                    try:
                        name, fields = decode_row(table, row)
                    except ValueError as error:
                        on_fault(StoreFault(*name_row(table, row), str(error)))
                    else:
                        yield {"kind": name, "uuid": row["uuid"], **_to_json(fields)}
    except sqlite3.Error as error:
        raise StoreError(f"{path} cannot be read: {error}") from None


def _to_json(fields: Row) -> Row:
    """Return octets as text, or else as Base64 under a name that ends with ``_base64``."""
    values: Row = {}
    for name, value in fields.items():
        if not isinstance(value, bytes):
            values[name] = value
            continue
        try:
            values[name] = value.decode()
        except UnicodeDecodeError:
            values[f"{name}_base64"] = base64.b64encode(value).decode()
    return values
