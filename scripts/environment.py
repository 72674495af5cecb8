"""The folder ``.venv``: made with the standard library's venv, filled by pip, stamped when it is whole.

The stamp is written last, so a `.venv` without one was not finished and is made anew. It records what
the contents depend on: pyproject.toml, constraints.txt, the Python, and the folder (programs inside
`.venv` name it in their first line, so one that was moved does not work).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from system_packages import SetUpError, say

State = Literal["current", "outdated", "missing"]

Purpose = Literal["run", "codecs", "dev", "release"]
"""An extra of pyproject.toml: for the main job, for work on codecs, for all work, for distributions."""
CONTAINED: Mapping[Purpose, tuple[Purpose, ...]] = {
    "run": (),
    "codecs": ("run",),
    "dev": ("run", "codecs"),
    "release": ("run", "codecs", "dev"),
}
"""For each purpose, the other ones whose libraries it contains."""

_NOT_OURS = ("PYTHONHOME", "PYTHONPATH", "SPECWIRE_PURE")
"""Variables of the user that must not reach what is installed: they are meant for programs that run with it."""


@dataclass(frozen=True)
class Environment:
    """The `.venv` of the project.

    Attributes:
        root: folder of the project.
        lock: descriptor of the lock that is held meanwhile.
        purpose: the extra that the caller needs.
    """

    root: Path
    lock: int
    purpose: Purpose = "dev"

    @property
    def folder(self) -> Path:
        """Where the environment is."""
        return self.root / ".venv"

    @property
    def java_file(self) -> Path:
        """Where the Java that was found is remembered."""
        return self.folder / "java.json"

    @property
    def _stamp(self) -> Path:
        return self.folder / "set-up.json"

    @property
    def _python(self) -> Path:
        return self.folder / "bin" / "python"

    @cached_property
    def _digest(self) -> str:
        """SHA-256 of the files that say what is installed."""
        digest = hashlib.sha256()
        for name in ("pyproject.toml", "constraints.txt"):
            digest.update((self.root / name).read_bytes())
        return digest.hexdigest()

    def state(self, *, python_is_chosen: bool) -> State:
        """Return whether `.venv` is current, outdated (installing again mends it) or has to be made.

        Its Python may be another than the one that runs here, unless the user has chosen this one.
        """
        stamp = self._read_stamp()
        version = _version_of(self._python)
        if stamp.get("root") != str(self.root) or version is None or stamp.get("python") != version:
            return "missing"
        if python_is_chosen and version != sys.version.split()[0]:
            return "missing"
        whole = stamp.get("digest") == self._digest and stamp.get("purpose") == self._widest_purpose()
        return "current" if whole else "outdated"

    def _read_stamp(self) -> dict[str, str]:
        """Return the record of the last set-up; empty if there was none, or it did not end."""
        try:
            stamp: dict[str, str] = json.loads(self._stamp.read_text())
        except (OSError, ValueError):
            return {}
        return stamp

    def _widest_purpose(self) -> Purpose:
        """The purpose of the last set-up if it includes this one, else this one."""
        known = self._read_stamp().get("purpose")
        return next(
            (wide for wide, others in CONTAINED.items() if wide == known and self.purpose in others),
            self.purpose,
        )

    def python_has_venv(self) -> bool:
        """Whether the Python that runs here can make an environment with pip in it."""
        return _run_quietly(_base_python(), "-c", "import ensurepip, venv")

    def bring_up(self, state: State) -> None:
        """Make `.venv` current, starting from `state`."""
        if state == "current":
            return
        purpose = self.purpose if state == "missing" else self._widest_purpose()
        self._stamp.unlink(missing_ok=True)
        if state == "missing":
            self._make()
        self._install(purpose)
        self._write_stamp(purpose)

    def _make(self) -> None:
        if self.folder.is_symlink() or self.folder.exists():
            say(".venv is unfinished, moved or of another Python: making it anew")
            self._remove()
        say(f"making .venv with Python {sys.version.split()[0]}")
        self._run(_base_python(), "-m", "venv", str(self.folder))

    def _remove(self) -> None:
        if self.folder.is_symlink() or not self.folder.is_dir():
            self.folder.unlink()
        else:
            shutil.rmtree(self.folder)

    def _install(self, purpose: Purpose) -> None:
        """Install the build back end first, at its pinned release, and build everything with it."""
        say("installing the dependencies (the first time takes a few minutes)")
        project = tomllib.loads((self.root / "pyproject.toml").read_text())
        pip = ("-m", "pip", "install", "-qq", "--no-input", "--disable-pip-version-check")
        pinned = ("-c", str(self.root / "constraints.txt"))
        self.call(*pip, *pinned, *project["build-system"]["requires"])
        self.call(*pip, *pinned, "--no-build-isolation", "--use-pep517", "-e", f"{self.root}[{purpose}]")

    def _write_stamp(self, purpose: Purpose) -> None:
        version = _version_of(self._python)
        stamp = {
            "root": str(self.root),
            "python": version,
            "digest": self._digest,
            "purpose": purpose,
        }
        aside = self._stamp.with_suffix(".tmp")
        aside.write_text(json.dumps(stamp) + "\n")
        aside.replace(self._stamp)

    def call(self, *arguments: str, pure: bool = True) -> None:
        """Run the environment's Python, its output and errors shown; `pure`: it shall compile nothing.

        Raises:
            SetUpError: it failed.
        """
        self._run(str(self._python), *arguments, pure=pure)

    def ask(self, *arguments: str) -> str:
        """Run the environment's Python and return what it prints.

        Raises:
            SetUpError: it failed.
        """
        return self._run(str(self._python), *arguments, pure=False, stdout=subprocess.PIPE)

    def _run(self, *command: str, pure: bool = True, stdout: int | None = None) -> str:
        variables = {k: v for k, v in os.environ.items() if k not in _NOT_OURS}
        variables |= {"PIP_USER": "0"} | ({"SPECWIRE_PURE": "1"} if pure else {})
        run = subprocess.run(
            command,
            cwd=self.root,
            env=variables,
            pass_fds=(self.lock,),
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            text=True,
            check=False,
        )
        if run.returncode != 0:
            raise SetUpError(f"this failed, see above: {' '.join(command)}")
        return run.stdout or ""


def _base_python() -> str:
    """Return the Python under the one that runs here, should that stand in an environment itself."""
    return str(getattr(sys, "_base_executable", sys.executable))


def _version_of(python: Path) -> str | None:
    """Run `python` and return its version, None when it does not run."""
    try:
        command = [str(python), "-E", "-c", "import pip, sys; print(sys.version.split()[0])"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.strip() if run.returncode == 0 else None


def _run_quietly(*command: str) -> bool:
    try:
        return subprocess.run(command, capture_output=True, timeout=60, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
