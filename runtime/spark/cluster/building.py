"""Writing of package folders: the installed files that executors need, in one archive.

The files are specwire and its dependencies, as pip installed them. The dependencies are found in
the metadata of installed distributions, from `specwire[spark]` on. If a requirement is not
installed, its marker excludes it here. Not included are distributions that a cluster has (Spark's
Python side), and the formatter of generated code, which only the driver uses.

The archive has a folder with a Python that sees only its own site-packages. The interpreter itself
is not in it, because it depends on libraries of its system; the executors have one of the same
version, and `bin/python` looks for it. That is a shell script, so the folder may be unpacked
anywhere. It starts the interpreter without its own site-packages. Spark's modules come from Spark,
by PYTHONPATH. The same files give the same octets: names are sorted, and times, owners and modes
are set.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import sysconfig
import tarfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

import msgspec

import specwire
from specwire.runtime.spark.cluster.package import ARCHIVE, JAR, JOB, NOTE, Note, Package, python_version
from specwire.runtime.spark.errors import InputError

OURS = "specwire"
EXCLUDED = frozenset({"pyspark", "py4j", "ruff"})
NEEDED = ("msgspec", "numpy", "pandas", "pyarrow")
"""Distributions that every worker imports."""

SITE = "site-packages"
LEVEL = 4
"""Compression level of gzip: 6 takes three times as long and saves five per cent."""

_UNUSED_FOLDERS = frozenset({"__pycache__", "tests", "include"})
_UNUSED_METADATA = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})
"""Files of pip about this installation; some name its folder."""

_REQUIREMENT = re.compile(r"(?P<name>[\w.-]+)\s*(?:\[(?P<extras>[^\]]*)\])?[^;]*(?:;(?P<marker>.*))?")
_EXTRA_MARKER = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")

_LAUNCHER = """\
#!/bin/sh
# Start a Python {version} that sees the modules of this folder and those of Spark, and no others.
root=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
for python in "$SPECWIRE_PYTHON" python{version} python3; do
    found=$("$python" -S -c '{question}' 2>/dev/null)
    if [ "$found" = "{version} {platform}" ]; then
        PYTHONPATH="$root/{site}${{PYTHONPATH:+:$PYTHONPATH}}"
        export PYTHONPATH
        exec "$python" -S -s -P "$@"
    fi
done
echo "specwire: there is no Python {version} for {platform} on this executor's PATH;" \\
    "install it, or name it: spark.executorEnv.SPECWIRE_PYTHON=/path/to/python{version}" >&2
exit 1
"""

_QUESTION = 'import sys, sysconfig; print("%d.%d" % sys.version_info[:2], sysconfig.get_platform())'

_JOB = '''\
"""The program that spark-submit starts: the command line of specwire, with the arguments after this file."""

from specwire.runtime.cli.main import main

main()
'''


def write_package(folder: Path, jar: Path | None = None) -> Package:
    """Write the installed specwire, and the jar if there is one, as a package, and return it.

    An earlier package in the folder is replaced. Its note is removed first and written last, so a
    package with a note is complete. Raises InputError if the folder has other files or cannot be
    written.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: the package would replace a file")
    present = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if others := sorted(present - {NOTE, ARCHIVE, JAR, JOB}):
        raise InputError(f"{folder}: the folder has another file ({others[0]}); name another folder")
    distributions = find_distributions()
    files = [file for name, found in distributions.items() for file in list_files(name, found)]
    archive = folder / ARCHIVE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NOTE).unlink(missing_ok=True)
        write_archive(files, archive)
        (folder / JAR).unlink(missing_ok=True)
        if jar is not None:
            shutil.copyfile(jar, folder / JAR)
        (folder / JOB).write_text(_JOB)
        with archive.open("rb") as content:
            digest = hashlib.file_digest(content, "sha256").hexdigest()
        note = Note(
            python=python_version(),
            platform=sysconfig.get_platform(),
            distributions={name: found.version for name, found in distributions.items()},
            archive_octets=archive.stat().st_size,
            archive_sha256=digest,
            jar=jar is not None,
        )
        (folder / NOTE).write_bytes(msgspec.json.format(msgspec.json.encode(note), indent=2) + b"\n")
    except OSError as error:
        raise InputError(f"{folder}: the package cannot be written: {error.strerror}") from error
    return Package(folder.resolve(), note)


def find_distributions() -> dict[str, Distribution]:
    """Return the distributions that executors need by name, specwire included, sorted.

    Raises InputError if one of `NEEDED` is not installed.
    """
    found: dict[str, Distribution] = {}
    _add_distribution(OURS, frozenset({"spark"}), found, set())
    missing = [name for name in (OURS, *NEEDED) if name not in found]
    if missing:
        raise InputError(f"not installed: {', '.join(missing)}; pip install 'specwire[spark]'")
    return dict(sorted(found.items()))


def _add_distribution(
    name: str,
    extras: frozenset[str],
    found: dict[str, Distribution],
    seen: set[tuple[str, frozenset[str]]],
) -> None:
    """Add a distribution and, recursively, its requirements."""
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    try:
        found[name] = distribution(name)
    except PackageNotFoundError:
        return
    for line in found[name].requires or []:
        required = _REQUIREMENT.match(line)
        if required is None:
            continue
        wanted = _EXTRA_MARKER.findall(required["marker"] or "")
        next_name = re.sub(r"[-_.]+", "-", required["name"]).lower()
        if next_name not in EXCLUDED and (not wanted or extras.intersection(wanted)):
            chosen = re.findall(r"[\w.-]+", required["extras"] or "")
            _add_distribution(next_name, frozenset(chosen), found, seen)


def list_files(name: str, installed: Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the path within site-packages and the location of each file of a distribution.

    Raises InputError if its files were not recorded.
    """
    if name == OURS:
        yield from _our_files()
    if installed.files is None:
        raise InputError(f"{name} was not installed by pip, so its files are not known")
    for path in installed.files:
        if _is_used(path) and path.parts[0] != OURS:
            place = Path(str(installed.locate_file(path)))
            if place.is_file():
                yield path.as_posix(), place


def _our_files() -> Iterator[tuple[str, Path]]:
    """Yield the files of specwire, which an editable installation does not record."""
    (root,) = specwire.__path__
    for folder, folders, names in os.walk(root, followlinks=True):
        folders[:] = sorted(set(folders) - _UNUSED_FOLDERS)
        for name in sorted(names):
            place = Path(folder, name)
            if place.suffix not in (".c", ".pyc"):
                yield f"{OURS}/{place.relative_to(root).as_posix()}", place


def _is_used(path: PurePosixPath) -> bool:
    if ".." in path.parts or path.suffix in (".pyc", ".pth"):
        return False
    if path.parts[0].endswith(".dist-info"):
        return path.name not in _UNUSED_METADATA
    return not _UNUSED_FOLDERS.intersection(path.parts)


def launcher() -> str:
    """Return the shell script that is the archive's `bin/python`."""
    values = {"version": python_version(), "platform": sysconfig.get_platform(), "site": SITE}
    return _LAUNCHER.format(question=_QUESTION, **values)


def write_archive(files: Iterable[tuple[str, Path]], out: Path) -> None:
    """Write the archive of the launcher and of files, each as path in site-packages and location."""
    script = launcher().encode()
    with (
        out.open("wb") as file,
        gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.GNU_FORMAT) as tar,
    ):
        tar.addfile(_entry("bin/python", len(script), 0o755), io.BytesIO(script))
        for name, place in sorted(files):
            with place.open("rb") as content:
                tar.addfile(_entry(f"{SITE}/{name}", place.stat().st_size, 0o644), content)


def _entry(name: str, size: int, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, mode
    return entry
