"""The repository as its own tests see it: where it is, and which files are the product."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = ("generator", "generated", "runtime")
"""The folders that the package `specwire` is made of."""
LINKED = (*CODE, "grammars")
"""The folders that links below ``src/specwire`` lead to: the code, and the grammars that come with it."""


@cache
def product_files() -> tuple[Path, ...]:
    """Return every file that belongs to the project, without what tools and set-up write.

    Asks git where there is a checkout; in an unpacked archive every file belongs.
    """
    if is_checkout():
        listing = run_git("ls-files", "--cached", "--others", "--exclude-standard", "-z")
        names = [ROOT / name for name in listing.split("\0") if name]
    else:
        names = [path for path in ROOT.rglob("*") if not _is_made(path.relative_to(ROOT))]
    return tuple(sorted(path for path in names if path.is_file() and not path.is_symlink()))


def python_files(*folders: str) -> list[Path]:
    """Return the Python sources below the named top folders."""
    return [path for path in product_files() if path.suffix == ".py" and _top(path) in folders]


def is_support(path: Path) -> bool:
    """Whether `path` is a file of the support library, to which links in ``generated/`` lead."""
    return (ROOT / "generator/support") in path.parents


@cache
def has_compiler() -> bool:
    """Whether extension modules can be compiled here: there is a C compiler, and Python has its headers."""
    found = shutil.which(os.environ.get("CC", "cc").partition(" ")[0])
    return bool(found) and Path(sysconfig.get_path("include"), "Python.h").is_file()


def is_checkout() -> bool:
    """Whether the tests run in a git checkout, with git there to ask."""
    return (ROOT / ".git").exists() and shutil.which("git") is not None


def run_git(*arguments: str, text: str | None = None) -> str:
    """Run git in the repository and return what it prints."""
    # The checkout may belong to another user, as it does in containers.
    command = ["git", "-c", f"safe.directory={ROOT}", *arguments]
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=True).stdout


def _top(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


def _is_made(path: Path) -> bool:
    made = {".venv", ".venv.lock", "out", "build", "dist", "__pycache__", ".hypothesis"}
    return any(part in made or part.endswith(("_cache", ".egg-info", ".so")) for part in path.parts)
