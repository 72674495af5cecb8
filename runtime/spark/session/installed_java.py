"""Java that Spark would start on this machine, found without Spark.

`specwire doctor` uses this module even if Spark is not installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

JAVA_VERSION = 17
"""The oldest Java that Spark 4 runs on."""

ANSWER_S = 60.0
"""Timeout for Java to print its version, in seconds."""


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
    """Return the Java of JAVA_HOME, or of the path if that is not set.

    None if there is none.
    """
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    return InstalledJava(Path(found), _version(found)) if found else None


def find_java() -> Path | None:
    """Return the `java` that Spark will use, from JAVA_HOME or the path.

    None if there is none new enough.
    """
    java = look_for_java()
    return java.program if java is not None and java.is_new_enough else None


def _version(program: str) -> str:
    try:
        command = [program, "-version"]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version = re.search(r'version "([^"]+)"', ran.stderr)
    return version[1] if version else ""
