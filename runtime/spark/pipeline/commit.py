"""All of a run or nothing of it: how files come into an output folder.

A run writes into ``.staging-N`` inside the folder; hidden names are passed over by Spark, Arrow and DuckDB.
To commit, the staged files are synced, then a journal is written that lists what moves where and what goes,
and synced: from here on the run counts. The moves are made, files that the run replaces are removed,
``manifest.json`` moves last, and the journal is removed. Whoever begins the next run finds either no journal,
and drops what was staged, or a journal, and does again what it says: a move that was made has no source any
more, so doing it again does nothing.

So a reader of the folders sees whole files only. For the moment of the moves it may see some tables of the new
run and others of the old; none at all of a run that did not commit.

Two runs at once are kept apart by a lock on ``.lock``, which ends with its process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from specwire.runtime.spark.errors import InputError, JobError
from specwire.runtime.spark.pipeline.manifest import NAME as MANIFEST
from specwire.runtime.spark.pipeline.manifest import Manifest, read_manifest

LOCK = ".lock"
JOURNAL = ".journal.json"
STAGING = ".staging-"
SUFFIX = ".parquet"


class Area(StrEnum):
    """What becomes of a staged file; its name in the folder begins with this word and the run's number."""

    ADDED = "run"
    """It stays."""
    OPEN = "open"
    """It holds rows that may still change: the next run replaces it."""


class Journal(msgspec.Struct, frozen=True):
    """A run that counts: paths in the output folder, from and to, and what is removed."""

    run: int
    moves: tuple[tuple[str, str], ...]
    removals: tuple[str, ...]


class Run:
    """One run under way; made by `begin`."""

    def __init__(self, out: Path, before: Manifest) -> None:
        self.out = out
        self.before = before
        self.number = before.run + 1
        self.staging = out / f"{STAGING}{self.number:06d}"
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
        for source, _ in moves:
            _sync(self.out / source)
        journal = Journal(self.number, tuple(moves), removals)
        _write_journal(self.out, journal)
        _perform(self.out, journal)
        return committed

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

    Raises InputError where the folder is not ours, cannot be made or written, or another run is at work in
    it, and JobError where the disk is full or fails.
    """
    check_own(out)
    with _locked(out):
        recover(out)
        run = Run(out, read_manifest(out))
        try:
            run.staging.mkdir(mode=0o700)
            yield run
        except OSError as error:
            raise JobError(f"{error.filename or out}: {error.strerror or error}") from error
        finally:
            # A journal means that the run counts, whatever went wrong after it: its files must stay.
            if not (out / JOURNAL).exists():
                shutil.rmtree(run.staging, ignore_errors=True)


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Hold the folder's lock; a folder that has nothing but the lock in the end goes with it."""
    lock = -1
    try:
        while lock < 0:
            out.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                lock = _lock(out)
    except OSError as error:
        raise InputError(f"{out}: the output folder cannot be made: {error.strerror}") from error
    try:
        yield
    finally:
        if [path.name for path in out.iterdir()] == [LOCK]:
            (out / LOCK).unlink()
            with contextlib.suppress(OSError):
                out.rmdir()
        os.close(lock)


def _lock(out: Path) -> int:
    """Return the descriptor that holds the lock; FileNotFoundError where the file was removed meanwhile."""
    lock = os.open(out / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(lock), os.stat(out / LOCK)):
            raise FileNotFoundError
    except BlockingIOError:
        os.close(lock)
        raise InputError(f"{out}: another run is at work there; wait for it or name another folder") from None
    except FileNotFoundError:
        os.close(lock)
        raise
    return lock


def recover(out: Path) -> None:
    """Finish or drop what an earlier run left; the caller holds the lock."""
    with contextlib.suppress(FileNotFoundError):
        _perform(out, msgspec.json.decode((out / JOURNAL).read_bytes(), type=Journal))
    for path in out.glob(f"{STAGING}*"):
        shutil.rmtree(path)


def check_own(out: Path) -> None:
    """Raise InputError unless `out` is absent, empty or an earlier output."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: a file; name a folder for the output")
    if not out.is_dir() or (out / MANIFEST).is_file():
        return
    foreign = [path for path in out.iterdir() if path.name != LOCK and not path.name.startswith(STAGING)]
    if foreign and not (out / JOURNAL).is_file():
        raise InputError(f"{out}: the folder is not empty and not an earlier output, it is left alone")


def visible_files(folder: Path) -> list[Path]:
    """Return the Parquet files below a folder that Spark would read, sorted."""
    return sorted(path for path in folder.rglob(f"*{SUFFIX}") if path.name[0] not in "._")


def _perform(out: Path, journal: Journal) -> None:
    folders = {out}
    for name in journal.removals:
        (out / name).unlink(missing_ok=True)
        folders.add((out / name).parent)
    for source, target in journal.moves:
        if not (out / source).exists():
            continue
        folder = (out / target).parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.replace(out / source, out / target)
        folders |= {folder, *(parent for parent in folder.parents if out in parent.parents)}
    for folder in folders:
        _sync(folder)
    (out / JOURNAL).unlink(missing_ok=True)
    shutil.rmtree(out / f"{STAGING}{journal.run:06d}", ignore_errors=True)


def _write_journal(out: Path, journal: Journal) -> None:
    aside = out / f"{JOURNAL}.tmp"
    aside.write_bytes(msgspec.json.encode(journal))
    _sync(aside)
    os.replace(aside, out / JOURNAL)
    _sync(out)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _add_rows(rows: dict[str, int], folder: Path, number: int) -> None:
    """Count rows for the table whose partition folder this is, relative to the output folder."""
    table = "/".join(part for part in folder.parts if "=" not in part)
    rows[table] = rows.get(table, 0) + number


def _rows_in(path: Path) -> int:
    return pq.read_metadata(path).num_rows
