"""Find a Java that Spark runs on: version 17 or newer, by JAVA_HOME, on the path, or where systems keep them.

A Java found by JAVA_HOME or on the path needs nothing more: Spark looks in the same places. One that is
installed beside an older default is named to the programs by JAVA_HOME, which the Makefile takes from
the file written here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from system_packages import OLDEST_JAVA

SYSTEM_FOLDER = Path("/usr/lib/jvm")
"""Where Linux distributions install every Java, whichever of them is the default."""


@dataclass(frozen=True)
class Java:
    """A Java that was run: its program, its version, and the JAVA_HOME to set (empty: none needed)."""

    program: str
    version: str
    home: str

    def still_there(self) -> bool:
        """Whether Spark would find this Java today: the environment leads to it, or `home` does."""
        reached = bool(self.home) or self.program == _program_of_environment()
        return reached and os.access(self.program, os.X_OK)

    def write(self, file: Path) -> None:
        """Remember this Java in `file`, and its `home` beside it for the Makefile."""
        file.write_text(json.dumps(asdict(self)) + "\n")
        file.with_suffix(".home").write_text(self.home)

    @classmethod
    def read(cls, file: Path) -> Java | None:
        """Return the Java remembered in `file`, None when there is none."""
        try:
            return cls(**json.loads(file.read_text()))
        except (OSError, ValueError, TypeError):
            return None


def find_java() -> Java | None:
    """Return the first Java that is new enough: the environment's, else the newest of the system's."""
    first = _program_of_environment()
    if first and (version := _version(first)):
        return Java(first, version, home="")
    found = [(version, program) for program in _other_programs() if (version := _version(program))]
    if not found:
        return None
    version, program = max(found, key=lambda each: int(each[0].split(".")[0]))
    return Java(program, version, home=str(Path(program).resolve().parent.parent))


def _program_of_environment() -> str | None:
    """Return the `java` that Spark would start: below JAVA_HOME if that is set, else on the path."""
    home = os.environ.get("JAVA_HOME")
    return str(Path(home, "bin", "java")) if home else shutil.which("java")


def _other_programs() -> Iterator[str]:
    """Yield the other places: the path (where JAVA_HOME leads nowhere), then the system's folder."""
    on_path = shutil.which("java")
    if on_path:
        yield on_path
    yield from sorted(str(program) for program in SYSTEM_FOLDER.glob("*/bin/java"))


def _version(program: str) -> str | None:
    """Run `program` and return its version when it is new enough, else None."""
    try:
        run = subprocess.run([program, "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    version = re.search(r'version "((\d+)[^"]*)"', run.stderr)
    return version[1] if version and run.returncode == 0 and int(version[2]) >= OLDEST_JAVA else None
