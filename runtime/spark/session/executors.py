"""Code and files for executors: package folders, generated packages, and shared folders.

A package folder is shipped by Spark's settings on a master, and by artifacts on Spark Connect.
Executors unpack the archive in their working folder and start its Python by a relative path. Spark
starts the same path on the driver, to get the schema of a Python data source. There the path is a
script in Java's working folder that starts the driver's Python.

Each generated package of the user is a zip archive, which Spark adds to the path of Python workers.
In it the package is below `specwire_packages`, where `specwire.runtime.packages` finds it by name.
Under its own name, its parent packages would have to be shipped too.

This program reads a capture's footers, and executors read its rows. Executors write an output, and
this program moves it into place. So both folders must exist under the same paths for this program,
the driver (or the Connect server) and every executor: on a shared file system, or on one machine.
Otherwise the output would be empty. `check_shared` tests it.
"""

from __future__ import annotations

import atexit
import hashlib
import re
import secrets
import shlex
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from weakref import WeakKeyDictionary

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.package_search import FOLDERS, PackageError, identifier
from specwire.runtime.packages import REGISTRY, SHIPPED
from specwire.runtime.spark.cluster.package import ENVIRONMENT, PYTHON, Package
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.session.java import describe_failure
from specwire.runtime.spark.session.target import Target

_SHIPPED: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()
"""Names of the archives that each session has."""

_TIME = (1980, 1, 1, 0, 0, 0)
"""Time of every entry of an archive, so that the same files give the same octets."""

_DEMAND = "this program, Spark's driver or Connect server, and every executor must see it under that path"


def shipping_settings(package: Package | None) -> dict[str, str]:
    """Return the settings that ship a package from a driver.

    The values are URIs, because Spark splits paths at blanks and commas.
    """
    settings: dict[str, str] = {}
    if package is not None:
        settings["spark.archives"] = f"{package.archive.as_uri()}#{ENVIRONMENT}"
        if package.jar is not None:
            settings["spark.jars"] = package.jar.as_uri()
    return settings


@contextmanager
def driver_python() -> Iterator[Path]:
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

    Raises InputError if a package cannot be found or read.
    """
    try:
        packages = [REGISTRY.find(name) for name in names] if names else list(REGISTRY.others().values())
        # Skip packages that come with specwire, or were shipped to this worker.
        own = [package for package in packages if package.origin not in ("", SHIPPED)]
        archives = [_write_archive(identifier(package.name), package.files()) for package in own]
    except PackageError as error:
        raise InputError(str(error)) from error
    shipped = _SHIPPED.setdefault(spark, set())
    for archive in archives:
        if archive.name not in shipped:
            path = list(sys.path)
            spark.addArtifacts(str(archive), pyfile=True)
            # Spark also adds the archive to this program's path, which has the user's source.
            sys.path[:] = path
            shipped.add(archive.name)


def _write_archive(name: str, files: Mapping[str, bytes]) -> Path:
    digest = hashlib.sha256()
    for file, content in files.items():
        digest.update(f"{file} {len(content)}\n".encode() + content)
    archive = shipping_folder() / f"specwire-package-{name}-{digest.hexdigest()[:16]}.zip"
    if archive.exists():
        return archive
    folder = f"{FOLDERS}/{name}/"
    with zipfile.ZipFile(archive, "w") as written:
        # Python finds modules without `__init__` only in folders with an archive entry.
        for entry in (f"{FOLDERS}/", folder):
            written.writestr(zipfile.ZipInfo(entry, _TIME), b"")
        for file, content in files.items():
            if file.endswith(".py"):
                written.writestr(zipfile.ZipInfo(f"{folder}{file}", _TIME), content)
    return archive


@cache
def shipping_folder() -> Path:
    """Return a folder for files that are passed to Spark; it exists until this process ends."""
    folder = tempfile.mkdtemp(prefix="specwire-ship-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def check_shared(spark: SparkSession, target: Target, read: Sequence[Path], write: Path) -> None:
    """Raise InputError unless Spark sees the files to read and can write into the same folder.

    On a local master nothing is checked. If `write` does not exist, its nearest existing parent is
    checked.
    """
    if target.local:
        return
    if read:
        file = read[-1]
        found = _ask(file, spark.read.format("binaryFile").load(literal_path(file)).select("length"))
        if found != [file.stat().st_size]:
            raise InputError(f"{file}: Spark sees another file there; {_DEMAND}")
    _check_write(spark, next(path for path in (write, *write.resolve().parents) if path.is_dir()))


def _check_write(spark: SparkSession, folder: Path) -> None:
    token = secrets.token_hex(8)
    # With mode 0700, like the folders of an output, so that executors of another user fail here.
    probe = Path(tempfile.mkdtemp(prefix="specwire-probe-", dir=folder.resolve()))
    try:
        (probe / "from-here").write_text(token)
        if _ask(folder, spark.read.text(literal_path(probe / "from-here"))) != [token]:
            raise InputError(f"{folder}: Spark sees another folder there; {_DEMAND}")
        try:
            spark.range(0, 1, 1, 1).select(F.lit(token)).write.text(local_path(probe / "from-spark"))
        except PySparkException as error:
            raise InputError(f"{folder}: Spark cannot write there: {describe_failure(error)}") from error
        written = [path.read_text().strip() for path in (probe / "from-spark").glob("part-*")]
        if written != [token]:
            raise InputError(f"{folder}: what Spark writes there is not seen here; {_DEMAND}")
    finally:
        shutil.rmtree(probe, ignore_errors=True)


def _ask(place: Path, frame: DataFrame) -> list[object]:
    try:
        return [row[0] for row in frame.collect()]
    except PySparkException as error:
        raise InputError(f"{place}: Spark does not see it ({describe_failure(error)}); {_DEMAND}") from error


def literal_path(path: Path) -> str:
    """Return a path to read from, escaped so that Hadoop does not take it for a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", local_path(path))


def local_path(path: Path) -> str:
    """Return a path to write to, as a ``file:`` address.

    On a cluster, paths without a scheme may refer to another file system (HDFS).
    """
    return f"file:{path.resolve()}"
