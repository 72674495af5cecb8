"""What each process of a measurement tells the one that started it: lines of JSON on its standard output.

A server prints its endpoint, and what it cost when its input has ended. A client says that it is ready, waits for
a line on its input, so that all begin together with their imports behind them, and prints when it began and ended,
by the clock that all processes of the machine share, and what it cost.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter, process_time
from types import TracebackType
from typing import Self

DEADLINE_S = 300.0


class Stopwatch:
    """The work of a client: says ``ready``, waits for the word to begin, and reports at the end."""

    def __init__(self) -> None:
        self._begun = self._ended = self._cpu_s = 0.0

    def stop(self) -> None:
        """The work is done; what follows is tidying up. Without this it is done when the block is left."""
        self._ended = perf_counter()

    def __enter__(self) -> Self:
        print(json.dumps("ready"), flush=True)
        sys.stdin.readline()
        self._cpu_s = process_time()
        self._begun = perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            self.stop()
        if kind is None:
            print_cost(self._cpu_s, begun=self._begun, ended=self._ended)


def print_endpoint(endpoint: str) -> float:
    """Tell where a server listens; returns the processor time that it took to come so far."""
    print(json.dumps(endpoint), flush=True)
    return process_time()


def print_cost(since_cpu_s: float, **more: float) -> None:
    """Tell the largest resident set of this process so far in KiB, its processor time since then, and `more`."""
    print(json.dumps({"kib": _memory_kib(), "cpu_s": process_time() - since_cpu_s, **more}), flush=True)


def _memory_kib() -> int:
    """Not `getrusage`: its figure begins with what the process that started this one had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
