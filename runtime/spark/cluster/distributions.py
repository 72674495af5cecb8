"""Which installed files an executor needs: the package, and what it depends on, as pip installed it.

The dependencies are found in the metadata of what is installed, from `specwire[spark]` on. A requirement that is
not installed is one that its marker rules out here. Left out are what a cluster has by itself (Spark's Python
side) and what only this program uses: the formatter of generated code and the plots of the report.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

import specwire
from specwire.runtime.spark.errors import InputError

OURS = "specwire"
EXTRA = "spark"
FROM_SPARK = frozenset({"pyspark", "py4j"})
OF_THE_DRIVER = frozenset({"ruff"})
NEEDED = ("msgspec", "numpy", "pandas", "pyarrow")
"""What workers import whatever they do; without one of these an archive would be useless."""

_UNUSED_FOLDERS = frozenset({"__pycache__", "tests", "include"})
_UNUSED_NOTES = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
"""Notes of pip about this very installation; some name its folder."""

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[^\]]*)\])?[^;]*(?:;(?P<marker>.*))?")
_EXTRA_MARKER = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


def find_distributions() -> dict[str, Distribution]:
    """Return what the executors need by name, ours included, sorted.

    Raises InputError where something necessary is not installed.
    """
    found: dict[str, Distribution] = {}
    _follow(OURS, frozenset({EXTRA}), found, set())
    missing = [name for name in (OURS, *NEEDED) if name not in found]
    if missing:
        raise InputError(f"not installed: {', '.join(missing)}; install specwire[spark]")
    return dict(sorted(found.items()))


def _follow(
    name: str,
    extras: frozenset[str],
    found: dict[str, Distribution],
    seen: set[tuple[str, frozenset[str]]],
) -> None:
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    try:
        found[name] = one = distribution(name)
    except PackageNotFoundError:
        return
    for line in one.requires or []:
        required = _REQUIREMENT.match(line)
        if required is None:
            continue
        wanted = _EXTRA_MARKER.findall(required["marker"] or "")
        if wanted and not extras.intersection(wanted):
            continue
        next_name = _plain(required["name"])
        if next_name not in FROM_SPARK | OF_THE_DRIVER:
            chosen = (required["extras"] or "").replace(" ", "").split(",")
            _follow(next_name, frozenset(filter(None, chosen)), found, seen)


def _plain(name: str) -> str:
    """Return a distribution's name in the spelling that all of its spellings share."""
    return re.sub(r"[-_.]+", "-", name).lower()


def list_files(name: str, installed: Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the path within site-packages and the place of each file of a distribution.

    Raises InputError where nobody recorded what belongs to it.
    """
    if name == OURS:
        yield from _our_files()
    if installed.files is None:
        raise InputError(f"{name} was not installed by pip, so which files are its own is not known")
    for path in installed.files:
        if _is_used(path) and path.parts[0] != OURS:
            place = Path(str(installed.locate_file(path)))
            if place.is_file():
                yield path.as_posix(), place


def _our_files() -> Iterator[tuple[str, Path]]:
    """Yield our own files from where they are imported: an editable installation records none of them."""
    (root,) = specwire.__path__
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = sorted(set(folders) - _UNUSED_FOLDERS)
        for name in sorted(names):
            place = Path(folder, name)
            if place.suffix not in (".c", ".pyc"):
                yield (PurePosixPath(OURS) / place.relative_to(root).as_posix()).as_posix(), place


def _is_used(path: PurePosixPath) -> bool:
    if ".." in path.parts or path.suffix in (".pyc", ".pth"):
        return False
    if path.parts[0].endswith(".dist-info"):
        return path.name not in _UNUSED_NOTES
    return not _UNUSED_FOLDERS.intersection(path.parts)
