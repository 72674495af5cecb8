"""Folder of a job, and the files in it that FILEMQ distributes.

A job's folder contains `MARK`, which is locked while the job runs. The content of the mark
identifies the folder of an earlier job, which is emptied. Any other folder that is not empty is
rejected.

The distributed files are modules of Python's standard library, so names, sizes and contents are
realistic. Special cases are added: an empty file, a name with spaces and non-ASCII letters, and a
file of many chunks.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import random
import shutil
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

MARK = "job.json"

SMALL_FILES = 300
LARGE_OCTETS = 8 * 1024 * 1024
BLOCK_OCTETS = 1024 * 1024

EMPTY = "empty.txt"
SPACED = "Bärenwald och älvdal, karta.txt"
LARGE = "large.bin"
CHANGED = "notes/changed.txt"
DELETED = "notes/deleted.txt"
ADDED = "notes/added.txt"


class JobFolderError(Exception):
    """The folder cannot be used for a job; the text says why."""


def check_folder(out: Path) -> None:
    """Raise JobFolderError if `out` is a file, or is neither empty nor an earlier job's folder."""
    if out.exists() and not out.is_dir():
        raise JobFolderError(f"{out} is a file; name a folder with --out")
    if out.is_dir() and any(out.iterdir()) and not _is_mark(out / MARK):
        raise JobFolderError(f"{out} is not empty and not the output of an earlier run; nothing was changed")


def _is_mark(path: Path) -> bool:
    """Return whether a file is the mark of a job of this or an earlier version.

    A mark states that the job runs, or contains its result.
    """
    try:
        mark = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(mark, dict) and (mark == {"running": True} or {"files", "faults"} <= mark.keys())


@contextmanager
def own_folder(out: Path) -> Iterator[None]:
    """Empty the folder of an earlier job, and lock it for the time of the block.

    Raises:
        JobFolderError: the folder is not a job's, or another job runs in it.
    """
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    with (out / MARK).open("a+b") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JobFolderError(f"another run uses {out}; name another folder with --out") from None
        for path in out.iterdir():
            if path.name != MARK:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        write_mark(out, b'{"running": true}\n')
        yield


def write_mark(out: Path, text: bytes) -> None:
    """Replace the content of the mark in place, because a new file would not be locked."""
    with (out / MARK).open("r+b") as mark:
        mark.truncate()
        mark.write(text)


def make_files(folder: Path, *, small_files: int = SMALL_FILES, large_octets: int = LARGE_OCTETS) -> int:
    """Fill `folder`, which must not exist, with the files to distribute; return their number."""
    folder.mkdir(parents=True)
    library = Path(sysconfig.get_paths()["stdlib"])
    modules = (path for path in sorted(library.rglob("*.py")) if "site-packages" not in path.parts)
    for module in islice(modules, small_files):
        target = folder / "library" / module.relative_to(library)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(module, target)
    (folder / EMPTY).touch()
    (folder / SPACED).write_text("Left at the oak, then två kilometer.\n", encoding="utf-8")
    (folder / "notes").mkdir()
    (folder / CHANGED).write_text("content before the transfer\n", encoding="utf-8")
    (folder / DELETED).write_text("deleted during the transfer\n", encoding="utf-8")
    _write_large(folder / LARGE, large_octets)
    return sum(1 for path in folder.rglob("*") if path.is_file())


def _write_large(path: Path, octets: int) -> None:
    """Write octets that do not repeat, to detect misplaced chunks; the same in every run."""
    source = random.Random(octets)
    with path.open("wb") as file:
        for start in range(0, octets, BLOCK_OCTETS):
            file.write(source.randbytes(min(BLOCK_OCTETS, octets - start)))


def change_files(folder: Path) -> None:
    """Change one file, delete one and add one, as users do during a transfer."""
    (folder / CHANGED).write_text("content after the change, which is longer\n" * 20, encoding="utf-8")
    (folder / DELETED).unlink()
    (folder / ADDED).write_text("added during the transfer\n", encoding="utf-8")


def digest_folder(folder: Path) -> dict[str, str]:
    """Return the SHA-1 of every file below `folder` by its relative name, without hidden files."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            with path.open("rb") as file:
                found[name.as_posix()] = hashlib.file_digest(file, "sha1").hexdigest()
    return found
