"""All of a run or nothing of it: how files come into an output folder.

A run writes into ``.staging-N-…`` inside the folder; hidden names are passed over by Spark, Arrow and DuckDB. The end
of its name is by chance: where a program is killed, a Spark on other machines writes on for a while, and the run
that has the number next must not find that among its own.

To commit, the staged files and the folders that name them are synced, then a journal is written that lists what
moves where and what goes, and synced: from here on the run counts. The moves are made, files that the run
replaces are removed, ``manifest.json`` moves last, and the journal is removed. Whoever begins the next run finds
either no journal, and drops what was staged, or a journal, and does again what it says: a move that was made has
no source any more, so doing it again does nothing (`specwire.runtime.spark.pipeline.journal`).

So a reader of the folders sees whole files only. For the moment of the moves it may see some tables of the new
run and others of the old; none at all of a run that did not commit.

Two runs at once are kept apart by a lock on ``.lock``, which ends with its process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from specwire.runtime.spark.errors import BusyError, InputError, JobError
from specwire.runtime.spark.pipeline.journal import (
    ASIDE,
    JOURNAL,
    STAGING,
    Journal,
    perform,
    recover,
    sync,
    write_journal,
)
from specwire.runtime.spark.pipeline.manifest import NAME as MANIFEST
from specwire.runtime.spark.pipeline.manifest import Manifest, read_manifest

LOCK = ".lock"
SUFFIX = ".parquet"


class Area(StrEnum):
    """What becomes of a staged file; its name in the folder begins with this word and the run's number."""

    ADDED = "run"
    """It stays."""
    OPEN = "open"
    """It holds rows that may still change: the next run replaces it."""


class Run:
    """One run under way; made by `begin`."""

    def __init__(self, out: Path, before: Manifest) -> None:
        self.out = out
        self.before = before
        self.number = before.run + 1
        self.staging = out / f"{STAGING}{self.number:06d}-{secrets.token_hex(4)}"
        self.replaced: set[Path] = set()

    def folder(self, area: Area, table: str) -> Path:
        """Return where to write a table's Parquet files, partition folders below it; it may not exist yet."""
        return self.staging / area / table

    def staged(self, table: str, area: Area = Area.ADDED) -> list[Path]:
        """Return the Parquet files that were written for a table so far."""
        return visible_files(self.folder(area, table))

    def replace(self, files: Iterable[Path]) -> None:
        """Have files of the output folder removed when the run commits."""
        self.replaced.update(files)

    def write(self, name: str, octets: bytes) -> None:
        """Stage a file of its own, such as ``summary.json``; it replaces the one of that name."""
        path = self.staging / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(octets)

    def count_rows(self) -> dict[str, int]:
        """Return the rows of each table as they are when the run commits, by its path in the folder."""
        rows = dict(self.before.rows)
        for path in self.replaced:
            _add_rows(rows, path.parent.relative_to(self.out), -_rows_in(path))
        for area in Area:
            for path in visible_files(self.staging / area):
                _add_rows(rows, path.parent.relative_to(self.staging / area), _rows_in(path))
        return dict(sorted(rows.items()))

    def commit(self, manifest: Manifest) -> Manifest:
        """Put everything in place; return the manifest as it was written, with number and rows."""
        committed = msgspec.structs.replace(manifest, run=self.number, rows=self.count_rows())
        self.write(MANIFEST, committed.to_json())
        files = sorted((self.staging / "files").iterdir(), key=lambda path: path.name == MANIFEST)
        moves = [*self._table_moves(), *((self._relative(path), path.name) for path in files)]
        removals = tuple(sorted(self._relative(path) for path in self.replaced))
        for path in self._unsynced(source for source, _ in moves):
            sync(path)
        journal = Journal(self.number, tuple(moves), removals)
        write_journal(self.out, journal)
        perform(self.out, journal)
        return committed

    def _unsynced(self, names: Iterable[str]) -> Iterator[Path]:
        """Give staged files, then the folders from each up to the output folder, in which their names stand."""
        folders: set[Path] = set()
        for name in names:
            path = self.out / name
            yield path
            folders.update(parent for parent in path.parents if parent.is_relative_to(self.out))
        yield from sorted(folders)

    def _table_moves(self) -> Iterator[tuple[str, str]]:
        for area in Area:
            root = self.staging / area
            numbers: dict[Path, int] = {}
            for path in visible_files(root):
                folder = path.parent.relative_to(root)
                number = numbers.setdefault(folder, 0)
                numbers[folder] += 1
                name = f"{area}-{self.number:06d}-{number:04d}{SUFFIX}"
                yield self._relative(path), (folder / name).as_posix()

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.out).as_posix()


@contextmanager
def begin(out: Path) -> Iterator[Run]:
    """Give a run for the time of a block; without `Run.commit` nothing has happened after it.

    Raises InputError where the folder is not ours, cannot be made or written, BusyError where another run is at
    work in it, and JobError where the disk is full or fails, or has lost files of an earlier run.
    """
    check_own(out)
    with _locked(out):
        try:
            recover(out)
            run = Run(out, read_manifest(out))
            try:
                run.staging.mkdir(mode=0o700)
                yield run
            finally:
                # A journal means that the run counts, whatever went wrong after it: its files must stay.
                if not (out / JOURNAL).exists():
                    shutil.rmtree(run.staging, ignore_errors=True)
        except ConnectionError:
            raise  # Spark has gone, which is nothing about the folder.
        except OSError as error:
            raise JobError(f"{error.filename or out}: {error.strerror or error}") from error


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Hold the folder's lock; a folder that has nothing but the lock in the end goes with it."""
    lock = -1
    try:
        while lock < 0:
            _make(out)
            with contextlib.suppress(FileNotFoundError):
                lock = _lock(out)
    except OSError as error:
        raise InputError(f"{out}: the output folder cannot be made or written: {error.strerror}") from error
    try:
        yield
    finally:
        try:
            if [path.name for path in out.iterdir()] == [LOCK]:
                (out / LOCK).unlink()
                with contextlib.suppress(OSError):
                    out.rmdir()
        finally:
            os.close(lock)


def _make(out: Path) -> None:
    """Make the folder and those above it that are not there, so that a power cut does not take them away."""
    made = [path for path in (out, *out.parents) if not path.exists()]
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in made:
        # A folder that may be written and not read cannot be synced; the run can go on all the same.
        with contextlib.suppress(PermissionError):
            sync(path.parent)


def _lock(out: Path) -> int:
    """Return the descriptor that holds the lock; FileNotFoundError where the file was removed meanwhile."""
    lock = os.open(out / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), os.stat(out / LOCK)):
            raise FileNotFoundError
    except BlockingIOError:
        os.close(lock)
        raise BusyError(f"{out}: another run is at work there; wait for it or name another folder") from None
    except FileNotFoundError:
        os.close(lock)
        raise
    return lock


def check_own(out: Path) -> None:
    """Raise InputError unless `out` is absent, empty or an earlier output."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: a file; name a folder for the output")
    if not out.is_dir() or (out / MANIFEST).is_file():
        return
    ours = (LOCK, JOURNAL, ASIDE)
    foreign = [path for path in out.iterdir() if path.name not in ours and not path.name.startswith(STAGING)]
    if foreign and not (out / JOURNAL).is_file():
        raise InputError(f"{out}: the folder is not empty and not an earlier output, it is left alone")


def visible_files(folder: Path) -> list[Path]:
    """Return the Parquet files below a folder that Spark would read, sorted."""
    return sorted(path for path in folder.rglob(f"*{SUFFIX}") if path.name[0] not in "._")


def _add_rows(rows: dict[str, int], folder: Path, number: int) -> None:
    """Count rows for the table whose partition folder this is, relative to the output folder."""
    table = "/".join(part for part in folder.parts if "=" not in part)
    rows[table] = rows.get(table, 0) + number


def _rows_in(path: Path) -> int:
    return pq.read_metadata(path).num_rows
