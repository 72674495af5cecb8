"""Jar of the Java decoders: its path, its sources, and whether it is usable.

`make jar` compiles it from the generated Java sources
(`specwire.runtime.spark.decoding.compile_jar`). This needs a Java compiler. A wheel contains the
jar if it existed when the wheel was built. The manifest has the digest of the sources, so a jar
that is older than a change of a grammar is never used.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import specwire.generated

GENERATED = Path(specwire.generated.__file__).parent
"""Folder of the generated packages: Java sources are beside the Python ones."""

JAR = GENERATED / "java" / "decoders.jar"

MANIFEST = "META-INF/MANIFEST.MF"
DIGEST = "Specwire-Sources"
"""Key of the digest in the manifest."""

Look = tuple[Path, int, int, int]
"""Path, size, modification time and status change time of a file; times in nanoseconds."""

_CLASSES = "specwire/generated"
_COMMENT = re.compile(rb"^[ ]*(?://.*|/\*[\s\S]*?\*/)", re.MULTILINE)
"""A comment at the start of a line."""


def find_jar() -> Path | None:
    """Return the jar, or None if there is no jar of the current sources."""
    return JAR if jar_trouble() is None else None


def jar_trouble() -> str | None:
    """Return why there is no usable jar, worded to follow a colon; None if there is one."""
    if not JAR.is_file():
        return "the Java decoders are not compiled here (`make jar` does it where there is a javac)"
    return _compare(JAR, tuple(_look(path) for path in (JAR, *java_sources())))


@lru_cache(maxsize=4)
def _compare(jar: Path, looks: tuple[Look, ...]) -> str | None:
    """Compare the digests of a jar and its sources; see `jar_trouble`.

    The result is cached, because every decoding asks twice; unchanged files are not read again.
    """
    try:
        with zipfile.ZipFile(jar) as archive:
            noted = re.search(rf"^{DIGEST}: (\w+)", archive.read(MANIFEST).decode(), re.MULTILINE)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        return f"{jar} cannot be read ({error}): run `make jar`"
    if noted is None or noted[1] != sources_digest():
        return f"{jar} was not compiled from the sources beside it: run `make jar`"
    return None


def _look(path: Path) -> Look:
    found = path.stat()
    return path, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def decoder_class(protocol: str, jar: Path) -> str | None:
    """Return the name of the class in `jar` that decodes a protocol, None if there is none."""
    with zipfile.ZipFile(jar) as archive:
        names = set(archive.namelist())
    # A package whose name is a reserved word of Java has a `_` appended.
    for package in (protocol, f"{protocol}_"):
        if f"{_CLASSES}/{package}/Decode.class" in names:
            return f"{_CLASSES}/{package}/Decode".replace("/", ".")
    return None


def java_sources() -> Iterator[Path]:
    """Yield the Java sources of all packages and their shared sources, sorted by path."""
    yield from sorted(GENERATED.rglob("*.java"), key=lambda path: path.relative_to(GENERATED).as_posix())


def sources_digest() -> str:
    """Return the SHA-256 of the Java sources, with their names and without comments."""
    digest = hashlib.sha256()
    for path in java_sources():
        code = _COMMENT.sub(b"", path.read_bytes()).splitlines()
        digest.update(f"{path.relative_to(GENERATED).as_posix()} {len(code)}\n".encode() + b"\n".join(code))
    return digest.hexdigest()
