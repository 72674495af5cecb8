"""The journal of a commit: what moves where and what goes, so that whoever comes next can finish it.

It counts from when it stands under its name. To follow it twice does nothing more: a move that was made has no
source any more but a target. A file that is in neither place was lost, and is told.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import msgspec

from specwire.runtime.spark.errors import InputError, JobError

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
