"""Build the distributions that users install, and test each installation: ``make dist``.

``dist/`` gets a source archive, a wheel with compiled codecs for each interpreter on this machine
(`interpreters`), a wheel without compiled code for all others, and an SBOM: the list of all
libraries with their releases. They are built from a copy of the sources, so files of earlier builds
and tests are not included. The version comes from the latest tag. A release needs a section of
CHANGELOG.md.

On Linux, ``auditwheel`` checks that the wheels run on every distribution with glibc 2.17 or newer,
and tags them as manylinux2014.

Then pip installs each into an empty environment outside the repository, and `trials` runs it there.

``python scripts/dist.py --only build`` stops after building; ``--only TRIAL`` runs one trial on what
is in ``dist/``. Libraries come from the index that pip is set to.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from interpreters import Interpreter, ask, find_interpreters
from trial_places import Place, TrialError
from trials import PURE_WHEEL, TRIALS, USER_EXTRAS, WHEEL_TRIAL, run_trial

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"

LINKED = ("generator", "generated", "runtime", "grammars")
"""The folders that links below ``src/specwire`` lead to."""

FILES = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
FROM_TOOLS = ("__pycache__", "*.pyc", "*.so", "*.pyd", "*.egg-info", "*.tmp")
"""Files that tools write among the sources."""

BUILD = "build"
VERSION = "SETUPTOOLS_SCM_PRETEND_VERSION_FOR_SPECWIRE"
"""The variable that tells a build without the repository's history which version it makes."""

PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input")


class BuildError(Exception):
    """A builder failed. The message is one sentence, followed by the builder's output."""


def copy_sources(to: Path) -> None:
    """Copy the files of a distribution; links below ``src`` stay relative links."""
    for name in LINKED:
        shutil.copytree(ROOT / name, to / name, ignore=shutil.ignore_patterns(*FROM_TOOLS))
    shutil.copytree(ROOT / "src", to / "src", symlinks=True, ignore=shutil.ignore_patterns(*FROM_TOOLS))
    for name in FILES:
        shutil.copyfile(ROOT / name, to / name)


def read_version() -> str:
    """Return the version of this commit: that of its tag, or a preview of the next release."""
    return _run(sys.executable, "-m", "setuptools_scm", "--root", ROOT).strip().splitlines()[-1]


def check_changelog(version: str, changelog: str) -> None:
    """Check that a release, which is a version without ``dev``, has its own section of the changelog.

    Raises:
        BuildError: there is no heading with this version alone.
    """
    if "dev" not in version and f"## {version}" not in changelog.splitlines():
        raise BuildError(f"CHANGELOG.md has no section '## {version}': write what this release changes")


def build(to: Path, interpreters: list[Interpreter]) -> None:
    """Build the source archive, the wheels and the SBOM.

    Raises:
        BuildError: a builder failed, or the changelog lacks this release.
    """
    version = read_version()
    check_changelog(version, (ROOT / "CHANGELOG.md").read_text())
    with tempfile.TemporaryDirectory(prefix="specwire-dist-") as folder:
        sources, made = Path(folder, "specwire"), Path(folder, "made")
        copy_sources(sources)
        variables = {VERSION: version}
        builder = (sys.executable, "-m", "build", "--no-isolation", "--outdir", made, sources)
        _run(*builder, "--sdist", **variables)
        for interpreter in interpreters:
            _build_wheel(interpreter, sources, made, variables)
        _run(*builder, "--wheel", SPECWIRE_PURE="1", **variables)
        to.mkdir(exist_ok=True)
        for old in to.glob("specwire-*"):
            old.unlink()
        for path in sorted(made.iterdir()):
            shutil.copyfile(path, to / path.name)
            print(f"  {path.name}  {path.stat().st_size / 1e6:.1f} MB", flush=True)
    write_sbom(to)


def _build_wheel(interpreter: Interpreter, sources: Path, to: Path, variables: dict[str, str]) -> None:
    """Build the wheel for one interpreter, and tag it for manylinux2014."""
    with tempfile.TemporaryDirectory(prefix="specwire-wheel-") as folder:
        # pip installs what pyproject.toml names for building, at the releases of constraints.txt.
        # Old and new pip take them from different variables. Without -v it hides the build's output.
        pinned = str(ROOT / "constraints.txt")
        command = (*PIP, "--python", interpreter.program, "wheel", "-v", "--no-deps", "--wheel-dir", folder)
        variables = {**variables, "PIP_CONSTRAINT": pinned, "PIP_BUILD_CONSTRAINT": pinned}
        _run(sys.executable, *command, sources, **variables)
        (wheel,) = Path(folder).glob("*.whl")
        if sys.platform != "linux" or wheel.name.endswith("-any.whl"):
            shutil.copyfile(wheel, to / wheel.name)
            return
        tag = f"manylinux2014_{platform.machine()}"
        _run(sys.executable, "-m", "auditwheel", "repair", "--plat", tag, "--wheel-dir", to, wheel)


def write_sbom(to: Path) -> None:
    """Write the libraries that specwire brings with its extras, as CycloneDX in JSON, beside the wheels."""
    (pure,) = to.glob(PURE_WHEEL)
    target = to / f"{pure.name.removesuffix('-py3-none-any.whl')}.cdx.json"
    with tempfile.TemporaryDirectory(prefix="specwire-sbom-") as folder:
        place = Place.make(Path(folder), Path(sys.executable))
        place.pip(f"{pure}[{','.join(USER_EXTRAS)}]")
        options = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "library", "--output-reproducible")
        command = (sys.executable, "-m", "cyclonedx_py", "environment", *options, "-o", target)
        _run(*command, place.programs / "python")
    print(f"  {target.name}", flush=True)


def _run(*command: str | Path, **variables: str) -> str:
    """Run a builder with this environment's programs and return what it printed.

    Lines that begin with ``specwire:`` are shown.
    """
    kept = {name: value for name, value in os.environ.items() if name != "SPECWIRE_PURE"}
    ran = subprocess.run(
        [str(word) for word in command],
        env={**kept, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode != 0:
        raise BuildError(f"this failed: {' '.join(map(str, command))}\n{ran.stdout}{ran.stderr}")
    for line in (ran.stdout + ran.stderr).splitlines():
        if line.strip().startswith("specwire: "):  # What was not compiled, and why.
            print(f"  {line.strip()}", flush=True)
    return ran.stdout


def main(arguments: list[str] | None = None) -> int:
    """Build and try; return the exit status."""
    parser = argparse.ArgumentParser(description="Build and try the distributions of specwire.")
    parser.add_argument("--only", choices=(BUILD, *TRIALS), help="build, or run one trial on what is built")
    only = parser.parse_args(arguments).only
    interpreters = find_interpreters() if only in (None, BUILD) else []
    here = ask(Path(sys.executable))
    assert here is not None
    try:
        if only in (None, BUILD):
            print(f"building for {', '.join(interpreter.minor for interpreter in interpreters)}", flush=True)
            build(DIST, interpreters)
        trials = (
            [(name, here) for name in TRIALS] if only is None else [(only, here)] if only != BUILD else []
        )
        if only is None:
            others = [interpreter for interpreter in interpreters if interpreter.minor != here.minor]
            trials += [(WHEEL_TRIAL, interpreter) for interpreter in others]
        for name, interpreter in trials:
            started = time.monotonic()
            print(f"{name}, Python {interpreter.minor}: {TRIALS[name].what}", flush=True)
            run_trial(TRIALS[name], DIST, interpreter)
            print(f"  works; {time.monotonic() - started:.0f} s", flush=True)
    except (BuildError, TrialError, subprocess.CalledProcessError) as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
