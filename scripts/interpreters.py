"""The interpreters on this machine for which specwire is built and tested: CPython 3.11 and newer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

OLDEST = (3, 11)
PLACES = (
    "~/.pyenv/versions/*/bin/python3",
    "~/.local/share/uv/python/*/bin/python3",
    "/opt/python/*/bin/python3",
)
"""Where tools install interpreters that are not on the path, as patterns."""

_ASKING = """
import json, platform, sys, sysconfig
free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
print(json.dumps([platform.python_implementation(), sys.version_info[:3], free, sys.version_info.releaselevel]))
"""


@dataclass(frozen=True, order=True)
class Interpreter:
    """One CPython.

    Attributes:
        version: its version, such as (3, 12, 1).
        program: its path.
    """

    version: tuple[int, int, int]
    program: Path

    @property
    def minor(self) -> str:
        """The version without its last number, such as ``3.12``."""
        return ".".join(map(str, self.version[:2]))

    @property
    def tag(self) -> str:
        """The tag of its wheels, such as ``cp312``."""
        return "cp{}{}".format(*self.version)


def find_interpreters(places: Iterable[str] = PLACES) -> list[Interpreter]:
    """Return the newest interpreter of each minor version, oldest version first.

    Among interpreters of one version, the one that runs this program comes first, then those on the
    path. Other implementations, pre-releases and free-threaded builds are skipped: pyzmq and PySpark
    do not support them.
    """
    found: dict[str, Interpreter] = {}
    for program in _candidates(places):
        interpreter = ask(program)
        if interpreter is not None:
            known = found.get(interpreter.minor)
            if known is None or known.version < interpreter.version:
                found[interpreter.minor] = interpreter
    return sorted(found.values())


def ask(program: Path) -> Interpreter | None:
    """Return what a program is, None if it is no interpreter that is supported."""
    try:
        ran = subprocess.run(
            [program, "-I", "-c", _ASKING], capture_output=True, text=True, timeout=60, check=False
        )
        implementation, version, free, level = json.loads(ran.stdout)
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None
    if implementation != "CPython" or free or level != "final" or tuple(version[:2]) < OLDEST:
        return None
    return Interpreter(tuple(version), program)


def _candidates(places: Iterable[str]) -> Iterator[Path]:
    """Yield the programs that may be interpreters: this one, those on the path, and those of `places`."""
    yield Path(getattr(sys, "_base_executable", sys.executable))
    for folder in os.get_exec_path():
        yield from sorted(Path(folder).glob("python3.[0-9]*[0-9]"))
    for place in places:
        pattern = Path(place).expanduser()
        yield from sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor))))
