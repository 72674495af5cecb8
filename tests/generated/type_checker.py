"""mypy in strict mode over a program that uses generated packages."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SETTINGS = """\
[mypy]
[mypy-numpy.*,pyarrow.*,construct.*,pyspark.*,pandas.*]
follow_imports = skip
"""
"""Libraries whose types the programs do not use: reading them takes two thirds of the time."""


def check(program: Path) -> str:
    """Return what mypy says of a program; the packages beside it are found."""
    (program.parent / "mypy.ini").write_text(SETTINGS, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=mypy.ini"]
    run = subprocess.run(
        [*command, program.name], cwd=program.parent, capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode in (0, 1), run.stdout + run.stderr
    return run.stdout
