"""Writing of an imported protocol to its folder: both files or none.

A new folder is written under a temporary name and then renamed. In an existing folder, both files
are written under temporary names before the first is replaced, so that a full disk leaves the old
files intact.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from specwire.generator.abnf.sources import GRAMMAR
from specwire.generator.documents.importing import Imported
from specwire.generator.profile.reader import PROFILE


def write_imported(imported: Imported, folder: Path) -> list[Path]:
    """Write the grammar and the profile to `folder`; return the files that changed.

    Raises:
        OSError: the folder cannot be written.
    """
    files = {
        folder / GRAMMAR: imported.grammar_text.encode(),
        folder / PROFILE: imported.profile_text.encode(),
    }
    changed = {path: octets for path, octets in files.items() if not _holds(path, octets)}
    if not changed:
        return []
    if not folder.exists():
        _write_folder(folder, changed)
    else:
        _replace(changed)
    return list(changed)


def _holds(path: Path, octets: bytes) -> bool:
    return path.is_file() and path.read_bytes() == octets


def _write_folder(folder: Path, files: dict[Path, bytes]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        aside.mkdir()
        for path, octets in files.items():
            (aside / path.name).write_bytes(octets)
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _replace(files: dict[Path, bytes]) -> None:
    staged: list[tuple[Path, Path]] = []
    try:
        for path, octets in files.items():
            staged.append((path.with_name(f".{path.name}.{os.getpid()}.tmp"), path))
            staged[-1][0].write_bytes(octets)
        for aside, path in staged:
            aside.replace(path)
    finally:
        for aside, _ in staged:
            aside.unlink(missing_ok=True)
