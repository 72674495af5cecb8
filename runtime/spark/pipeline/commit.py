"""Transactions on an output folder: after a run, all of its files are visible, or none.

A run writes to ``.staging-N-…`` inside the folder. Spark, Arrow and DuckDB ignore hidden names. The
name ends with random digits: after a program is killed, Spark on other machines may continue to
write for a while, and must not write into the staging folder of the next run.

Steps of a commit:

1. Sync the staged files and their folders.
2. Write a journal that lists the moves and removals, and sync it. The run is now committed.
3. Remove the replaced files, and make the moves, ``manifest.json`` last.
4. Remove the journal.

If the next run finds no journal, it deletes the staged files. If it finds one, it executes the
journal again. A completed move has no source any more, so repeating it does nothing.

Readers see complete files only. During the moves they may see tables of two runs, but never files
of a run that did not commit. The lock on ``.lock`` excludes a second run. It ends with its process.
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
    """Kind of a staged file. Its name in the folder begins with this word and the run's number."""

    ADDED = "run"
    """The file stays."""
    OPEN = "open"
    """The file holds rows that may still change. The next run replaces it."""


Progress = Callable[[str, int, int], None]
"""Called before each step of a run, with its name, the number of steps done, and the total."""


class Steps:
    """Progress reporter for the steps of a run. Their number is known at the beginning."""

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
    """One run in progress, created by `begin`."""

    def __init__(self, out: Path, before: Manifest) -> None:
        self.out = out
        self.before = before
        self.number = before.run + 1
        self.staging = out / f"{STAGING}{self.number:06d}-{secrets.token_hex(4)}"
        self.replaced: set[Path] = set()

    def folder(self, area: Area, table: str) -> Path:
        """Return the staging folder of a table's Parquet files or partition folders.

        It may not exist yet.
        """
        return self.staging / area / table

    def staged(self, table: str, area: Area = Area.ADDED) -> list[Path]:
        """Return the Parquet files that have been staged for a table."""
        return visible_files(self.folder(area, table))

    def replace(self, files: Iterable[Path]) -> None:
        """Mark files of the output folder for removal at the commit."""
        self.replaced.update(files)

    def write(self, name: str, octets: bytes) -> None:
        """Stage a file outside the tables, such as ``summary.json``; it replaces an earlier one."""
        path = self.staging / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(octets)

    def count_rows(self) -> dict[str, int]:
        """Return the number of rows of each table after the commit, by its path in the folder."""
        rows = dict(self.before.rows)
        for path in self.replaced:
            _add_rows(rows, path.parent.relative_to(self.out), -_rows_in(path))
        for area in Area:
            for path in visible_files(self.staging / area):
                _add_rows(rows, path.parent.relative_to(self.staging / area), _rows_in(path))
        return dict(sorted(rows.items()))

    def commit(self, manifest: Manifest) -> Manifest:
        """Commit the run; return the manifest as written, with the run's number and row counts."""
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
        """Yield the staged files, then all folders between them and the output folder."""
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
    """Yield a run for the block. Without a call of `Run.commit` the folder does not change.

    Raises InputError if the folder is not a pipeline output, or cannot be created or written;
    BusyError if another run uses it; JobError if the disk is full or fails, or if files of an
    earlier run are lost.
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
                # A journal means that the run is committed, whatever failed later: keep its files.
                if not (out / JOURNAL).exists():
                    shutil.rmtree(run.staging, ignore_errors=True)
        except ConnectionError:
            raise  # Spark is gone; the folder is not the cause.
        except OSError as error:
            raise JobError(f"{error.filename or out}: {error.strerror or error}") from error


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Hold the folder's lock for the block; then remove the folder if it holds only the lock."""
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
    """Create the folder and its missing parents, durable across a power cut."""
    made = [path for path in (out, *out.parents) if not path.exists()]
    out.mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in made:
        # A folder with write but no read permission cannot be synced; the run continues.
        with contextlib.suppress(PermissionError):
            sync(path.parent)


def _lock(out: Path) -> int:
    """Return the descriptor that holds the lock; FileNotFoundError if the file has been removed."""
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
    """Return, sorted, the Parquet files below a folder that Spark would read."""
    return sorted(path for path in folder.rglob(f"*{SUFFIX}") if path.name[0] not in "._")


def _add_rows(rows: dict[str, int], folder: Path, number: int) -> None:
    """Add rows to the count of a table; `folder` is a partition folder, relative to the output."""
    table = "/".join(part for part in folder.parts if "=" not in part)
    rows[table] = rows.get(table, 0) + number


def _rows_in(path: Path) -> int:
    return pq.read_metadata(path).num_rows


JOURNAL = ".journal.json"
ASIDE = f"{JOURNAL}.tmp"
"""The journal while it is written, before it takes effect."""
STAGING = ".staging-"


class Journal(msgspec.Struct, frozen=True):
    """Journal of a committed run: moves (from, to) and removals, as paths in the output folder."""

    run: int
    moves: tuple[tuple[str, str], ...]
    removals: tuple[str, ...]


def write_journal(out: Path, journal: Journal) -> None:
    """Write a journal, which commits its run. The files that it names must be synced before."""
    aside = out / ASIDE
    aside.write_bytes(msgspec.json.encode(journal))
    sync(aside)
    os.replace(aside, out / JOURNAL)
    sync(out)


def recover(out: Path) -> None:
    """Complete or discard the work that an earlier run left; the caller holds the lock.

    Raises InputError if the journal is damaged, and JobError if a file that it names is lost.
    """
    if (out / JOURNAL).exists():
        perform(out, _read_journal(out / JOURNAL))
    (out / ASIDE).unlink(missing_ok=True)
    _drop_staged(out)


def perform(out: Path, journal: Journal) -> None:
    """Execute the remaining steps of a journal, and remove it.

    Raises JobError before any change if a file is lost.
    """
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
    """Remove staged files as far as possible.

    After a program was killed, its Spark may still write. The next run removes those files.
    """
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
            raise InputError(_say_damaged(path, f"it names {name}, which is outside the folder"))
    return journal


def _say_damaged(path: Path, what: str) -> str:
    return f"{path}: the journal of an unfinished run is damaged: {what}; name another folder for the output"


def sync(path: Path) -> None:
    """Sync a file's content, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
