"""Test with every interpreter on this machine, and format with the oldest and the newest ruff: ``make matrix``.

Each interpreter (`interpreters`) gets an environment of its own in ``build/matrix``, with the releases
of constraints.txt and codecs compiled for it. There the tests run, then a minute of fuzzing.

``--only 3.12`` takes one version, ``--only ruff`` only the formatters. Other arguments are passed to
pytest, for example ``--only 3.13 tests/generator``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

from interpreters import Interpreter, find_interpreters

ROOT = Path(__file__).resolve().parent.parent
PLACE = ROOT / "build" / "matrix"
FORMATTERS = {"the oldest ruff": "ruff==0.6.0", "the newest ruff": "ruff"}
RUFF = "ruff"
PIP = ("-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--upgrade")
PINNED = ("-c", str(ROOT / "constraints.txt"))


def main(arguments: list[str] | None = None) -> int:
    """Run everything; return 1 if something failed."""
    parser = argparse.ArgumentParser(description="Test specwire with every interpreter that is found.")
    parser.add_argument("--only", help="a version of Python, such as 3.12, or `ruff`")
    given, rest = parser.parse_known_args(arguments)
    found = {interpreter.minor: interpreter for interpreter in find_interpreters()}
    if given.only not in (None, RUFF, *found):
        print(f"matrix: no Python {given.only} is here; found: {', '.join(found)}", file=sys.stderr)
        return 2
    failed = []
    for minor, interpreter in found.items():
        if given.only in (None, minor):
            started = time.monotonic()
            print(f"Python {minor}: {interpreter.program}", flush=True)
            try:
                works = check_interpreter(interpreter, rest)
            except subprocess.CalledProcessError as error:  # It has no venv or no pip.
                print(error, file=sys.stderr)
                works = False
            if not works:
                failed.append(f"Python {minor}")
            print(f"Python {minor}: {time.monotonic() - started:.0f} s", flush=True)
    if given.only in (None, RUFF):
        failed += check_formatters()
    for name in failed:
        print(f"matrix: {name} failed, see above", file=sys.stderr)
    return 1 if failed else 0


def check_interpreter(interpreter: Interpreter, arguments: list[str]) -> bool:
    """Install, compile, test and fuzz with one interpreter; return whether all of it worked."""
    python = str(_environment(interpreter.minor, interpreter.program))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    building = project["build-system"]["requires"]
    return (
        _run(python, *PIP, *PINNED, *building)
        and _run(python, *PIP, *PINNED, "--no-build-isolation", "-e", f"{ROOT}[dev]", SPECWIRE_PURE="1")
        and _run(python, "setup.py", "-q", "build_ext", "--inplace")
        and _run(python, "-m", "pytest", "-q", "-n", "2", *arguments)
        and (bool(arguments) or _run(python, "-m", "tests.fuzz.run", "--seconds", "60", "--if-possible"))
    )


def check_formatters() -> list[str]:
    """Generate all packages with two releases of ruff; return those that lay them out differently."""
    python = str(_environment(RUFF, Path(sys.executable)))
    if not _run(python, *PIP, "-e", f"{ROOT}[compile]", SPECWIRE_PURE="1"):
        return ["the installation of the compiler"]
    failed = []
    for name, requirement in FORMATTERS.items():
        print(name, flush=True)
        checking = (python, "-m", "specwire.runtime.cli.main", "generate", "--check")
        if not (_run(python, *PIP, requirement) and _run(*checking)):
            failed.append(name)
    return failed


def _environment(name: str, program: Path) -> Path:
    """Return the Python of an environment in ``build/matrix``, which is made if it is not there."""
    folder = PLACE / name
    python = folder / "bin" / "python"
    if not (python.exists() and (folder / "bin" / "pip").exists()):
        subprocess.run([program, "-m", "venv", "--clear", folder], check=True)
    return python


def _run(*command: str, **variables: str) -> bool:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SPECWIRE"))}
    return subprocess.run(command, cwd=ROOT, env={**kept, **variables}, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
