"""How much memory a process and all that it started have in use, at most, for the time of a block.

Linux only. Pages that processes share are counted once (the proportional set size), because Spark's workers are
forks of one daemon.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PAUSE_S = 0.3
"""Between two looks: reading the page tables of a large Java process takes some milliseconds."""


class Peak:
    """Peak memory so far of process `root` and its descendants, in MiB."""

    def __init__(self, root: int) -> None:
        self._root = root
        self.mib = 0.0

    def look(self) -> None:
        """Take the present use into account."""
        self.mib = max(self.mib, sum(map(_mib, _tree(self._root))))


@contextmanager
def watched(root: int | None = None) -> Iterator[Peak]:
    """Yield the peak of a process, by default this one, and its descendants; it is complete after the block."""
    peak, ended = Peak(os.getpid() if root is None else root), threading.Event()

    def look_often() -> None:
        while not ended.wait(PAUSE_S):
            peak.look()

    looking = threading.Thread(target=look_often, daemon=True)
    looking.start()
    try:
        yield peak
    finally:
        ended.set()
        looking.join()
        peak.look()


def _tree(root: int) -> list[int]:
    """The processes that descend from `root`, itself first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # A process may end while it is looked at.
            with suppress(OSError):
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def _mib(pid: int) -> float:
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0
