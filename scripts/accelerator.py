"""The packages in C: compiled once, and again when their sources, the compiler or ``setup.py`` change.

They are not needed, so nothing here ends set-up: what cannot be compiled stays in Python, and one line says so.
The stamp in `.venv` records what was tried; where there was no compiler, the first `make` after one was installed
tries again.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import shutil
import sysconfig
from pathlib import Path

from environment import Environment
from system_packages import SetUpError, say


def is_current(environment: Environment) -> bool:
    """Whether everything was compiled of what is there now, or could not be and still cannot."""
    try:
        stamp = json.loads(_stamp(environment).read_text())
    except (OSError, ValueError):
        return False
    made = [environment.root / name for name in stamp["modules"]]
    return stamp["digest"] == _digest(environment.root) and all(path.is_file() for path in made)


def compile_packages(environment: Environment) -> None:
    """Compile what changed, and say which packages are in C then."""
    digest = _digest(environment.root)
    say("compiling the packages (some minutes the first time)")
    try:
        environment.call("setup.py", "-q", "build_ext", "--inplace", "--build-lib", "build/lib", pure=False)
    except SetUpError as error:
        say(f"they stay in Python: {error}")
    say(_builds(environment))
    modules = [str(path.relative_to(environment.root)) for path in _compiled(environment.root)]
    _stamp(environment).write_text(json.dumps({"digest": digest, "modules": modules}) + "\n")


def _builds(environment: Environment) -> str:
    """Which packages are in which build, in one line."""
    try:
        found: dict[str, str] = json.loads(environment.ask("-m", "specwire", "show", "builds", "--json"))
    except (SetUpError, ValueError) as error:
        return f"the builds of the packages cannot be told: {error}"
    named: dict[str, list[str]] = {}
    for name, reason in found.items():
        named.setdefault(f"in Python, {reason}" if reason else "in C", []).append(name)
    parts = (f"{build}: {', '.join(names)}" for build, names in named.items())
    return f"packages {'; '.join(parts)}"


def _stamp(environment: Environment) -> Path:
    return environment.folder / "compiled.json"


def _digest(root: Path) -> str:
    """SHA-256 of all that decides what comes out: sources, how they are compiled, and the compiler's place."""
    digest = hashlib.sha256()
    for path in (root / "setup.py", *_sources(root)):
        digest.update(f"{path.name}\n".encode() + path.read_bytes())
    compiler = shutil.which(os.environ.get("CC", "cc").partition(" ")[0])
    headers = Path(sysconfig.get_path("include"), "Python.h").is_file()
    digest.update(f"{compiler} {headers}".encode())
    return digest.hexdigest()


def _sources(root: Path) -> list[Path]:
    return _below(root, ".pyx", ".pxd")


def _compiled(root: Path) -> list[Path]:
    return _below(root, ".so")


def _below(root: Path, *suffixes: str) -> list[Path]:
    """Return the files with such an ending in the folders that `setup.py` looks into."""
    patterns = [f"{part}/**/*{suffix}" for part in ("generated", "runtime") for suffix in suffixes]
    # Unlike `Path.rglob`, `glob` follows the links to folders of the support library.
    return sorted(
        root / found for pattern in patterns for found in glob.glob(pattern, root_dir=root, recursive=True)
    )
