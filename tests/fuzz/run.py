"""Fuzz every target for a stated time: ``python -m tests.fuzz.run --seconds 600``, or ``make fuzz``.

The time is divided among the targets, two of which run at once. In the end there is a row for each target, and for
each finding the command that repeats it; the exit status is 1 then, and 2 where a target could not be fuzzed.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.fuzz.libfuzzer import ROOT, Outcome, fuzz
from tests.fuzz.targets import TARGETS

WORKERS = 2
SHOWN_OCTETS = 400
FOLDER = ROOT / "build" / "fuzz"
MISSING = "atheris is not installed: it has no wheel for this Python or this system"


def main(arguments: Sequence[str] | None = None) -> int:
    """Fuzz what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.run", description="Fuzz every target.")
    parser.add_argument("--seconds", type=int, default=300, help="time for all targets together")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this one; may be repeated")
    parser.add_argument("--if-possible", action="store_true", help="succeed where atheris is not installed")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where findings and new inputs go")
    chosen = parser.parse_args(arguments)
    if importlib.util.find_spec("atheris") is None:
        print(f"fuzz: {MISSING}; random messages: SPECWIRE_FUZZ_COUNT=100000 pytest tests/fuzz")
        return 0 if chosen.if_possible else 2
    started = time.monotonic()
    outcomes = fuzz_all(chosen.target or list(TARGETS), chosen.seconds, chosen.folder)
    report(outcomes, time.monotonic() - started)
    return exit_status(outcomes)


def fuzz_all(targets: Sequence[str], seconds: int, folder: Path) -> list[Outcome]:
    """Fuzz `targets`, two at once, in so many seconds; what another run found new makes way, but not its findings."""
    shutil.rmtree(folder / "corpus", ignore_errors=True)
    shares = Shares(time.monotonic() + seconds, len(targets))
    with ThreadPoolExecutor(WORKERS) as workers:
        return list(workers.map(lambda target: shares.spend(partial(fuzz, target, folder=folder)), targets))


class Shares:
    """Divides the time up to a moment among targets: each gets its part of what is left when its turn comes.

    What a worker takes to begin and to end, which is known from those before, is taken off.
    """

    def __init__(self, end: float, targets: int) -> None:
        self.end = end
        self.waiting = targets
        self.overhead_s = 1.0

    def spend(self, act: Callable[[int], Outcome]) -> Outcome:
        """Let `act` have a share, in whole seconds, one at least."""
        started = time.monotonic()
        part = (self.end - started) * min(WORKERS, self.waiting) / self.waiting
        self.waiting -= 1
        share = max(1, round(part - self.overhead_s))
        outcome = act(share)
        self.overhead_s = max(0.0, time.monotonic() - started - share)
        return outcome


def report(outcomes: Sequence[Outcome], seconds: float) -> None:
    """Print a row for each target, then what was found and how to see it again."""
    print(f"{'target':22}{'executions':>12}{'corpus':>9}{'new':>7}{'edges':>8}{'new':>6}{'findings':>10}")
    for row in outcomes:
        numbers = f"{row.executions:12,}{row.kept:9}{row.new:7}{row.edges:8}{row.new_edges:6}"
        print(f"{row.target:22}{numbers}{len(row.findings):10}")
    total = sum(row.executions for row in outcomes)
    print(f"{total:,} executions of {len(outcomes)} targets in {seconds:.0f} s")
    for row in outcomes:
        for path in row.findings:
            octets = path.read_bytes()
            if len(octets) <= SHOWN_OCTETS:
                print(f"{row.target}: {octets.hex()}")
            print(f"  repeat it: {Path(sys.executable)} -m tests.fuzz.reproduce {row.target} {path}")
        if row.status and not row.findings:
            print(f"{row.target}: the worker ended with status {row.status}; see {row.log}")


def exit_status(outcomes: Sequence[Outcome]) -> int:
    """Return 1 where something was found, 2 where a target could not be fuzzed, 0 otherwise."""
    if any(row.findings for row in outcomes):
        return 1
    return 2 if any(row.status for row in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
