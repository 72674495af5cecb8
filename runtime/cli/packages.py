"""Packages that a command uses: the options ``--packages`` and ``--grammars``, and compiling on the fly.

A grammar of ``--grammars`` is compiled once: the package stays in the user's cache folder
(``$XDG_CACHE_HOME/specwire/packages``), below the digest of all grammars in the folder and of the
compiler. A package is written beside its place and renamed, so commands that run at once do not see
half a package.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

import specwire
from specwire.runtime.cli.console import fail, meant
from specwire.runtime.cli.grammars import compile_all, grammars_folder, protocol_folders
from specwire.runtime.packages import REGISTRY, cache_folder, package_names

Packages = Annotated[
    list[str] | None,
    typer.Option(
        "--packages",
        metavar="MODULE",
        help="Module or folder (with a '/') of generated packages to know as well; may be repeated.",
        show_default=False,
    ),
]
Grammars = Annotated[
    Path | None,
    typer.Option(
        "--grammars",
        metavar="DIR",
        help="Folder of grammars whose packages are to be known as well: compiled now, and kept.",
        show_default=False,
    ),
]

_MAX_CACHED = 32
"""Compiled folders of grammars that are kept; those that were used longest ago are deleted."""

_DIGEST_LENGTH = 32
_COMPILER_SUFFIXES = (".py", ".j2", ".lark", ".java")
"""Files of the compiler whose change compiles grammars again."""


def use_packages(packages: Sequence[str] | None, grammars: Path | None, names: Sequence[str] = ()) -> None:
    """Add the packages of ``--packages`` and ``--grammars`` to the registry.

    Args:
        names: protocols that the command was asked for, which may differ from those that specwire brings. Of
            `grammars` only these are compiled, if it has one of them.

    Raises:
        PackageError: there is no such package, or another one is known under its name.
        SpecError: a grammar has a fault.
    """
    if packages:
        # As `python -m` does; last, so that no file here hides a module that is installed.
        sys.path.append(os.getcwd())
        REGISTRY.add(packages, "--packages", names)
    if grammars is not None:
        REGISTRY.add(_compiled(grammars_folder(grammars), names), f"--grammars {grammars}", names)


def complete_protocol(incomplete: str) -> list[str]:
    """Return the names that begin so: what a shell offers where a protocol is expected."""
    return [name for name in package_names() if name.startswith(incomplete)]


def class_of_message(package: ModuleType, name: str) -> str:
    """Return the class of a message, which may be named as the class or as the grammar does, in any case.

    Another name ends the command.
    """
    classes: Mapping[str, Any] = package.MESSAGES
    known = {spelling.lower(): own for own, cls in classes.items() for spelling in (cls.NAME, own)}
    if name.lower() not in known:
        protocol = next(iter(classes.values())).PROTOCOL
        others = meant(name, classes) or f"; it has {', '.join(classes)}"
        fail(f"{protocol} has no message {name!r}{others}")
    return known[name.lower()]


def _compiled(grammars: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield the folders of the packages of a folder of grammars, compiled where they are not in the cache."""
    folders = protocol_folders(grammars, [])
    wanted = [folder for folder in folders if folder.name in names] or folders
    kept = cache_folder() / _digest(grammars)
    for folder in wanted:
        found = kept / folder.name
        if not found.is_dir():
            _compile(folder, found)
        os.utime(kept)  # Used now: see `_drop_oldest`.
        yield from (path for path in sorted(found.iterdir()) if path.is_dir())


def _compile(folder: Path, out: Path) -> None:
    """Write the package of one protocol to the folder `out`, which appears when it is complete."""
    try:
        from specwire.generator.packages import package_files
        from specwire.generator.targets import choose_targets

        (compiled,) = compile_all([folder])
        targets = choose_targets(None)
        files = package_files([compiled.protocol], targets, compilations=[compiled])
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in {"specwire", ""}:
            raise
        fail(f"--grammars needs the compiler ({error.name} is missing): pip install 'specwire[compile]'")
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".compiling-", dir=out.parent))
    try:
        for path, text in files.items():
            (aside / path).parent.mkdir(parents=True, exist_ok=True)
            (aside / path).write_text(text, encoding="utf-8")
        try:
            aside.rename(out)
        except OSError:
            if not out.is_dir():  # Otherwise another command was first, with the same octets.
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    _drop_oldest(out.parent.parent)


def _digest(grammars: Path) -> str:
    """Return the digest of the grammars, which may refer to each other, and of the compiler."""
    digest = hashlib.sha256(f"{specwire.__version__} {sys.version_info[:2]}".encode())
    for path in sorted(grammars.glob("*/*")):
        if path.is_file():
            content = path.read_bytes()
            digest.update(f"\n{path.relative_to(grammars).as_posix()} {len(content)}\n".encode() + content)
    # In a checkout the compiler changes without its version.
    generator = Path(specwire.__file__).parent / "generator"
    for path in sorted(path for path in generator.rglob("*") if path.suffix in _COMPILER_SUFFIXES):
        found = path.stat()
        digest.update(f"\n{path.relative_to(generator)} {found.st_size} {found.st_mtime_ns}".encode())
    return digest.hexdigest()[:_DIGEST_LENGTH]


def _drop_oldest(folder: Path) -> None:
    """Delete the folders of grammars that were used longest ago; other commands may delete at the same time."""
    with suppress(OSError):
        folders = (path for path in folder.iterdir() if len(path.name) == _DIGEST_LENGTH)
        kept = sorted(folders, key=lambda path: path.stat().st_mtime_ns)
        for path in kept[:-_MAX_CACHED]:
            shutil.rmtree(path, ignore_errors=True)
