"""Measure a watch: how long it takes from a message at a socket to its row in a table.

    python -m tests.benchmarks.spark.live [--rate N] [--seconds N] [--warm N] [--no-alerts] [--json]

A tap of its own captures Flux requests at a steady rate, as a broker's does, and `specwire pipeline watch` follows with
the options that a user has if none are given. A message's time runs from `Tap.record` to the line that says
that its batch was committed: it holds the second for which a segment gathers. The first `--warm` seconds, while
Java warms up, are left out.
"""

from __future__ import annotations

import argparse
import bisect
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from specwire.generated import flux
from specwire.runtime.capture import Tap
from specwire.runtime.spark.session.target import find_java
from tests.benchmarks.spark.memory import watched

COMMAND = [sys.executable, "-P", "-m", "specwire.runtime.cli.main", "pipeline", "watch", "--json"]
LIMIT_S = 300.0
WANTED_S = 10.0
TICK_S = 0.05


class Commits:
    """When how many messages were in the tables; read from a watch's lines on a thread."""

    def __init__(self, lines: IO[str]) -> None:
        self.times: list[float] = []
        self.totals: list[int] = []
        self.batches: list[float] = []
        self.begun = threading.Event()
        self._lines = lines
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in self._lines:
            event = json.loads(line)
            if event["event"] == "batch" and "messages" in event:
                self.times.append(time.monotonic())
                self.batches.append(event["took_s"])
                self.totals.append(event["messages"])
                self.begun.set()

    def time_of(self, number: int) -> float:
        """When message `number`, from 0, was in a table."""
        return self.times[bisect.bisect_right(self.totals, number)]

    def wait_for(self, messages: int) -> None:
        """Wait until so many messages are in the tables."""
        deadline = time.monotonic() + LIMIT_S
        while not self.totals or self.totals[-1] < messages:
            if time.monotonic() > deadline:
                raise SystemExit(f"only {self.totals[-1:]} of {messages} messages came through")
            time.sleep(TICK_S)


@contextmanager
def watching(capture: Path, out: Path, options: list[str]) -> Iterator[tuple[Commits, subprocess.Popen[str]]]:
    """Give a watch that runs, and end it as a user does."""
    paths = ["--capture", str(capture), "--out", str(out)]
    with subprocess.Popen([*COMMAND, *paths, *options], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield Commits(process.stdout), process
        finally:
            process.terminate()
            process.wait(LIMIT_S)


def record(tap: Tap, rate: int, seconds: float) -> list[float]:
    """Record requests and their answers at a rate a second; return when each was recorded."""
    at: list[float] = []
    begun = time.monotonic()
    while (now := time.monotonic()) < begun + seconds:
        while len(at) < rate * (now - begun):
            tag = len(at) // 2 % 1000 + 1
            request = flux.Request(topic="kvs.get", nodeid=1, matchtag=tag, payload=b'{"key":"a"}\0')
            answer = flux.Response(topic="kvs.get", matchtag=tag, payload=b'{"value":1}\0')
            sender, message = ("C", request) if len(at) % 2 == 0 else ("S", answer)
            tap.record(sender=sender, peer="00aa", conversation="c1", frames=message.encode())
            at.append(time.monotonic())
        time.sleep(TICK_S)
    return at


def measure(asked: argparse.Namespace) -> dict[str, float]:
    """Return the latencies in seconds and what they were measured with."""
    options = [] if asked.alerts else ["--no-alerts"]
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "capture"
        with Tap.open(capture, protocol="flux", name="broker") as tap:
            with watching(capture, Path(folder) / "out", options) as (commits, _), watched() as peak:
                first = record(tap, asked.rate, 1.0)
                if not commits.begun.wait(LIMIT_S):
                    raise SystemExit("the watch has not begun")
                at = first + record(tap, asked.rate, asked.warm + asked.seconds)
                commits.wait_for(len(at))
            cut = at[-1] - asked.seconds
            latencies = sorted(commits.time_of(n) - then for n, then in enumerate(at) if then >= cut)
    batches = sorted(took for took, then in zip(commits.batches, commits.times, strict=True) if then >= cut)
    return {
        "rate": asked.rate,
        "messages": len(latencies),
        "p50_s": _quantile(latencies, 0.5),
        "p95_s": _quantile(latencies, 0.95),
        "max_s": latencies[-1],
        "batch_p50_s": _quantile(batches, 0.5),
        "batches": len(batches),
        "peak_mib": peak.mib,
    }


def _quantile(values: list[float], part: float) -> float:
    return values[min(len(values) - 1, int(part * len(values)))]


def main() -> int:
    """Measure, and print a table or JSON; return the exit status."""
    parser = argparse.ArgumentParser(description="Time from a message at a socket to its row in a table.")
    parser.add_argument("--rate", type=int, default=1000, help="messages a second")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds that are measured")
    parser.add_argument("--warm", type=float, default=30.0, help="seconds before them")
    parser.add_argument("--alerts", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--gate", action="store_true", help="fail where the goal is missed")
    asked = parser.parse_args()
    if find_java() is None:
        print("a watch is not measured: there is no Java", file=sys.stderr)
        return 0
    found = measure(asked)
    missed = found["p95_s"] > WANTED_S
    if asked.json:
        print(json.dumps(found, indent=2))
        return int(asked.gate and missed)
    for name, value in found.items():
        print(f"{name:12} {value:,.2f}")
    if missed:
        print(f"missed: p95 {found['p95_s']:.1f} s, wanted <= {WANTED_S:g} s")
    return int(asked.gate and missed)


if __name__ == "__main__":
    sys.exit(main())
