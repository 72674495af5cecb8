"""Target of a session, and what a session finds on this machine: Java and the jar of its decoders.

This module imports nothing of Spark: `specwire doctor` works where Spark is not installed.

`make jar` compiles the jar from the generated Java sources
(`specwire.runtime.spark.decoding.compile_jar`). A wheel contains the jar if it existed when the
wheel was built. The manifest has the digest of the sources, so a jar that is older than a change of
a grammar is never used.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

import specwire.generated
from specwire.runtime.spark.errors import InputError

LOCAL = "local[*]"
"""Default master: every core of this machine."""

JAVA_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

ANSWER_S = 60.0
"""Timeout for Java to print its version, in seconds."""

GENERATED = Path(specwire.generated.__file__).parent
"""Folder of the generated packages: Java sources are beside the Python ones."""

JAR = GENERATED / "java" / "decoders.jar"

MANIFEST = "META-INF/MANIFEST.MF"
DIGEST = "Specwire-Sources"
"""Key of the digest in the manifest."""

_COMMENT = re.compile(rb"^[ ]*(?://.*|/\*[\s\S]*?\*/)", re.MULTILINE)
"""A comment at the start of a line."""


class Target(msgspec.Struct, frozen=True):
    """Target of a session, and the package that is shipped to its executors.

    `master` is a Spark master URL, `remote` a Spark Connect URL (``sc://host:port``); at most one
    of them is set. Without either the session runs under the `spark-submit` that started this
    program, or on this machine. `package` is a folder from ``specwire pipeline package``.

    Raises InputError if both are set.
    """

    master: str | None = None
    remote: str | None = None
    package: Path | None = None

    def __post_init__(self) -> None:
        if self.master is not None and self.remote is not None:
            raise InputError("a session runs on a master or behind a Spark Connect server, not both")

    @property
    def submitted(self) -> bool:
        """Return whether `spark-submit` started this program and chose the master."""
        return self.master is None and self.remote is None and "PYSPARK_GATEWAY_PORT" in os.environ

    @property
    def local(self) -> bool:
        """Return whether Spark runs in one process on this machine and sees the same files."""
        on_machine = re.match(r"local(\[|$)", self.master or LOCAL)
        return self.remote is None and not self.submitted and on_machine is not None


@dataclass(frozen=True)
class InstalledJava:
    """A program `java`; `version` is the version that it prints, empty if it does not run."""

    program: Path
    version: str

    @property
    def is_new_enough(self) -> bool:
        """Return whether Spark runs on it; versions before 9 begin with 1."""
        major = re.match(r"\d+", self.version)
        return major is not None and int(major[0]) >= JAVA_VERSION


def look_for_java() -> InstalledJava | None:
    """Return the Java of JAVA_HOME, or of the path if that is not set; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if found is None:
        return None
    try:
        command = [found, "-version"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return InstalledJava(Path(found), "")
    version = re.search(r'version "([^"]+)"', ran.stderr)
    return InstalledJava(Path(found), version[1] if version else "")


def find_java() -> Path | None:
    """Return the `java` that Spark will use; None if there is none new enough."""
    java = look_for_java()
    return java.program if java is not None and java.is_new_enough else None


def find_jar() -> Path | None:
    """Return the jar, or None if there is no jar of the current sources."""
    return JAR if jar_trouble() is None else None


def jar_trouble() -> str | None:
    """Return why there is no usable jar, worded to follow a colon; None if there is one."""
    if not JAR.is_file():
        return "the Java decoders are not compiled here (`make jar` does it where there is a javac)"
    states = ((path, path.stat()) for path in (JAR, *java_sources()))
    return _compare(JAR, tuple((path, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for path, s in states))


@lru_cache(maxsize=4)
def _compare(jar: Path, states: tuple[tuple[Path, int, int, int], ...]) -> str | None:
    """Compare the digests of a jar and its sources; see `jar_trouble`.

    Every decoding calls this twice. So the result is cached, by path, size and times of each file.
    """
    try:
        with zipfile.ZipFile(jar) as archive:
            noted = re.search(rf"^{DIGEST}: (\w+)", archive.read(MANIFEST).decode(), re.MULTILINE)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        return f"{jar} cannot be read ({error}): run `make jar`"
    if noted is None or noted[1] != sources_digest():
        return f"{jar} was not compiled from the sources beside it: run `make jar`"
    return None


def java_sources() -> list[Path]:
    """Return the Java sources of all packages and their shared sources, sorted by path."""
    return sorted(GENERATED.glob("*/*.java"), key=lambda path: path.relative_to(GENERATED).as_posix())


def sources_digest() -> str:
    """Return the SHA-256 of the Java sources, with their names and without comments."""
    digest = hashlib.sha256()
    for path in java_sources():
        code = _COMMENT.sub(b"", path.read_bytes()).splitlines()
        digest.update(f"{path.relative_to(GENERATED).as_posix()} {len(code)}\n".encode() + b"\n".join(code))
    return digest.hexdigest()
