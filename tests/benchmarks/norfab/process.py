"""Processes of a measurement: each says what it has to say in lines of JSON, and does what it is told in such lines.

What a process costs is read from the system by the one that started it, so nothing of it disturbs what is measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

DEADLINE_S = 20.0
TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    """A process that is killed when it is left; `ready` is its first line."""

    def __init__(self, command: Sequence[str], cwd: Path) -> None:
        cwd.mkdir(parents=True, exist_ok=True)
        root = str(Path(__file__).parents[3])
        path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
        self._name = " ".join(command)
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            env={**os.environ, "PYTHONPATH": path},
            text=True,
        )
        self.ready = self.read()

    def read(self) -> Any:
        """Return the next line of JSON; the real package writes other things too. Raises RuntimeError at the end."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line[0] in '{["':
                return json.loads(line)
        raise RuntimeError(f"{self._name} has ended with {self._process.wait()}")

    def order(self, **order: Any) -> Any:
        """Have it do something, and return what it says when that is done."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self.read()

    @property
    def cpu_s(self) -> float:
        """Processor time so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def kib(self) -> int:
        """Its resident set."""
        return self._status("VmRSS:")

    @property
    def most_kib(self) -> int:
        """The largest resident set that it had."""
        return self._status("VmHWM:")

    def _status(self, name: str) -> int:
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(name))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(DEADLINE_S)


def ours(module: str, *given: str) -> list[str]:
    """Return the command of one of our own modules beside this one."""
    return [sys.executable, "-m", f"tests.benchmarks.norfab.{module}", *given]
