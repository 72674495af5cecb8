"""Package folders: their files, and the commands that use one.

    DIR/package.json                  Python version and platform of the archive
    DIR/specwire-environment.tar.gz   bin/python, site-packages/: specwire and its dependencies
    DIR/specwire-spark.jar            the Java decoders, if they are compiled
    DIR/specwire_job.py               the program that spark-submit starts

Executors unpack the archive under the name `ENVIRONMENT` in their working folder and start
`PYTHON`.
"""

from __future__ import annotations

import shlex
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

PIPELINE = ("pipeline", "run", "--capture", "CAPTURE", "--out", "OUT")
"""The command to submit; the user replaces the words in capitals."""


class Note(msgspec.Struct, frozen=True):
    """Content of an archive: version (``3.11``) and platform of its Python, and its packages."""

    python: str
    platform: str
    distributions: dict[str, str]
    """Releases by name of the distributions in site-packages."""
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
        """The Java decoders, None if the package has none."""
        return self.folder / JAR if self.note.jar else None


def read_package(folder: Path) -> Package:
    """Return the package in a folder.

    Raises InputError if it is not a package, or is of another release or for another Python than
    this program: functions are sent between driver and executors, so both need the same versions.
    """
    try:
        note = msgspec.json.decode((folder / NOTE).read_bytes(), type=Note)
    except (OSError, msgspec.MsgspecError) as error:
        raise InputError(
            f"{folder}: this is no package folder; `specwire pipeline package --out {folder}` writes one"
        ) from error
    package = Package(folder.resolve(), note)
    files = filter(None, (package.archive, package.jar))
    if missing := [path.name for path in files if not path.is_file()]:
        raise InputError(f"{folder}: the package is incomplete: {', '.join(missing)} is missing")
    if note.python != python_version():
        raise InputError(
            f"{folder}: the package is for Python {note.python} and this is Python {python_version()}; "
            "write it again with this one"
        )
    release = note.distributions.get("specwire")
    if release != __version__:
        raise InputError(
            f"{folder}: the package is of specwire {release} and this is {__version__}; write it again"
        )
    return package


def python_version() -> str:
    """Return the version of this interpreter, in the precision that compiled modules require."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def pipeline_line(package: Package, *where: str) -> str:
    """Return the command that runs the pipeline from here; `where` is its --master or --remote."""
    return _line(["specwire", *PIPELINE], where, ["--package", str(package.folder)])


def submit_line(package: Package, master: str) -> str:
    """Return the spark-submit command; the driver runs here, with this Python interpreter.

    Spark accepts files with a blank in their name only as URIs.
    """
    return _line(
        ["spark-submit", "--master", master],
        ["--archives", f"{package.archive.as_uri()}#{ENVIRONMENT}"],
        *([["--jars", package.jar.as_uri()]] if package.jar else []),
        ["--conf", f"spark.pyspark.driver.python={sys.executable}"],
        ["--conf", f"spark.pyspark.python={PYTHON}"],
        [str(package.folder / JOB), *PIPELINE],
    )


def artifact_lines(package: Package) -> str:
    """Return the Python lines that add a package to a session of Spark Connect."""
    lines = [
        f'spark.addArtifacts("{package.archive}#{ENVIRONMENT}", archive=True)',
        f'spark.conf.set("spark.sql.execution.pyspark.python", "{PYTHON}")',
    ]
    if package.jar:
        lines.append(f'spark.addArtifacts("{package.jar}")')
    return "\n".join(lines)


def _line(*parts: list[str] | tuple[str, ...]) -> str:
    return " \\\n    ".join(shlex.join(part) for part in parts)
