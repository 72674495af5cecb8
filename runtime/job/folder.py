"""The folder that a job works in: an earlier job's is emptied, what is anybody else's is left alone.

`MARK` in it says that it is a job's, and what came of it; it is locked while a job is at work.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MARK = "job.json"


class JobFolderError(Exception):
    """The folder for the job's output cannot be used; the text says why."""


def check_folder(out: Path) -> None:
    """Raise JobFolderError where `out` is there and neither empty nor an earlier job's."""
    if out.exists() and not out.is_dir():
        raise JobFolderError(f"{out} is a file; name a folder with --out")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise JobFolderError(f"{out} is not empty and not the output of an earlier run; it is left alone")


@contextmanager
def own_folder(out: Path) -> Iterator[None]:
    """Empty the folder of an earlier run, mark it as the job's, and keep other runs out of it meanwhile.

    Raises:
        JobFolderError: it is somebody else's, or another run is at work in it.
    """
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    with (out / MARK).open("a+b") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise JobFolderError(f"another run is at work in {out}; name another folder with --out") from None
        for path in out.iterdir():
            if path.name != MARK:
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        write_mark(out, b'{"running": true}\n')
        yield


def write_mark(out: Path, text: bytes) -> None:
    """Write into the file that is there: a new one in its place would have no lock."""
    with (out / MARK).open("r+b") as mark:
        mark.truncate()
        mark.write(text)
