"""Transactions on an output folder: after a run, all of its files are in place, or none.

A run writes to ``.staging-N-…`` inside the folder. Spark, Arrow and DuckDB ignore hidden names. The
name ends with random digits: after a program is killed, Spark on other machines may continue to
write for a while, and must not write into the staging folder of the next run.

Steps of a commit:

1. Sync the staged files and their folders.
2. Write a journal that lists the moves and removals, and sync it. The run is now committed.
3. In one folder after the other, move the new files into place and remove those they replace.
   ``manifest.json`` is moved last.
4. Sync the folders, and remove the journal.

If the next run finds no journal, it deletes the staged files. If it finds one, it executes the
journal again. A completed move has no source any more, so repeating it does nothing.

A new file never has the name of an earlier one. Readers see complete files only. During step 3 they
may see tables of two runs, and in one partition new files beside those that these replace. A run
that did not commit is never visible. The lock on ``.lock`` excludes a second run. It ends with its
process.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections import Counter
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
JOURNAL = ".journal.json"
ASIDE = f"{JOURNAL}.tmp"
"""The journal while it is written, before it takes effect."""
STAGING = ".staging-"
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
        self._files: dict[str, list[Path]] = {}

    def files(self, table: str) -> list[Path]:
        """Return, sorted, the committed files of a table, which do not change before the commit."""
        if table not in self._files:
            self._files[table] = visible_files(self.out / table)
        return self._files[table]

    def kept(self, table: str) -> list[Path]:
        """Return, sorted, the committed files of a table that the run does not replace."""
        return [path for path in self.files(table) if path not in self.replaced]

    def folder(self, area: Area, table: str) -> Path:
        """Return the staging folder of a table's Parquet files or partition folders.

        It may not exist yet.
        """
        return self.staging / area / table

    def staged(self, table: str, area: Area = Area.ADDED) -> list[Path]:
        """Return, sorted, the Parquet files that have been staged for a table."""
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
        rows = Counter(self.before.rows)
        added = ((self.folder(area, ""), self.staged("", area), 1) for area in Area)
        for root, paths, sign in ((self.out, self.replaced, -1), *added):
            for path in paths:
                parts = path.parent.relative_to(root).parts
                table = "/".join(part for part in parts if "=" not in part)
                rows[table] += sign * pq.read_metadata(path).num_rows
        return dict(sorted(rows.items()))

    def commit(self, manifest: Manifest) -> None:
        """Commit the run with this manifest, in which the run's number and row counts are set."""
        committed = msgspec.structs.replace(manifest, run=self.number, rows=self.count_rows())
        self.write(MANIFEST, committed.to_json())
        moves = tuple(self._moves())
        paths = [self.out / source for source, _ in moves]
        folders = {folder for path in paths for folder in _folders_between(self.out, path)}
        for path in (*paths, *sorted(folders)):
            sync(path)
        journal = Journal(self.number, moves, tuple(sorted(map(self._relative, self.replaced))))
        write_journal(self.out, journal)
        perform(self.out, journal)

    def _moves(self) -> Iterator[tuple[str, str]]:
        """Yield the staged and the final path of each file, by folder, ``manifest.json`` last."""
        for area in Area:
            numbers: Counter[Path] = Counter()
            for path in self.staged("", area):
                folder = path.parent.relative_to(self.folder(area, ""))
                name = f"{area}-{self.number:06d}-{numbers[folder]:04d}{SUFFIX}"
                numbers[folder] += 1
                yield self._relative(path), (folder / name).as_posix()
        for path in sorted((self.staging / "files").iterdir(), key=lambda path: path.name == MANIFEST):
            yield self._relative(path), path.name

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
    import fcntl  # Not on Windows.

    busy = BusyError(f"{out}: another run is at work there; wait for it or name another folder")
    try:
        _make(out)
        lock = os.open(out / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        raise busy from None  # A first run has failed just now, and removes the folder.
    except OSError as error:
        raise InputError(f"{out}: the output folder cannot be made or written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = os.path.samestat(os.fstat(lock), os.stat(out / LOCK))
        except (BlockingIOError, FileNotFoundError):
            alone = False
        if not alone:
            raise busy
        try:
            yield
        finally:
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


def check_own(out: Path) -> None:
    """Raise InputError unless `out` is absent, empty or an earlier output."""
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: a file; name a folder for the output")
    if not out.is_dir() or (out / MANIFEST).is_file() or (out / JOURNAL).is_file():
        return
    names = {path.name for path in out.iterdir()} - {LOCK, ASIDE}
    if not all(name.startswith(STAGING) for name in names):
        raise InputError(f"{out}: the folder is not empty and not an earlier output, it is left alone")


def visible_files(folder: Path) -> list[Path]:
    """Return, sorted, the Parquet files below a folder that Spark would read."""
    return sorted(path for path in folder.rglob(f"*{SUFFIX}") if path.name[0] not in "._")


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
    moves: dict[Path, list[tuple[Path, Path]]] = {}
    for source, target in ((out / source, out / target) for source, target in journal.moves):
        if not (source.exists() or target.exists()):
            raise JobError(
                f"{target}: run {journal.run} was committed and this file of it is lost; "
                "name another folder for the output"
            )
        moves.setdefault(target.parent, []).append((source, target))
    removals: dict[Path, list[Path]] = {}
    for path in (out / name for name in journal.removals):
        removals.setdefault(path.parent, []).append(path)
    folders = sorted({*moves, *removals}, key=lambda folder: (folder == out, folder))
    for folder in folders:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for source, target in moves.get(folder, ()):
            with contextlib.suppress(FileNotFoundError):
                os.replace(source, target)
        for path in removals.get(folder, ()):
            path.unlink(missing_ok=True)
    for changed in {*folders, *(above for folder in folders for above in _folders_between(out, folder))}:
        sync(changed)
    (out / JOURNAL).unlink(missing_ok=True)
    _drop_staged(out)


def _folders_between(out: Path, path: Path) -> list[Path]:
    """Return the folders above a path, up to the output folder."""
    return [folder for folder in path.parents if folder.is_relative_to(out)]


def _drop_staged(out: Path) -> None:
    """Remove staged files as far as possible.

    After a program was killed, its Spark may still write. The next run removes those files.
    """
    for path in out.glob(f"{STAGING}*"):
        shutil.rmtree(path, ignore_errors=True)


def _read_journal(path: Path) -> Journal:
    try:
        journal = msgspec.json.decode(path.read_bytes(), type=Journal)
        names = map(Path, (*journal.removals, *(name for move in journal.moves for name in move)))
        if outside := [name for name in names if name.is_absolute() or ".." in name.parts]:
            raise ValueError(f"it names {outside[0]}, which is outside the folder")
    except ValueError as error:
        raise InputError(
            f"{path}: the journal of an unfinished run is damaged: {error}; "
            "name another folder for the output"
        ) from error
    return journal


def sync(path: Path) -> None:
    """Sync a file's content, or a folder's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
