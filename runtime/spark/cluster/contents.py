"""What is in a package folder: the names of its files, and the note that says which Python it is for.

    DIR/package.json                  which Python and which machine the archive is for
    DIR/specwire-environment.tar.gz   bin/python, site-packages/: the package and its dependencies
    DIR/specwire-spark.jar            the decoders in Java, where there are any
    DIR/specwire_job.py               the program that spark-submit starts

Executors unpack the archive under the name `ENVIRONMENT` in their working folder and start `PYTHON`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from specwire import __version__
from specwire.runtime.spark.errors import InputError

NOTE = "package.json"
ARCHIVE = "specwire-environment.tar.gz"
JAR = "specwire-spark.jar"
JOB = "specwire_job.py"

ENVIRONMENT = "environment"
PYTHON = f"{ENVIRONMENT}/bin/python"


class Note(msgspec.Struct, frozen=True):
    """What an archive is for: the interpreter's version (``3.11``), the platform, and what is in it."""

    python: str
    platform: str
    distributions: dict[str, str]
    """Releases by name of what site-packages holds."""
    archive_octets: int
    archive_sha256: str
    jar: bool


class Package(msgspec.Struct, frozen=True):
    """A package folder that was read."""

    folder: Path
    note: Note

    @property
    def archive(self) -> Path:
        """The archive for the executors."""
        return self.folder / ARCHIVE

    @property
    def jar(self) -> Path | None:
        """The decoders in Java, None where the package has none."""
        return self.folder / JAR if self.note.jar else None


def read_package(folder: Path) -> Package:
    """Return the package in a folder.

    Raises InputError where it is none, or is of another release or for another Python than what runs here:
    functions travel between driver and executors, so both run one version.
    """
    try:
        note = msgspec.json.decode((folder / NOTE).read_bytes(), type=Note)
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(
            f"{folder}: this is no package folder; `specwire pipeline package --out {folder}` writes one"
        ) from error
    package = Package(folder.resolve(), note)
    missing = [
        path.name for path in (package.archive, package.jar) if path is not None and not path.is_file()
    ]
    if missing:
        raise InputError(f"{folder}: the package is not whole: {', '.join(missing)} is missing")
    if note.python != python_version():
        raise InputError(
            f"{folder}: the package is for Python {note.python} and this is Python {python_version()}; "
            f"write it anew with this one"
        )
    release = note.distributions.get("specwire")
    if release != __version__:
        raise InputError(
            f"{folder}: the package is of specwire {release} and this is {__version__}; write it anew"
        )
    return package


def python_version() -> str:
    """Return the version of the interpreter that runs here, as far as compiled modules depend on it."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"
