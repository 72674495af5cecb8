"""The jar of the Java decoders: where it stands, what it is made of, and whether it is of use.

`make jar` compiles it of the generated Java sources (`specwire.runtime.spark.decoding.compile_jar`), wherever
there is a Java compiler; a wheel has it where it was there when the wheel was built. It notes the digest of its
sources, so that one that was left behind by a change of a grammar is never asked.
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
"""The folder of the generated packages: Java sources stand beside the Python ones."""

JAR = GENERATED / "java" / "decoders.jar"

MANIFEST = "META-INF/MANIFEST.MF"
DIGEST = "Specwire-Sources"
"""The line of the manifest that has the digest."""

Look = tuple[Path, int, int, int]
"""A file without its contents: size, and when it and its entry were changed, in nanoseconds."""

_CLASSES = "specwire/generated"
_COMMENT = re.compile(rb"^[ ]*(?://.*|/\*[\s\S]*?\*/)", re.MULTILINE)
"""A comment that begins its line."""


def find_jar() -> Path | None:
    """Return the jar, None where there is none that is made of the sources as they are now."""
    return JAR if jar_trouble() is None else None


def jar_trouble() -> str | None:
    """Return why there is no jar to be used, in words that follow a colon; None where there is one."""
    if not JAR.is_file():
        return "the Java decoders are not compiled here (`make jar` does it where there is a javac)"
    return _compare(JAR, tuple(_look(path) for path in (JAR, *java_sources())))


@lru_cache(maxsize=4)
def _compare(jar: Path, looks: tuple[Look, ...]) -> str | None:
    """See `jar_trouble`; files that look the same are not read again, which each decoding would do twice."""
    try:
        with zipfile.ZipFile(jar) as archive:
            noted = re.search(rf"^{DIGEST}: (\w+)", archive.read(MANIFEST).decode(), re.MULTILINE)
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        return f"{jar} cannot be read ({error}): run `make jar`"
    if noted is None or noted[1] != sources_digest():
        return f"{jar} is not of the sources beside it: run `make jar`"
    return None


def _look(path: Path) -> Look:
    found = path.stat()
    return path, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def decoder_class(protocol: str, jar: Path) -> str | None:
    """Return the name of the class in `jar` that decodes a protocol, None where it has none."""
    with zipfile.ZipFile(jar) as archive:
        names = set(archive.namelist())
    # A word that Java keeps for itself gets `_` as the name of a package.
    for package in (protocol, f"{protocol}_"):
        if f"{_CLASSES}/{package}/Decode.class" in names:
            return f"{_CLASSES}/{package}/Decode".replace("/", ".")
    return None


def java_sources() -> Iterator[Path]:
    """Yield the Java sources of all packages and of what they share, sorted by their places."""
    yield from sorted(GENERATED.rglob("*.java"), key=lambda path: path.relative_to(GENERATED).as_posix())


def sources_digest() -> str:
    """Return the SHA-256 of the Java sources, names included; what their comments say does not count."""
    digest = hashlib.sha256()
    for path in java_sources():
        code = _COMMENT.sub(b"", path.read_bytes()).splitlines()
        digest.update(f"{path.relative_to(GENERATED).as_posix()} {len(code)}\n".encode() + b"\n".join(code))
    return digest.hexdigest()
