"""Processes that are killed together with those that they have started."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any


def kill_all(process: subprocess.Popen[Any]) -> None:
    """Kill a process and all below it, whatever their process groups: Java has one of its own."""
    for pid in [process.pid, *descendants(process.pid)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def descendants(pid: int) -> Iterator[int]:
    """Yield the processes that `pid` has started, and those that they have."""
    for child in _children().get(pid, []):
        yield child
        yield from descendants(child)


def _children() -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # pid (name) state parent ...; the name may hold anything.
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            found.setdefault(parent, []).append(int(stat.parent.name))
    return found
