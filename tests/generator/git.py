"""Repositories of tests, which know nothing of the user's settings."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{
        f"GIT_{who}_{what}": "specwire@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    },
}


def start_repository(folder: Path) -> None:
    """Make an empty repository whose branch is ``main``."""
    _git(folder, "init", "--quiet", "--initial-branch", "main")


def commit_all(folder: Path) -> None:
    """Commit everything in the repository of `folder`."""
    _git(folder, "add", "--all", ":/")
    _git(folder, "commit", "--quiet", "--message", "Edition")


def _git(folder: Path, *words: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(
        ["git", "-C", str(folder), *words], check=True, env={**environment, **ENVIRONMENT}, timeout=60
    )
