"""The files that the job distributes, and their digests.

They are real ones: modules of the running Python's standard library, in their folders, so that names,
sizes and contents are what people have. Beside them stand what transfers stumble over: an empty file,
a name with spaces and letters beyond ASCII, and a file of many chunks.
"""

from __future__ import annotations

import hashlib
import random
import shutil
import sysconfig
from itertools import islice
from pathlib import Path

SMALL_FILES = 300
LARGE_OCTETS = 64 * 1024 * 1024
BLOCK = 1024 * 1024

EMPTY = "empty.txt"
SPACED = "Bärenwald och älvdal, karta.txt"
LARGE = "large.bin"
CHANGED = "notes/changed.txt"
DOOMED = "notes/deleted.txt"
ADDED = "notes/added.txt"


def make_files(folder: Path, *, small_files: int = SMALL_FILES, large_octets: int = LARGE_OCTETS) -> int:
    """Fill `folder`, which must not exist, with the files of the job; return how many there are."""
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
    (folder / CHANGED).write_text("as it was before the transfer\n", encoding="utf-8")
    (folder / DOOMED).write_text("gone before the transfer ends\n", encoding="utf-8")
    _write_large(folder / LARGE, large_octets)
    return sum(1 for path in folder.rglob("*") if path.is_file())


def _write_large(path: Path, octets: int) -> None:
    """Octets that do not repeat, so that chunks in the wrong order would show; the same in every run."""
    source = random.Random(octets)
    with path.open("wb") as file:
        for start in range(0, octets, BLOCK):
            file.write(source.randbytes(min(BLOCK, octets - start)))


def change_files(folder: Path) -> None:
    """Change one file, delete one and add one, as users do while others transfer."""
    (folder / CHANGED).write_text("as it is now, and longer than it was\n" * 20, encoding="utf-8")
    (folder / DOOMED).unlink()
    (folder / ADDED).write_text("new since the transfer began\n", encoding="utf-8")


def digest_folder(folder: Path) -> dict[str, str]:
    """Return the SHA-1 of every file below `folder` by its relative name; hidden files are left out."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        if path.is_file() and not any(part.startswith(".") for part in name.parts):
            with path.open("rb") as file:
                found[name.as_posix()] = hashlib.file_digest(file, "sha1").hexdigest()
    return found
