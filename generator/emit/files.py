"""Files of packages: lay them out, and put them in the place of what is there.

Everything is formatted in memory before the first file is touched, so that a fault in one emitter leaves
the packages as they were. The same input gives the same octets on every machine: the formatter's version is
pinned and its settings are given here, not taken from the user's project.
"""

from __future__ import annotations

import difflib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from errno import EEXIST
from pathlib import Path

from ruff import find_ruff_bin

LINE_LENGTH = 110
COMPILED = (".so", ".pyd", ".jar")
"""How the names of compiled modules end. Generation neither writes nor compares them."""


def format_sources(sources: Mapping[str, str]) -> dict[str, str]:
    """Return the sources, Python laid out by the pinned formatter, imports sorted; keys are file names.

    In a user's project specwire is a library like any other, and so it is sorted here.

    Raises:
        RuntimeError: a source is not Python; an emitter is at fault.
    """
    python = [name for name in sources if name.endswith(".py")]
    with tempfile.TemporaryDirectory(prefix="specwire-") as folder:
        for name in python:
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(sources[name], encoding="utf-8")
        _ruff("check", "--select", "I", "--fix", folder)
        _ruff("format", folder)
        laid_out = {name: Path(folder, name).read_text(encoding="utf-8") for name in python}
        return {name: laid_out.get(name, text) for name, text in sources.items()}


def _ruff(command: str, *arguments: str) -> None:
    settings = ["--isolated", "--no-cache", "--quiet", "--target-version", "py311"]
    if command == "check":
        # Imports as ruff wants them where nobody has set a length; a longer one leaves them so.
        settings += ["--config", "lint.isort.known-third-party=['specwire']"]
    else:
        settings += ["--config", f"line-length={LINE_LENGTH}"]
    run = subprocess.run(
        [os.fspath(find_ruff_bin()), command, *settings, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise RuntimeError(f"ruff {command} refused a generated source:\n{run.stdout}{run.stderr}")


def replace_files(
    folder: Path,
    files: Mapping[str, str],
    *,
    owned: Callable[[Path], bool],
    stale: Callable[[Path], bool] | None = None,
) -> list[Path]:
    """Write `files` into `folder`; return the paths that changed.

    A file whose octets are already right is not touched. Files that `stale` (`owned` where None) says are
    ours and that are not in `files` are removed: a message that the grammar lost leaves no module behind.
    Everything is written aside, under names of this process, before the first file is replaced; so a full
    disk leaves the packages as they were, and two runs at once leave those of one or the other.

    Raises:
        FileExistsError: a file of that name is not ours; nothing was written.
        OSError: the folder cannot be written.
    """
    wrong = {folder / name: text.encode() for name, text in files.items() if not _holds(folder / name, text)}
    for path in wrong:
        if path.exists() and not (path.is_file() and (owned(path) or not path.stat().st_size)):
            raise FileExistsError(EEXIST, "not written by specwire: move it out of the way", str(path))
    staged: list[tuple[Path, Path]] = []
    try:
        for path, octets in wrong.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            staged.append((path.with_name(f".{path.name}.{os.getpid()}.tmp"), path))
            staged[-1][0].write_bytes(octets)
        for aside, path in staged:
            aside.replace(path)
    finally:
        for aside, _ in staged:
            aside.unlink(missing_ok=True)
    strays = _strays(folder, files, stale or owned)
    for path in (*strays, *_compiled_of(strays)):
        path.unlink(missing_ok=True)
    return [*wrong, *strays]


def differences(folder: Path, files: Mapping[str, str], *, stale: Callable[[Path], bool]) -> list[str]:
    """Return a unified diff, a text for each file that differs from what generation would write."""
    found: list[str] = []
    for name, text in files.items():
        path = folder / name
        if not _holds(path, text):
            now = path.read_bytes().decode("utf-8", "replace") if path.is_file() else ""
            lines = difflib.unified_diff(_lines(now), _lines(text), f"{path}", f"{path} (generated)")
            found.append("".join(lines) or f"--- {path}\n+++ {path} (generated)\n")
    found.extend(f"{path}: no grammar generates this file\n" for path in _strays(folder, files, stale))
    return found


def _compiled_of(sources: Iterable[Path]) -> list[Path]:
    """Return the modules that were compiled of sources in Cython and stand beside them; nobody else made them."""
    return [
        path
        for source in sources
        if source.suffix == ".pyx"
        for path in source.parent.glob(f"{source.stem}.*")
        if path.suffix in COMPILED
    ]


def _holds(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _strays(folder: Path, files: Mapping[str, str], stale: Callable[[Path], bool]) -> list[Path]:
    kept = {folder / name for name in files}
    return [path for path in _visible(folder) if path not in kept and path.is_file() and stale(path)]


def _visible(folder: Path) -> list[Path]:
    """Every path below `folder` but those that Python, compilers, editors and other runs of ours keep for themselves."""
    found = (path for path in folder.rglob("*") if path.suffix not in (".pyc", ".tmp", *COMPILED))
    return sorted(path for path in found if not path.name.startswith("."))


def _lines(text: str) -> list[str]:
    """Lines with an end each, as a diff prints them; what else ends a line shows as an escape."""
    lines = [line.replace("\r", "\\r") + "\n" for line in text.split("\n")]
    if lines[-1] == "\n":
        return lines[:-1]
    return [*lines[:-1], lines[-1] + "\\ No newline at end of file\n"]
