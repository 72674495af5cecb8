"""How an instance grows: the simulator at sizes from 10 to 100,000, as a table and a picture.

Virtual times do not depend on the machine, so the picture is the same in every run; what the simulation itself costs
is told beside it, of a process for each size.

    python -m tests.benchmarks.flux_scale [--sizes 10,100,1000] [--fanouts 2,32] [--draw FILE.svg]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from specwire.runtime.cli.flux_simulate_tables import show_time
from specwire.runtime.flux.simulate import Report
from tests.benchmarks.log_chart import Line, draw

SCENARIO = Path("docs/scenarios/scale.toml")
SMALL = (10, 100, 1000)
"""Sizes that take a few seconds, for `make bench`."""
HOP_GOAL_S = 1e-3
"""CMB1, "Goals": a transit latency of the order of 10^-3 s."""
COLOURS = ("#0b6e4f", "#1f5fbf", "#a23b72", "#c46a00")


class Measured(msgspec.Struct):
    """One size: what was simulated, and what that took."""

    report: Report
    took_s: float
    peak_octets: int

    @property
    def event_s(self) -> float | None:
        """The longest time until the last broker had an event."""
        (scaled,) = [events for events in self.report.events if events.topic == "simulated"]
        return None if scaled.fan_out is None else scaled.fan_out.most_s


def measure(size: int, fanout: int) -> Measured:
    """Simulate one size in a process of its own."""
    command = ["-m", "specwire", "flux", "simulate", "--json", "--scenario", str(SCENARIO)]
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *command, "--size", str(size), "--fanout", str(fanout)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    with process.stdout:
        octets = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"the simulation of {size} brokers ended with status {process.returncode}")
    report = msgspec.json.decode(octets, type=Report)
    return Measured(report, time.perf_counter() - begun, usage.ru_maxrss * 1024)


def table(found: list[Measured]) -> str:
    """Return the figures in Markdown."""
    heads = (
        "brokers",
        "fan-out",
        "levels",
        "start",
        "RPC p50",
        "RPC p99",
        "event to all",
        "1 % killed: pending through them",
        "failed within",
        "full again after",
        "messages",
        "simulated in",
        "memory",
    )
    rows = [heads, ("---:",) * len(heads), *map(row, found)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def row(measured: Measured) -> tuple[str, ...]:
    """Return the cells of one size."""
    report = measured.report
    load, (kill,) = report.rpc[0], report.faults
    latency = load.latency
    return (
        f"{report.size:,}",
        str(report.fanout),
        str(report.height),
        show_time(report.start.full_s),
        show_time(latency.p50_s if latency else None),
        show_time(latency.p99_s if latency else None),
        show_time(measured.event_s),
        f"{kill.failed:,} of {kill.pending:,}",
        show_time(kill.failed_s),
        show_time(kill.full_s),
        f"{report.messages:,}",
        f"{measured.took_s:.1f} s",
        f"{measured.peak_octets / 1e6:,.0f} MB",
    )


def picture(found: list[Measured]) -> str:
    """Return the drawing: for each fan-out RPCs and events, beside what the goal of a hop would make of an RPC."""
    lines: list[Line] = []
    for number, fanout in enumerate(dict.fromkeys(each.report.fanout for each in found)):
        of = [each for each in found if each.report.fanout == fanout]
        colour, darker = COLOURS[2 * number % len(COLOURS)], COLOURS[(2 * number + 1) % len(COLOURS)]
        rpc = [(each.report.size, latency.p99_s) for each in of if (latency := each.report.rpc[0].latency)]
        event = [(each.report.size, each.event_s) for each in of if each.event_s]
        goal = [(each.report.size, 4 * each.report.height * HOP_GOAL_S) for each in of]
        lines.append(Line(f"fan-out {fanout}: RPC, p99", rpc, colour))
        lines.append(Line(f"fan-out {fanout}: event to all", event, darker))
        lines.append(Line(f"fan-out {fanout}: goal, longest RPC", goal, colour, "6 4"))
    return draw(
        "RPCs across the tree and events to all, by the number of brokers", "brokers", lines, show_time
    )


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SMALL)), help="numbers of brokers")
    parser.add_argument("--fanouts", default="2,32", help="children of each broker")
    parser.add_argument("--draw", type=Path, metavar="FILE", help="write the picture here")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    found = [
        measure(int(size), int(fanout))
        for fanout in options.fanouts.split(",")
        for size in options.sizes.split(",")
    ]
    print(json.dumps(msgspec.to_builtins(found)) if options.json else table(found))
    if options.draw is not None:
        options.draw.parent.mkdir(parents=True, exist_ok=True)
        options.draw.write_text(picture(found), encoding="utf-8")


if __name__ == "__main__":
    main()
