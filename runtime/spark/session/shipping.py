"""Shipping of code to executors: a package folder, and packages that do not come with specwire.

A package folder is shipped by Spark's settings on a master, by artifacts on Spark Connect.

Executors unpack the archive in their working folder and start its Python by a path relative to it.
Spark starts the same path on the driver too, to get the schema of a Python data source. The
driver's Python has everything that is in the archive. So on the driver the path is a stand-in in
Java's working folder that starts the driver's Python.

Each generated package of the user is a zip archive that Spark adds to the path of Python workers
(`addPyFile`, `addArtifacts`). In it the package is below `specwire_packages`, where
`specwire.runtime.packages` finds it by name. Under its own name, its parents, such as the user's
program, would have to be shipped with it.
"""

from __future__ import annotations

import atexit
import hashlib
import shlex
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

from specwire.runtime.package_search import FOLDERS, PackageError, identifier
from specwire.runtime.packages import REGISTRY
from specwire.runtime.spark.cluster.contents import ENVIRONMENT, PYTHON, Package
from specwire.runtime.spark.errors import InputError

_SHIPPED: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
"""The archives that each session has."""

_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every entry of an archive: the same files give the same octets."""


def shipping_settings(package: Package | None) -> dict[str, str]:
    """Return the settings that ship a package from a driver.

    The values are URIs, because Spark splits paths at blanks and commas.
    """
    if package is None:
        return {}
    jars = {"spark.jars": package.jar.as_uri()} if package.jar else {}
    return {"spark.archives": f"{package.archive.as_uri()}#{ENVIRONMENT}"} | jars


def runtime_settings(package: Package | None) -> Mapping[str, str]:
    """Return the settings that make a Connect session use a package that was added to it."""
    return {"spark.sql.execution.pyspark.python": PYTHON} if package else {}


@contextmanager
def stand_in_python() -> Iterator[Path]:
    """Yield a folder in which `PYTHON` starts the running interpreter."""
    with tempfile.TemporaryDirectory(prefix="specwire-driver-") as name:
        program = Path(name, PYTHON)
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@"\n')
        program.chmod(0o755)
        yield Path(name)


def ship_packages(spark: SparkSession, *names: str) -> None:
    """Ship generated packages that do not come with specwire to the Python workers of a session.

    Without names, the packages of all protocols and editions are shipped. A package is shipped only
    once to each session.

    Raises:
        InputError: a package cannot be found, or is not in a folder.
    """
    try:
        packages = [REGISTRY.find(name) for name in names] if names else list(REGISTRY.others().values())
    except PackageError as error:
        raise InputError(str(error)) from error
    shipped = _SHIPPED.setdefault(spark, set())
    for package in packages:
        if not package.origin or not package.files():
            continue  # It comes with specwire, or this is a worker that has the package.
        archive = _write_archive(identifier(package.name), package.files())
        if archive.name in shipped:
            continue
        path = list(sys.path)
        spark.addArtifacts(str(archive), pyfile=True)
        # Spark adds the archive to the path of the driver, too, which uses the package from the
        # user's source.
        sys.path[:] = path
        shipped.add(archive.name)


def _write_archive(name: str, files: Mapping[str, bytes]) -> Path:
    digest = hashlib.sha256()
    for file, content in files.items():
        digest.update(f"{file} {len(content)}\n".encode() + content)
    archive = _archive_folder() / f"specwire-package-{name}-{digest.hexdigest()[:16]}.zip"
    if archive.exists():
        return archive
    folder = f"{FOLDERS}/{name}/"
    with zipfile.ZipFile(archive, "w") as written:
        # Python finds modules without `__init__` only in folders that have their own archive
        # entries.
        for entry in (f"{FOLDERS}/", folder):
            written.writestr(zipfile.ZipInfo(entry, _TIME), b"")
        for file, content in files.items():
            if file.endswith(".py"):
                written.writestr(zipfile.ZipInfo(f"{folder}{file}", _TIME), content)
    return archive


@cache
def _archive_folder() -> Path:
    folder = tempfile.mkdtemp(prefix="specwire-ship-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
