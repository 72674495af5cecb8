"""The archive that executors unpack: a folder with a Python in it that sees its own site-packages and no others.

The interpreter itself is not in it, because it hangs on libraries of its system; the executors have one of the
same version, and `bin/python` looks for it. It is a shell script, so the folder may be unpacked anywhere,
and it starts the interpreter without its own site-packages. Spark's modules come from Spark, by PYTHONPATH.

The same files give the same octets: names are sorted, and times, owners and modes are set.
"""

from __future__ import annotations

import gzip
import io
import sysconfig
import tarfile
from collections.abc import Iterable
from pathlib import Path

from specwire.runtime.spark.cluster.contents import python_version

SITE = "site-packages"
LEVEL = 4
"""Of gzip: 6 takes three times as long for a twentieth less."""

_MODE, _PROGRAM_MODE = 0o644, 0o755

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


def launcher() -> str:
    """Return the shell script that is the archive's `bin/python`."""
    return _LAUNCHER.format(version=python_version(), platform=platform(), site=SITE, question=_QUESTION)


def platform() -> str:
    """Return the kind of machine that compiled modules here are for, such as ``linux-x86_64``."""
    return sysconfig.get_platform()


def write_archive(files: Iterable[tuple[str, Path]], out: Path) -> None:
    """Write the archive: the launcher, and files given as path within site-packages and place."""
    entries = sorted((f"{SITE}/{name}", place) for name, place in files)
    with (
        out.open("wb") as file,
        gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.GNU_FORMAT) as tar,
    ):
        script = launcher().encode()
        tar.addfile(_entry("bin/python", len(script), _PROGRAM_MODE), io.BytesIO(script))
        for name, place in entries:
            with place.open("rb") as content:
                tar.addfile(_entry(name, place.stat().st_size, _MODE), content)


def _entry(name: str, size: int, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, mode
    return entry
