"""Packages of a command: the options ``--packages`` and ``--grammars``, and compilation on demand.

A grammar of ``--grammars`` is compiled once. The package is stored in the user's cache folder
(``$XDG_CACHE_HOME/specwire/packages``), below the digest of all grammars in the folder and of the
compiler. A package is written to a temporary folder and renamed, so concurrent commands never see
an incomplete package.
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
        help="Folder of grammars; their packages are compiled, cached and used as well.",
        show_default=False,
    ),
]

_MAX_CACHED = 32
"""Maximum number of cached folders of grammars; the least recently used are deleted."""

_DIGEST_LENGTH = 32
_COMPILER_SUFFIXES = (".py", ".j2", ".lark", ".java")
"""Suffixes of compiler files. After a change of such a file, grammars are compiled again."""


def use_packages(packages: Sequence[str] | None, grammars: Path | None, names: Sequence[str] = ()) -> None:
    """Add the packages of ``--packages`` and ``--grammars`` to the registry.

    Args:
        names: protocols that the command needs. They may differ from those that specwire includes.
            If `grammars` has one of them, only these are compiled.

    Raises:
        PackageError: a package does not exist, or another one has its name.
        SpecError: a grammar has a fault.
    """
    if packages:
        # As `python -m` does; but last, so that no file here hides an installed module.
        sys.path.append(os.getcwd())
        REGISTRY.add(packages, "--packages", names)
    if grammars is not None:
        REGISTRY.add(_compiled(grammars_folder(grammars), names), f"--grammars {grammars}", names)


def complete_protocol(incomplete: str) -> list[str]:
    """Return the protocol names with this prefix, for shell completion."""
    return [name for name in package_names() if name.startswith(incomplete)]


def class_of_message(package: ModuleType, name: str) -> str:
    """Return the class name of a message.

    `name` is the name of the class or of the message in the grammar, in upper or lower case. An
    unknown name ends the command with an error.
    """
    classes: Mapping[str, Any] = package.MESSAGES
    known = {spelling.lower(): own for own, cls in classes.items() for spelling in (cls.NAME, own)}
    if name.lower() not in known:
        protocol = next(iter(classes.values())).PROTOCOL
        others = meant(name, classes) or f"; it has {', '.join(classes)}"
        fail(f"{protocol} has no message {name!r}{others}")
    return known[name.lower()]


def _compiled(grammars: Path, names: Sequence[str]) -> Iterator[Path]:
    """Yield the package folders of a folder of grammars; compile those not in the cache."""
    folders = protocol_folders(grammars, [])
    wanted = [folder for folder in folders if folder.name in names] or folders
    kept = cache_folder() / _digest(grammars)
    for folder in wanted:
        found = kept / folder.name
        if not found.is_dir():
            _compile(folder, found)
        os.utime(kept)  # Marks the folder as used for `_drop_oldest`.
        yield from (path for path in sorted(found.iterdir()) if path.is_dir())


def _compile(folder: Path, out: Path) -> None:
    """Write the package of one protocol to the folder `out`, which is created atomically."""
    from specwire.generator.packages import package_files
    from specwire.generator.targets import choose_targets

    (compiled,) = compile_all([folder])
    targets = choose_targets(None)
    files = package_files([compiled.protocol], targets, compilations=[compiled])
    out.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=".compiling-", dir=out.parent))
    try:
        for path, text in files.items():
            (aside / path).parent.mkdir(parents=True, exist_ok=True)
            (aside / path).write_text(text, encoding="utf-8")
        try:
            aside.rename(out)
        except OSError:
            if not out.is_dir():  # Otherwise another command has written the same package.
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    _drop_oldest(out.parent.parent)


def _digest(grammars: Path) -> str:
    """Return the digest of the compiler and all grammars, because grammars may use each other."""
    digest = hashlib.sha256(f"{specwire.__version__} {sys.version_info[:2]}".encode())
    for path in sorted((*grammars.glob("*/*"), *grammars.glob("*/payloads/*"))):
        if path.is_file():
            content = path.read_bytes()
            digest.update(f"\n{path.relative_to(grammars).as_posix()} {len(content)}\n".encode() + content)
    # In a checkout the compiler may change while its version does not.
    generator = Path(specwire.__file__).parent / "generator"
    for path in sorted(path for path in generator.rglob("*") if path.suffix in _COMPILER_SUFFIXES):
        found = path.stat()
        digest.update(f"\n{path.relative_to(generator)} {found.st_size} {found.st_mtime_ns}".encode())
    return digest.hexdigest()[:_DIGEST_LENGTH]


def _drop_oldest(folder: Path) -> None:
    """Delete the least recently used folders of grammars; other commands may do so concurrently."""
    with suppress(OSError):
        folders = (path for path in folder.iterdir() if len(path.name) == _DIGEST_LENGTH)
        kept = sorted(folders, key=lambda path: path.stat().st_mtime_ns)
        for path in kept[:-_MAX_CACHED]:
            shutil.rmtree(path, ignore_errors=True)
