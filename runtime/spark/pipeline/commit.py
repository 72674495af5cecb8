"""Transactions on an output folder: after a run, all of its files are visible, or none.

A run writes to ``.staging-N-…`` inside the folder. Spark, Arrow and DuckDB ignore hidden names. The name ends with
random digits: if a program is killed, Spark on other machines may write for a while, and must not write into the
staging folder of the next run.

Commit: sync the staged files and their folders; write a journal that lists the moves and removals, and sync it. From
here on the run counts. Then remove the replaced files, make the moves, with ``manifest.json`` last, and remove the
journal. The next run finds no journal, and deletes what was staged; or a journal, and executes it again. A move that
was made has no source any more, so repeating it does nothing.

Readers see complete files only. During the moves they may see tables of two runs, but never files of a run that did
not commit. The lock on ``.lock``, which ends with its process, keeps out a second run.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec
import pyarrow.parquet as pq

from specwire.runtime.spark.errors import BusyError, InputError, JobError
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


Progress = Callable[[str, int, int], None]
"""Called before each step of a run, with its name, the number of steps done, and the number of steps."""


class Steps:
    """Reports the steps of a run, whose number is known when it begins."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def begin(self, step: str) -> None:
        """Report that a step begins."""
        if self._progress:
            self._progress(step, self._done, self._total)
        self._done += 1


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


JOURNAL = ".journal.json"
ASIDE = f"{JOURNAL}.tmp"
"""The journal before it counts."""
STAGING = ".staging-"


class Journal(msgspec.Struct, frozen=True):
    """A run that counts: paths in the output folder, from and to, and what is removed."""

    run: int
    moves: tuple[tuple[str, str], ...]
    removals: tuple[str, ...]


def write_journal(out: Path, journal: Journal) -> None:
    """Put a journal in place; from here on its run counts. What it names must be synced."""
    aside = out / ASIDE
    aside.write_bytes(msgspec.json.encode(journal))
    sync(aside)
    os.replace(aside, out / JOURNAL)
    sync(out)


def recover(out: Path) -> None:
    """Finish or drop what an earlier run left; the caller holds the lock.

    Raises InputError where its journal cannot be understood, and JobError where a file that it names is lost.
    """
    if (out / JOURNAL).exists():
        perform(out, _read_journal(out / JOURNAL))
    (out / ASIDE).unlink(missing_ok=True)
    _drop_staged(out)


def perform(out: Path, journal: Journal) -> None:
    """Make what is left to do of a journal, and remove it; JobError, and nothing is done, where a file is lost."""
    for source, target in journal.moves:
        if not ((out / source).exists() or (out / target).exists()):
            raise JobError(
                f"{out / target}: run {journal.run} was committed and this file of it is lost; "
                "name another folder for the output"
            )
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
        sync(folder)
    (out / JOURNAL).unlink(missing_ok=True)
    _drop_staged(out)


def _drop_staged(out: Path) -> None:
    """Remove what was staged, as far as it can be: what a Spark of a killed program still writes goes next time."""
    for path in out.glob(f"{STAGING}*"):
        shutil.rmtree(path, ignore_errors=True)


def _read_journal(path: Path) -> Journal:
    try:
        journal = msgspec.json.decode(path.read_bytes(), type=Journal)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(_say_damaged(path, str(error))) from error
    names = map(Path, (*journal.removals, *(name for move in journal.moves for name in move)))
    for name in names:
        if name.is_absolute() or ".." in name.parts:
            raise InputError(_say_damaged(path, f"it names {name}, which is not in the folder"))
    return journal


def _say_damaged(path: Path, what: str) -> str:
    return (
        f"{path}: the journal of a run that did not end cannot be followed: {what}; "
        "name another folder for the output"
    )


def sync(path: Path) -> None:
    """Have a file's content, or a folder's names, on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
