"""Compiler of the Java decoders: ``python -m specwire.runtime.spark.decoding.compile_jar``.

The build is reproducible: entries are sorted, have the same time, and are not compressed, because
releases of zlib write different octets. The jar is written under a temporary name and renamed when
it is complete.

The decoder of a package that does not come with specwire is compiled when it is first used, against
the classes of specwire's jar. Its jar is in the user's cache folder.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pyspark

from specwire.runtime.package_search import GeneratedPackage, identifier
from specwire.runtime.packages import cache_folder
from specwire.runtime.spark.session.target import (
    DIGEST,
    JAR,
    JAVA_VERSION,
    MANIFEST,
    find_java,
    java_sources,
    sources_digest,
)

TIME = (1980, 1, 1, 0, 0, 0)
"""Time of every entry: the earliest that a zip archive supports."""

DECODER = "Decode.java"
"""Source of a package's decoder."""

COMPILING_S = 300.0
"""Time for the compiler, in seconds."""


class CompileError(Exception):
    """Failure to make the jar.

    The text is a sentence, followed by the compiler's output if there is any.
    """


def find_javac() -> Path | None:
    """Return the compiler of JAVA_HOME, beside Spark's `java`, or on the path, in this order."""
    java = find_java()
    home = os.environ.get("JAVA_HOME")
    homes = [Path(home)] if home else []
    homes += [java.resolve().parent.parent] if java else []
    on_path = shutil.which("javac")
    candidates = [*(one / "bin" / "javac" for one in homes), *([Path(on_path)] if on_path else [])]
    return next((path for path in candidates if os.access(path, os.X_OK)), None)


def compile_jar(javac: Path, jar: Path = JAR) -> None:
    """Compile all Java sources into `jar`.

    Raises:
        CompileError: there are no sources, or the compiler refuses them.
    """
    digest = sources_digest()
    _write_classes(jar, f"{DIGEST}: {digest}\r\n", javac, java_sources())


def _write_classes(jar: Path, attributes: str, javac: Path, sources: list[Path], *jars: Path) -> None:
    """Compile sources into `jar`, with additional attributes in its manifest."""
    with tempfile.TemporaryDirectory(prefix="specwire-java-") as folder:
        compile_classes(javac, sources, Path(folder), *jars)
        classes = Path(folder).rglob("*.class")
        entries = {path.relative_to(folder).as_posix(): path.read_bytes() for path in classes}
    write_jar(jar, {MANIFEST: f"Manifest-Version: 1.0\r\n{attributes}\r\n".encode(), **entries})


def compile_classes(javac: Path, sources: list[Path], folder: Path, *jars: Path) -> None:
    """Compile Java sources into `folder`, against Spark's classes and those in `jars`.

    Warnings are errors.

    Raises:
        CompileError: as `compile_jar` does.
    """
    if not sources:
        raise CompileError("there are no Java sources: run `specwire generate`")
    spark = Path(pyspark.__file__).parent / "jars" / "*"
    # Manifests of Spark's jars name other jars that do not exist; "-path" disables that warning.
    options = f"--release {JAVA_VERSION} -encoding UTF-8 -proc:none -Xlint:all,-path -Werror".split()
    paths = ["-cp", os.pathsep.join(map(str, (spark, *jars))), "-d", str(folder)]
    command = [str(javac), *options, *paths, *map(str, sources)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=COMPILING_S, check=False)
    if run.returncode:
        raise CompileError(f"{javac} refused the Java decoders:\n{run.stdout}{run.stderr}")


def package_jar(package: GeneratedPackage) -> tuple[Path | None, str]:
    """Return the jar of a package that does not come with specwire, or why there is none.

    Compiles the jar if needed. The jar of specwire's own decoders must exist (`jar_trouble`).
    """
    source = Path(package.place) / DECODER
    if not source.is_file():
        command = f"specwire generate {package.protocol} --target java"
        return (
            None,
            f"{source} is missing: run `{command}`, unless a Python function computes a checksum of it",
        )
    text = source.read_text(encoding="utf-8")
    if (name := identifier(package.name)) != package.protocol:
        # Classes of several editions in one session need different names.
        text = re.sub(r"^package specwire\.generated\.\w+;", f"package specwire.generated.{name};", text)
    digest = hashlib.sha256(f"{sources_digest()} {pyspark.__version__} {text}".encode())
    jar = cache_folder() / "jars" / f"specwire-{package.protocol}-{digest.hexdigest()[:32]}.jar"
    if jar.is_file():
        return jar, ""
    javac = find_javac()
    if javac is None:
        return None, f"the Java decoder of {package.name} must be compiled, and there is no javac"
    try:
        jar.parent.mkdir(mode=0o700, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="specwire-java-") as folder:
            copy = Path(folder, DECODER)
            copy.write_text(text, encoding="utf-8")
            _write_classes(jar, "", javac, [copy], JAR)
    except CompileError as error:
        return None, str(error)
    except OSError as error:
        return None, f"{jar} cannot be written: {error.strerror}"
    return jar, ""


def write_jar(jar: Path, entries: dict[str, bytes]) -> None:
    """Write a jar of these entries; the manifest is first, as readers of jars require."""
    aside = jar.with_name(f".{jar.name}.{os.getpid()}.tmp")
    try:
        with zipfile.ZipFile(aside, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(entries, key=lambda name: (name != MANIFEST, name)):
                entry = zipfile.ZipInfo(name, TIME)
                entry.create_system = 3
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, entries[name])
        aside.replace(jar)
    finally:
        aside.unlink(missing_ok=True)


def main() -> int:
    """Compile the jar and print its size; return the exit status."""
    parser = argparse.ArgumentParser(description="Compile the Java decoders into their jar.")
    parser.add_argument("--javac", type=Path, help="the compiler; default: found by JAVA_HOME and the path")
    javac = parser.parse_args().javac or find_javac()
    if javac is None:
        print(f"there is no javac: install a JDK of Java {JAVA_VERSION} or newer", file=sys.stderr)
        return 1
    try:
        compile_jar(javac)
    except CompileError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{JAR.name}: {JAR.stat().st_size:,} octets, by {javac}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
