"""Writing of an imported protocol to its folder: all files or none.

A new folder is written under a temporary name and then renamed. In an existing folder, a full disk
or another error leaves the old files intact.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from specwire.generator.abnf.sources import GRAMMAR
from specwire.generator.documents.importing import Imported
from specwire.generator.emit.files import write_together
from specwire.generator.profile.reader import PROFILE


def write_imported(imported: Imported, folder: Path) -> list[Path]:
    """Write the grammar, the profile and the payloads to `folder`; return the files that changed.

    Raises:
        OSError: the folder cannot be written.
    """
    changed = changed_files(imported, folder)
    if changed and not folder.exists():
        _write_folder(folder, changed)
    elif changed:
        write_together(changed)
    return list(changed)


def changed_files(imported: Imported, folder: Path) -> dict[Path, bytes]:
    """Return the content of those files in `folder` that the import changes."""
    files = {folder / payload.table.json_schema: payload.text.encode() for payload in imported.payloads}
    if imported.grammar_text:
        files[folder / GRAMMAR] = imported.grammar_text.encode()
    files[folder / PROFILE] = imported.profile_text.encode()
    return {path: octets for path, octets in files.items() if not _holds(path, octets)}


def _holds(path: Path, octets: bytes) -> bool:
    return path.is_file() and path.read_bytes() == octets


def _write_folder(folder: Path, files: dict[Path, bytes]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    aside = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        aside.mkdir()
        for path, octets in files.items():
            place = aside / path.relative_to(folder)
            place.parent.mkdir(exist_ok=True)
            place.write_bytes(octets)
        aside.rename(folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
