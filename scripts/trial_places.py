"""An empty environment and an empty folder, as a new user has them: nothing of the repository is reached from there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class TrialError(Exception):
    """A distribution does not work: which command failed, with what it said below it."""


@dataclass(frozen=True)
class Place:
    """An empty environment, and an empty folder to work in."""

    programs: Path
    work: Path
    home: Path

    @classmethod
    def make(cls, folder: Path, python: Path) -> Place:
        """Make all of it below `folder`, with this interpreter."""
        environment = folder / "env"
        subprocess.run([python, "-m", "venv", environment], check=True)
        place = cls(environment / "bin", folder / "work", folder / "home")
        place.work.mkdir()
        place.home.mkdir()
        return place

    @property
    def variables(self) -> dict[str, str]:
        """The environment of a user who has activated it: no Python path, no settings of ours."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTHON", "SPECWIRE", "VIRTUAL_ENV", "PYTEST", "MYPY", "COV"))
        }
        path = os.pathsep.join([str(self.programs), os.environ.get("PATH", os.defpath)])
        return {**kept, "PATH": path, "VIRTUAL_ENV": str(self.programs.parent)}

    def pip(self, *words: str) -> None:
        """Have pip install something, with the user's own settings and cache."""
        quiet = ("-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check")
        self._call([str(self.programs / "python"), *quiet, *words], self.variables)

    def run(self, *command: str) -> str:
        """Run a command in the empty folder; return what it prints.

        Raises:
            TrialError: it does not end with status 0.
        """
        return self._call(
            [str(self.programs / command[0]), *command[1:]], {**self.variables, "HOME": str(self.home)}
        )

    def _call(self, command: list[str], variables: Mapping[str, str]) -> str:
        ran = subprocess.run(
            command,
            cwd=self.work,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode != 0:
            raise TrialError(
                f"status {ran.returncode}: {' '.join(command)}\n{ran.stdout[-4000:]}{ran.stderr[-4000:]}"
            )
        return ran.stdout
