"""One run of the pipeline over a busy network of four taps and three protocols: time and memory.

`specwire pipeline run` runs as a command, with processes of its own, over half of the messages and over all of
them (`tests.benchmarks.spark.busy`). The first case compares the processor time of a message, the second the peak
memory of the command, its Java process and the workers: neither may grow with the number of messages. Half of five
million messages fill Java's heap, which is limited to 2 GiB; with fewer, Java just collects garbage later.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.spark.busy.capture import write_capture
from tests.benchmarks.spark.harness import Bench, Row
from tests.benchmarks.spark.memory import watched

SHARES = (0.5, 1.0)
"""Shares of the messages that were asked for."""
WANTED = 1.1
"""Maximum ratio of the whole capture to half of it, for time and for memory."""


def measure(bench: Bench) -> Iterator[Row]:
    """Yield the processor time and the peak memory of one run for each number of messages."""
    runs = [_run(bench.folder / f"busy-{share}", int(bench.rows * share)) for share in SHARES]
    for case, value in (("processor seconds for 1,000,000", _for_million), ("peak memory", _peak)):
        for run in runs:
            ratio, wanted = value(run) / value(runs[0]), None if run is runs[0] else WANTED
            million_s = _for_million(run)
            way = f"{run.messages:,} messages"
            yield Row(
                f"mixed protocols, {case}", way, run.messages, million_s, million_s, ratio, ratio, wanted, run.peak_mib
            )  # fmt: skip


class Measured(NamedTuple):
    """A run: the messages, the processor time of all its processes in seconds, and their peak memory in MiB."""

    messages: int
    processor_s: float
    peak_mib: float


def _for_million(run: Measured) -> float:
    return run.processor_s / run.messages * 1e6


def _peak(run: Measured) -> float:
    return run.peak_mib


def _run(capture: Path, wanted: int) -> Measured:
    """Write a capture of about so many messages, and run the pipeline over it."""
    messages = write_capture(capture, max(1000, wanted))
    with tempfile.TemporaryDirectory(dir=capture.parent) as name:
        command = [sys.executable, "-m", "specwire", "pipeline", "run", "--capture", str(capture)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with (
            subprocess.Popen(
                [*command, "--out", f"{name}/out", "--master", "local[2]"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process,
            watched(process.pid) as peak,
        ):
            assert process.wait() == 0, command
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(messages, processor_s, peak.mib)
