"""What each process of a measurement tells the one that started it: lines of JSON on its standard output.

A server prints its endpoint, and what it cost when its input has ended. A client says that it is ready, waits for
a line on its input, so that all begin together with their imports behind them, and prints when it began and ended,
by the clock that all processes of the machine share, and what it cost. It leaves when its input ends: a process that
tidied up while others still work would be counted as their time.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import perf_counter, process_time

DEADLINE_S = 300.0


class Stopwatch:
    """The work of a client: says ``ready`` and waits for the word to begin."""

    def __init__(self) -> None:
        print(json.dumps("ready"), flush=True)
        sys.stdin.readline()
        self._cpu_s = process_time()
        self._begun = perf_counter()

    def stop(self) -> None:
        """The work is done: report, and return when all others are done as well; what follows is tidying up."""
        ended = perf_counter()
        print_cost(self._cpu_s, begun=self._begun, ended=ended)
        sys.stdin.read()


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
