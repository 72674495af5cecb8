"""The folder that a pipeline writes: made aside, then put in place by renaming.

A run that fails leaves the old output as it was. A folder that is not a pipeline's output is never replaced:
`MARK` tells.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from specwire.runtime.spark.errors import InputError

MARK = "summary.json"


def check_replaceable(out: Path, capture: Path) -> None:
    """Raise InputError unless `out` is absent, empty or an earlier output, and apart from the capture."""
    target, source = out.resolve(), capture.resolve()
    if target == source or target in source.parents or source in target.parents:
        raise InputError(f"{out}: the output must lie apart from the capture folder {capture}")
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: the output would replace a file")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise InputError(f"{out}: the folder is not empty and not an earlier output, it is left alone")


@contextmanager
def replace_folder(out: Path) -> Iterator[Path]:
    """Give a folder to write to, which becomes `out` when the block ends well and vanishes when it does not."""
    target = out.resolve()
    aside = target.with_name(f".{target.name}.{os.getpid()}.new")
    before = target.with_name(f".{target.name}.{os.getpid()}.old")
    try:
        aside.mkdir(mode=0o700, parents=True)
    except OSError as error:
        raise InputError(f"{out}: the output folder cannot be made: {error.strerror}") from error
    try:
        yield aside
        if target.exists():
            target.rename(before)
        aside.rename(target)
    finally:
        if before.exists() and not target.exists():
            before.rename(target)
        shutil.rmtree(aside, ignore_errors=True)
        shutil.rmtree(before, ignore_errors=True)
