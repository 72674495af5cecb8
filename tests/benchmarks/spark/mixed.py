"""One run of the pipeline over a busy network of four taps and three protocols: time and memory.

`specwire pipeline run` runs as a command, with processes of its own, over a fifth of the messages and over all of
them (`tests.benchmarks.spark.busy`). The first case compares the processor time of a message, the second the peak
memory of the command, its Java process and the workers: neither may grow with the number of messages.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from tests.benchmarks.spark.busy.capture import write_capture
from tests.benchmarks.spark.harness import Bench, Row
from tests.benchmarks.spark.memory import watched

SHARES = (0.2, 1.0)
"""Shares of the messages that were asked for."""
WANTED = 1.1
"""Maximum ratio of the whole capture to the smallest one, for time and for memory."""


def measure(bench: Bench) -> Iterator[Row]:
    """Yield the processor time and the peak memory of one run for each number of messages."""
    times: list[Row] = []
    peaks: list[Row] = []
    for share in SHARES:
        folder = bench.folder / f"busy-{share}"
        messages = write_capture(folder, max(1000, int(bench.rows * share)))
        wall_s, processor_s, peak_mib = _run(folder)
        each_us = processor_s / messages * 1e6
        way, wanted = f"{messages:,} messages", WANTED if times else None
        ratio = each_us / times[0].median_s if times else 1.0
        times.append(
            Row(
                "mixed protocols, µs of processor time a message",
                way,
                messages,
                each_us,
                wall_s / messages * 1e6,
                ratio,
                ratio,
                wanted,
                peak_mib,
            )
        )
        ratio = peak_mib / peaks[0].peak_mib if peaks else 1.0
        peaks.append(
            Row("mixed protocols, memory", way, messages, processor_s, wall_s, ratio, ratio, wanted, peak_mib)
        )
    yield from (*times, *peaks)


def _run(capture: Path) -> tuple[float, float, float]:
    """Run the pipeline; return the seconds by the clock, those of the processors, and the peak memory in MiB."""
    with tempfile.TemporaryDirectory(dir=capture.parent) as name, watched() as peak:
        command = [sys.executable, "-m", "specwire", "pipeline", "run", "--capture", str(capture)]
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), perf_counter()
        subprocess.run(
            [*command, "--out", f"{name}/out", "--master", "local[2]"],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wall_s, after = perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall_s, processor_s, peak.mib
