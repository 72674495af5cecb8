"""Registry of generated packages: the one place that finds the package of a protocol by name.

Sources, in the order in which they are searched:

1. the packages that come with specwire, ``specwire.generated.*``;
2. packages that the caller added: `add_packages`, the options ``--packages`` and ``--grammars``;
3. in a Spark worker, packages that the driver shipped (`specwire.runtime.spark.session.executors`);
4. ``SPECWIRE_PACKAGES``: modules and folders, separated by ``:`` (`os.pathsep`);
5. entry points of the group ``specwire.packages`` of installed distributions.

A protocol may have a package for each of several editions of its specification. The first in the
order of the sources is the default; ``ticker`` names it. ``ticker@Ticker 2`` names the package of
an edition. Two different packages of one edition are an error.

Only these sources cause imports. A protocol name from a capture is looked up among the names in the
sources, so it cannot cause any other import. `specwire.runtime.package_search` looks into a source.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from specwire.runtime.package_search import (
    AT,
    FOLDERS,
    GeneratedPackage,
    PackageError,
    as_edition,
    check_same,
    find_packages,
    forget_modules,
    name_of,
    packages_in,
)

OURS = "specwire.generated"
VARIABLE = "SPECWIRE_PACKAGES"
SHIPPED = "Spark's driver"
"""Source of the packages that a driver shipped to this worker."""
GROUP = "specwire.packages"
HINT = "name its package with --packages MODULE, --grammars DIR or SPECWIRE_PACKAGES"

Packages = Mapping[str, Sequence[GeneratedPackage]]
"""Packages by protocol, each protocol's default first."""


class Registry:
    """Packages by name. Programs use the functions of this module, which share one registry."""

    def __init__(self) -> None:
        self._added: dict[str, list[GeneratedPackage]] = {}
        self._replaced: set[str] = set()
        """Protocols whose added package replaces one that comes with specwire."""
        self._outside: tuple[str, Packages] | None = None
        """Value of the environment variable, and the packages from it and from entry points."""

    def names(self) -> tuple[str, ...]:
        """Return the names of all protocols that have a package, sorted."""
        return tuple(sorted({*_ours(), *_shipped(), *self._added, *self._from_outside()}))

    def others(self) -> dict[str, GeneratedPackage]:
        """Return the packages that do not come with specwire, by name."""
        found = (package for name in self.names() for package in self.editions(name))
        return {package.name: package for package in found if package.origin}

    def editions(self, protocol: str) -> Iterator[GeneratedPackage]:
        """Yield a package for each edition of a protocol: the default, then the others by edition."""
        # In this order, so that a worker searches no further than the shipped packages.
        sources: list[Callable[[], Packages]] = [_ours, lambda: self._added, _shipped, self._from_outside]
        if protocol in self._replaced:
            sources.insert(0, sources.pop(1))
        found = (package for source in sources for package in source().get(protocol, ()))
        default = next(found, None)
        if default is None:
            return
        yield default
        others: dict[str, GeneratedPackage] = {}
        for package in found:
            others.setdefault(package.edition, package)
        if others:
            others.pop(default.edition, None)
        # In the same order in a worker, whatever the order of the sources.
        yield from (as_edition(others[edition]) for edition in sorted(others))

    def find(self, name: str) -> GeneratedPackage:
        """Return the package of a protocol, or of one edition of it (``ticker@Ticker 2``).

        Raises:
            PackageError: there is none.
        """
        if (found := self.get(name)) is not None:
            return found
        protocol, _, edition = name.partition(AT)
        editions = [package.edition for package in self.editions(protocol)]
        if editions:
            raise PackageError(
                f"there is no edition {edition!r} of {protocol}; "
                f"the known ones are {', '.join(editions)}; {HINT}"
            )
        raise PackageError(unknown_name(protocol, self.names()))

    def get(self, name: str) -> GeneratedPackage | None:
        """Return what `find` returns, or None if there is no such package."""
        protocol, at, edition = name.partition(AT)
        packages = self.editions(protocol)
        return next((package for package in packages if not at or package.edition == edition), None)

    def add(
        self, sources: Iterable[str | Path], origin: str, replacing: Iterable[str] = ()
    ) -> list[GeneratedPackage]:
        """Add the packages of modules or folders; return them.

        Args:
            replacing: protocols whose packages replace known ones, including those of specwire.

        An added package replaces one of its edition from the environment or an entry point.

        Raises:
            PackageError: a source has no package, or another added package or one that comes with
                specwire has the same name and edition.
        """
        found = [package for source in sources for package in find_packages(source, origin)]
        for package in found:
            if package.name in replacing and package.name not in self._replaced:
                self._added[package.name] = [package]
                self._replaced.add(package.name)
                forget_modules(package.name)
            else:
                ours = {} if package.name in self._replaced else _ours()
                _enter(package, self._added, ours)
        return found

    def clear(self) -> None:
        """Remove every added package, and the modules imported from folders."""
        if not self._added and self._outside is None:
            return
        self._added.clear()
        self._replaced.clear()
        self._outside = None
        forget_modules()

    def _from_outside(self) -> Packages:
        stated = os.environ.get(VARIABLE, "")
        if self._outside is None or self._outside[0] != stated:
            found: dict[str, list[GeneratedPackage]] = {}
            for package in (*_from_variable(stated), *_from_entry_points()):
                _enter(package, found, _ours())
            self._outside = stated, found
        return self._outside[1]


REGISTRY = Registry()
"""The registry that the functions below use."""


def package_names() -> tuple[str, ...]:
    """Return the names of all protocols that have a package, sorted."""
    return REGISTRY.names()


def find_package(name: str) -> GeneratedPackage:
    """Return the package of a protocol, or of one edition, without importing it.

    Raises PackageError if there is none.
    """
    return REGISTRY.find(name)


def load_package(name: str) -> ModuleType:
    """Import the package of a protocol. Raises PackageError if there is none."""
    return REGISTRY.find(name).load()


def load_part(name: str, part: str) -> ModuleType:
    """Import a part of the package of a protocol. Raises PackageError if it does not exist."""
    return REGISTRY.find(name).load(part)


def has_part(name: str, part: str) -> bool:
    """Return whether a protocol is known and its package has a part; imports nothing."""
    package = REGISTRY.get(name)
    return package is not None and package.has(part)


def package_editions(protocol: str) -> tuple[str, ...]:
    """Return the editions of a protocol that have a package, the default first."""
    return tuple(package.edition for package in REGISTRY.editions(protocol))


def choose_package(protocol: str, edition: str = "") -> str | None:
    """Return the name of the package for messages whose tap stated this protocol and edition.

    Without an edition, it is the default. If the protocol has only one package, this package reads
    every edition, because a tap may state any text. None if there is no package.
    """
    packages = list(REGISTRY.editions(protocol))
    if len(packages) > 1 and edition:
        packages = [package for package in packages if package.edition == edition]
    return packages[0].name if packages else None


def user_package_folder(name: str) -> str:
    """Return the folder of a package that does not come with specwire; empty if there is none."""
    package = REGISTRY.get(name)
    return package.place if package is not None and package.origin else ""


def add_packages(*sources: str | Path | ModuleType) -> tuple[str, ...]:
    """Make packages known to this process; return the names of their protocols.

    Args:
        sources: modules, by name or imported, and folders: a `Path`, or a string with a ``/``. Each
            is a package, or contains several.

    Raises:
        PackageError: a source has no package, or a different one of its edition is known.
    """
    named = [source.__name__ if isinstance(source, ModuleType) else source for source in sources]
    return tuple(package.name for package in REGISTRY.add(named, "add_packages"))


def cache_folder() -> Path:
    """Return the user's cache folder for compiled decoders, or a temporary one of this process."""
    from platformdirs import user_cache_path

    try:
        folder = user_cache_path("specwire", appauthor=False) / "packages"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Modules are imported from this folder, so no other user may have write access.
        if folder.stat().st_uid == os.getuid() and os.access(folder, os.W_OK | os.X_OK):
            return folder
    except (OSError, RuntimeError):
        pass
    return _temporary_folder()


@cache
def _temporary_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="specwire-packages-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def unknown_name(name: str, known: Iterable[str]) -> str:
    """Return the sentence about a protocol that has no package."""
    names = list(known)
    close = get_close_matches(name, names, n=1)
    meant = f"; did you mean {close[0]!r}?" if close else ""
    return f"there is no protocol {name!r}; the known ones are {', '.join(names)}{meant or f'; {HINT}'}"


@cache
def _ours() -> Packages:
    place: Any = import_module(OURS).__path__
    return {package.name: [package] for package in packages_in(place, OURS, "")}


def _shipped() -> Packages:
    """Return the packages that a driver shipped to this worker; none in any other process."""
    return _shipped_on(tuple(sys.path))


@lru_cache(maxsize=2)
def _shipped_on(path: tuple[str, ...]) -> Packages:
    if FOLDERS in sys.modules and sys.modules[FOLDERS].__spec__ is None:
        return {}  # `_import_folder` made it: this is no worker.
    spec = find_spec(FOLDERS)
    places = spec.submodule_search_locations if spec is not None else None
    found: dict[str, list[GeneratedPackage]] = {}
    for package in packages_in(places or (), FOLDERS, SHIPPED):
        whole = replace(package, name=name_of(package.name))
        found.setdefault(whole.protocol, []).append(whole)
    # The name of the default has no edition, so it is the first.
    return {protocol: sorted(packages, key=lambda one: one.name) for protocol, packages in found.items()}


def _from_variable(stated: str) -> Iterator[GeneratedPackage]:
    for source in filter(None, (text.strip() for text in stated.split(os.pathsep))):
        yield from find_packages(source, VARIABLE)


def _from_entry_points() -> Iterator[GeneratedPackage]:
    for point in entry_points(group=GROUP):
        distribution = f" of {point.dist.name}" if point.dist is not None else ""
        yield from find_packages(point.value, f"the entry point {point.name}{distribution}")


def _enter(package: GeneratedPackage, added: dict[str, list[GeneratedPackage]], ours: Packages) -> None:
    """Add a package to `added`, unless one there or in `ours` is the same.

    Raises PackageError if one of the same name and edition has different content.
    """
    known = (*ours.get(package.name, ()), *added.get(package.name, ()))
    for other in known:
        if os.path.realpath(other.place) == os.path.realpath(package.place):
            return
        if other.edition == package.edition:
            check_same(package, other)
            return
    added.setdefault(package.name, []).append(package)
