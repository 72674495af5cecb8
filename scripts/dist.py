"""Build what users install, and try each of it as they would: ``make dist``.

``dist/`` gets the source archive, a wheel with the codecs in C for this machine, and a wheel that is Python alone.
All are built of a copy of the sources, so nothing that an earlier build or a test left behind comes along. Then
each is installed by pip into an empty environment (`trials`), and has to work there, far from the repository.

``python scripts/dist.py --only build`` stops after building; ``--only TRIAL`` runs one trial with what is in
``dist/``; ``--python PROGRAM`` tries with another Python, for which there is no wheel with compiled code. Libraries come from the index that pip is set to.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from trial_places import TrialError
from trials import TRIALS, run_trial

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"

LINKED = ("generator", "generated", "runtime", "grammars")
"""The folders that links below ``src/specwire`` lead to."""

FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
FROM_TOOLS = ("__pycache__", "*.pyc", "*.so", "*.pyd", "*.egg-info", "*.tmp")
"""What tools write among the sources."""

PURE = "py3-none-any.whl"
"""How the name of a wheel without compiled code ends."""

BUILD = "build"


class BuildError(Exception):
    """Something cannot be built: a sentence, with what the builder said below it."""


def copy_sources(to: Path) -> None:
    """Copy what a distribution is made of; the links stay relative links."""
    for name in LINKED:
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns(*FROM_TOOLS))
    shutil.copytree(ROOT / "src", to / "src", symlinks=True, ignore=shutil.ignore_patterns(*FROM_TOOLS))
    for name in FILES:
        shutil.copyfile(ROOT / name, to / name)


def build(to: Path) -> None:
    """Build the source archive, the wheel for this machine from it, and the wheel for any machine.

    Raises:
        BuildError: a builder failed.
    """
    with tempfile.TemporaryDirectory(prefix="specwire-dist-") as folder:
        sources = Path(folder, "specwire")
        copy_sources(sources)
        made = Path(folder, "made")
        _build(sources, made, pure=False)
        _build(sources, made, "--wheel", pure=True)
        to.mkdir(exist_ok=True)
        for old in to.glob("specwire-*"):
            old.unlink()
        for path in sorted(made.iterdir()):
            shutil.copyfile(path, to / path.name)
            print(f"  {path.name}  {path.stat().st_size / 1e6:.1f} MB", flush=True)


def _build(sources: Path, to: Path, *what: str, pure: bool) -> None:
    """Run the builder with the tools of this environment, which set-up has pinned."""
    variables = {name: value for name, value in os.environ.items() if name != "SPECWIRE_PURE"}
    if pure:
        variables["SPECWIRE_PURE"] = "1"
    command = [sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", str(to), str(sources)]
    ran = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if ran.returncode != 0:
        raise BuildError(f"this failed: {' '.join(command)}\n{ran.stdout}{ran.stderr}")
    for line in (ran.stdout + ran.stderr).splitlines():
        if line.startswith("specwire: "):  # what is not compiled, and why
            print(f"  {line}", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Build and try; return the exit status."""
    parser = argparse.ArgumentParser(description="Build and try the distributions of specwire.")
    parser.add_argument("--only", choices=(BUILD, *TRIALS), help="build, or run one trial on what is built")
    parser.add_argument(
        "--python", metavar="PROGRAM", help="Python to try with (default: the one that builds)"
    )
    given = parser.parse_args(arguments)
    only = given.only
    try:
        if only in (None, BUILD):
            print("building", flush=True)
            build(DIST)
        for name in TRIALS if only is None else (only,) if only != BUILD else ():
            started = time.monotonic()
            print(f"{name}: {TRIALS[name].what}", flush=True)
            run_trial(TRIALS[name], DIST, given.python)
            print(f"  works; {time.monotonic() - started:.0f} s", flush=True)
    except (BuildError, TrialError) as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
