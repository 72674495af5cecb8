"""Walk the README as a new user: ``make walk``, or ``python -m tests.walk``, after ``make dist``.

Each of the four paths is typed word by word, with what *Install* says before it, into a shell that has an empty
environment, an empty home, and beside it nothing but ``dist/``. The programs of this repository, and what its
``.venv`` holds, are not to be found there. Libraries come from the index that pip is set to.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.docs.page import Block, Command, blocks
from tests.docs.session import ROOT, PageError, Shell, open_shell

README = ROOT / "README.md"
DIST = ROOT / "dist"

PATHS: Mapping[str, tuple[str, ...]] = {
    "specification": ("A specification becomes a package",),
    "codec": ("A codec in a program",),
    "peers": ("Peers that run",),
    "tables": (
        "A specification becomes a package",
        "Peers that run",
        "Traffic as tables",
        "Your own protocol as tables",
    ),
}
"""The four paths, and the sections that each is; the last one begins with the package of the first and the captures of
the third."""

INSTALL = "Install"


def walk(sections: Iterable[str]) -> int:
    """Type the blocks of the sections of the README, one after the other; return how many commands there were.

    Raises:
        PageError: a command does not do what the README says.
    """
    with tempfile.TemporaryDirectory(prefix="walk-") as name:
        folder = Path(name)
        programs = _bare_python(folder)
        pip = _pip_settings()
        with open_shell(folder, programs, **pip) as shell:
            shutil.copytree(DIST, folder / "work" / "dist")
            return sum(_type(shell, block, folder) for title in sections for block in section(title))


def section(title: str) -> Iterator[Block]:
    """Yield the blocks below a heading of the README, up to the next heading; raises PageError where there is none."""
    lines = README.read_text(encoding="utf-8").splitlines()
    heads = [
        number for number, line in enumerate(lines, 1) if line.startswith("#") and _is_head(lines, number)
    ]
    begins = next((number for number in heads if lines[number - 1].lstrip("# ") == title), None)
    if begins is None:
        raise PageError(f"README.md has no section {title!r}")
    ends = next((number for number in heads if number > begins), len(lines) + 1)
    yield from (block for block in blocks(README) if begins < block.line < ends)


def _is_head(lines: list[str], number: int) -> bool:
    """Whether a line is outside of fenced blocks: comments in shell look like headings."""
    return sum(line.startswith("```") for line in lines[: number - 1]) % 2 == 0


def _type(shell: Shell, block: Block, folder: Path) -> int:
    """Run a block of commands, or of Python; return how many commands it was."""
    if block.language == "console":
        return shell.run_block(block, set_up=True)
    if block.language == "python":
        program = folder / f"line-{block.line}.py"
        program.write_text(block.text, encoding="utf-8")
        shell.run(Command(f"python {program}", ()), block, 0)
        return 1
    return 0


def _bare_python(folder: Path) -> Path:
    """Return a folder that has ``python3`` alone: the one under that which runs here, without its environment."""
    programs = folder / "programs"
    programs.mkdir()
    (programs / "python3").symlink_to(getattr(sys, "_base_executable", sys.executable))
    return programs


def _pip_settings() -> dict[str, str]:
    """Return what pip needs to find libraries as it does for this user, and what it has fetched before."""
    asked = [sys.executable, "-m", "pip", "cache", "dir"]
    cache = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.lower().endswith("_proxy") or name[:4] == "PIP_"
    }
    config = Path.home() / ".config" / "pip" / "pip.conf"
    if config.is_file():
        kept.setdefault("PIP_CONFIG_FILE", str(config))
    return {"PIP_CACHE_DIR": cache, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1", **kept}


def main(arguments: list[str] | None = None) -> int:
    """Walk the paths; return the exit status."""
    parser = argparse.ArgumentParser(description="Walk the four paths of the README in empty environments.")
    parser.add_argument("--only", choices=PATHS, help="one path")
    only = parser.parse_args(arguments).only
    if not list(DIST.glob("specwire-*.whl")):
        print("walk: dist/ has no wheel: make dist", file=sys.stderr)
        return 2
    failed = 0
    for name in [only] if only else PATHS:
        started = time.monotonic()
        try:
            count = walk((INSTALL, *PATHS[name]))
        except PageError as error:
            failed = 1
            print(f"{name}: {error}", flush=True)
        else:
            print(f"{name}: {count} commands, {time.monotonic() - started:.0f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
