"""Write a package folder: all that the executors of a cluster need of us (see `cluster.contents`)."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import msgspec

from specwire.runtime.spark.cluster.archive import platform, write_archive
from specwire.runtime.spark.cluster.contents import ARCHIVE, JAR, JOB, NOTE, Note, Package, python_version
from specwire.runtime.spark.cluster.distributions import find_distributions, list_files
from specwire.runtime.spark.errors import InputError

_JOB = '''\
"""What spark-submit starts: the command line of specwire, with the arguments that follow this file."""

from specwire.runtime.cli.main import main

main()
'''


def write_package(folder: Path, jar: Path | None = None) -> Package:
    """Write the package that is installed here, and the jar if there is one, and return it.

    An earlier package in the folder is replaced; its note goes first and comes last, so a package with a
    note is whole. Raises InputError where the folder holds something else or cannot be written.
    """
    _check_folder(folder)
    distributions = find_distributions()
    files = [file for name, one in distributions.items() for file in list_files(name, one)]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NOTE).unlink(missing_ok=True)
        write_archive(files, folder / ARCHIVE)
        (folder / JAR).unlink(missing_ok=True)
        if jar is not None:
            shutil.copyfile(jar, folder / JAR)
        (folder / JOB).write_text(_JOB)
        note = Note(
            python=python_version(),
            platform=platform(),
            distributions={name: one.version for name, one in distributions.items()},
            archive_octets=(folder / ARCHIVE).stat().st_size,
            archive_sha256=_digest(folder / ARCHIVE),
            jar=jar is not None,
        )
        (folder / NOTE).write_bytes(msgspec.json.format(msgspec.json.encode(note), indent=2) + b"\n")
    except OSError as error:
        raise InputError(f"{folder}: the package cannot be written: {error.strerror}") from error
    return Package(folder.resolve(), note)


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: the package would replace a file")
    ours = {NOTE, ARCHIVE, JAR, JOB}
    if folder.is_dir() and (others := sorted({path.name for path in folder.iterdir()} - ours)):
        raise InputError(f"{folder}: the folder holds something else ({others[0]}); name another")


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
