"""Measure how long a change of a published file takes to arrive in an inbox: ``make bench``.

The server is a process of its own, the client is in this one, and so is whoever makes the changes: one after the
other, of a new file and of one that is written anew in turn, at moments that have nothing to do with the last one. A
delay is from the end of the writing to the moment when the file is in its place; FILEMQ peers promise 200 ms for
noticing, of which the server spends most in waiting for what else may change at the same time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path
from statistics import quantiles
from time import perf_counter

from rich.console import Console

from specwire.runtime.filemq import FilemqClient
from specwire.runtime.filemq.events import FileReceived
from tests.benchmarks.filemq.side import DEADLINE_S

PROMISED_S = 0.2
LONGEST_PAUSE_S = 0.1


async def measure(endpoint: str, published: Path, inbox: Path, changes: int) -> list[float]:
    """Return the delay of each change, in seconds."""
    dice = random.Random(5)
    delays: list[float] = []
    async with asyncio.timeout(DEADLINE_S), FilemqClient(endpoint, inbox, ["/"]) as client:
        watch = client.events()
        for i in count():
            (published / f"{i // 2}").write_bytes(dice.randbytes(1000))
            written = perf_counter()
            async for event in watch:
                if isinstance(event, FileReceived) and event.path == f"/{i // 2}":
                    break
            if i > 0:  # the first one also waited for the connection
                delays.append(perf_counter() - written)
            if len(delays) == changes:
                break
            await asyncio.sleep(dice.random() * LONGEST_PAUSE_S)
    return delays


def main() -> None:
    """Measure, and print one line or JSON."""
    parser = argparse.ArgumentParser(prog="notice", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--changes", type=int, default=200, help="number of changes")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        published = Path(work) / "published"
        published.mkdir()
        command = [sys.executable, "-m", "tests.benchmarks.filemq.peers", "serve", str(published)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            endpoint = json.loads(server.stdout.readline())
            delays = asyncio.run(measure(endpoint, published, Path(work) / "inbox", asked.changes))
            server.communicate()
    hundredths = quantiles(delays, n=100)
    row = {
        "changes": len(delays),
        "median ms": hundredths[49] * 1000,
        "90 % ms": hundredths[89] * 1000,
        "99 % ms": hundredths[98] * 1000,
        "most ms": max(delays) * 1000,
        f"within {PROMISED_S * 1000:.0f} ms": sum(delay <= PROMISED_S for delay in delays) / len(delays),
    }
    if asked.json:
        json.dump(row, sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        figures = (f"{head} {value:,.3g}" for head, value in row.items())
        Console(width=150).print(f"From a change to the file in the inbox: {', '.join(figures)}")


if __name__ == "__main__":
    main()
