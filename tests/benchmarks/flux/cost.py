"""What a process has cost so far, as the kernel counts it."""

from __future__ import annotations

from pathlib import Path


def cpu_s(pid: int) -> float:
    """Return the processor time of a process, all its threads together."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def memory_kib(pid: int) -> tuple[int, int]:
    """Return the resident set of a process in KiB: the largest so far, and as it is."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {words[0]: int(words[1]) for line in lines if (words := line.split())[0] in ("VmHWM:", "VmRSS:")}
    return sizes["VmHWM:"], sizes["VmRSS:"]
