"""Measure Flux brokers against bare sockets that pass the same octets over the same hops: ``make bench``.

A broker alone and a chain of three, each a process of its own as `specwire flux broker` runs it, with CURVE between
them, and our client in this process: `broker.ping` over 0, 1 and 2 hops, one at a time and with many under way, and
events to one subscriber and to many. The yardstick is the same with bare sockets (`bare`): the same octets in the same framing, the
same parts and routes between the same number of processes, CURVE included, and answers counted by message. Both take
turns, and the best round of each counts: whatever else the machine does only adds time. Processor time is that of each
process for one message, with many under way; it does not depend on how busy the machine is.

    python -m tests.benchmarks.flux [--rounds N] [--markdown | --json] [--gate]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from tests.benchmarks.flux.asking import Figures, Load, ask_bare, ask_ours
from tests.benchmarks.flux.chains import SIZE, Stage, chains
from tests.benchmarks.flux.cost import memory_kib
from tests.benchmarks.flux.events import publish_bare, publish_ours

SLOWEST, LEAST_RATE = 2.0, 0.4
"""The gate: times the yardstick's median, times its rate."""

BARE, OURS = "bare", "brokers"
CASES = ("ping, local socket", "ping, 1 hop", "ping, 2 hops")
ONE, MANY = "events, 1 subscriber", "events, {} subscribers on 3 ranks"
RATES = {CASES[0]: 25_000, CASES[1]: 12_000, CASES[2]: 8_000, ONE: 25_000}
"""Messages a second that are aimed at."""

ABOVE_BARE_S, ONE_HOP_S = 60e-6, 250e-6
"""Medians that are aimed at: over the local socket above the bare one, and over one hop."""

IDLE_MIB = 60
TEXT = ("case", "kind", "broker CPU µs")
Best = Mapping[tuple[str, str], Figures]


async def measure(asked: argparse.Namespace) -> tuple[Best, list[tuple[float, float]]]:
    """Return the best of each case and kind, and the memory of each broker before there was any load, in MiB."""
    load = Load(asked.messages // 10, asked.messages, asked.window)
    runs: dict[tuple[str, str], list[Figures]] = {}
    async with chains() as stage:
        idle = [
            (most / 1024, now / 1024) for most, now in map(memory_kib, (stage.our_local_pid, *stage.our_pids))
        ]
        for _ in range(asked.rounds):
            for case, kind, figures in await take_turns(stage, load, asked.subscribers):
                runs.setdefault((case, kind), []).append(figures)
    return {which: best(rows) for which, rows in runs.items()}, idle


async def take_turns(stage: Stage, load: Load, subscribers: int) -> list[tuple[str, str, Figures]]:
    """Measure each case with each kind once."""
    rows: list[tuple[str, str, Figures]] = []
    bare_alone, ours_alone, watch = (stage.bare_local_pid,), (stage.our_local_pid,), stage.watch
    rows.append((CASES[0], BARE, await ask_bare(stage.bare_local, 0, load, bare_alone, watch)))
    rows.append((CASES[0], OURS, await ask_ours(stage.our_local, 0, load, ours_alone, watch)))
    for rank in range(1, SIZE):
        stops = slice(rank + 1)
        rows.append(
            (CASES[rank], BARE, await ask_bare(stage.bare, rank, load, stage.bare_pids[stops], watch))
        )
        rows.append(
            (CASES[rank], OURS, await ask_ours(stage.ours[0], rank, load, stage.our_pids[stops], watch))
        )
    rows.append((ONE, BARE, await publish_bare(stage.bare_local, load, bare_alone, watch)))
    rows.append((ONE, OURS, await publish_ours((stage.our_local,), 1, load, ours_alone, watch)))
    many = Load(0, max(load.pipelined // subscribers, 1), load.window, 1)
    each = -(-subscribers // SIZE)
    rows.append(
        (MANY.format(each * SIZE), OURS, await publish_ours(stage.ours, each, many, stage.our_pids, watch))
    )
    return rows


def best(rows: Sequence[Figures]) -> Figures:
    """Return the best of each figure."""
    return Figures(
        min(row.p50_s for row in rows),
        max(row.rate for row in rows),
        min(row.client_cpu_s for row in rows),
        min((row.broker_cpu_s for row in rows), key=sum),
    )


def tabulate(results: Best) -> list[dict[str, object]]:
    """Return one row for each case and kind."""
    rows: list[dict[str, object]] = []
    for (case, kind), figures in results.items():
        bare = results.get((case, BARE)) if kind == OURS else None
        rows.append(
            {
                "case": case,
                "kind": kind,
                "p50 µs": figures.p50_s * 1e6 or None,
                "x bare p50": figures.p50_s / bare.p50_s if bare and bare.p50_s else None,
                "a second": figures.rate,
                "x bare rate": figures.rate / bare.rate if bare else None,
                "client CPU µs": figures.client_cpu_s * 1e6,
                "broker CPU µs": " + ".join(f"{seconds * 1e6:.0f}" for seconds in figures.broker_cpu_s),
            }
        )
    return rows


def find_missed(results: Best, idle: Sequence[tuple[float, float]]) -> tuple[list[str], list[str]]:
    """Return what does not pass the gate, and the figures aimed at that were not reached."""
    gate: list[str] = []
    aims: list[str] = []
    for (case, kind), ours in results.items():
        bare = results.get((case, BARE))
        if kind == BARE or bare is None:
            continue
        if bare.p50_s and ours.p50_s > SLOWEST * bare.p50_s:
            gate.append(f"{case}: {ours.p50_s / bare.p50_s:.2f} times the bare p50, of {SLOWEST:g}")
        if ours.rate < LEAST_RATE * bare.rate:
            gate.append(f"{case}: {ours.rate / bare.rate:.2f} times the bare rate, of {LEAST_RATE:g}")
        if ours.rate < RATES[case]:
            aims.append(f"{case}: {ours.rate:,.0f} a second, of {RATES[case]:,}")
    above = results[CASES[0], OURS].p50_s - results[CASES[0], BARE].p50_s
    if above > ABOVE_BARE_S:
        aims.append(f"{CASES[0]}: p50 {above * 1e6:.0f} µs above the bare one, of {ABOVE_BARE_S * 1e6:.0f}")
    one_hop = results[CASES[1], OURS].p50_s
    if one_hop > ONE_HOP_S:
        aims.append(f"{CASES[1]}: p50 {one_hop * 1e6:.0f} µs, of {ONE_HOP_S * 1e6:.0f}")
    most = max(most for most, _ in idle)
    if most > IDLE_MIB:
        gate.append(f"an idle broker: {most:.0f} MiB, of {IDLE_MIB}")
    return gate, aims


def main() -> None:
    """Measure, and print a table or JSON."""
    asked = _parse()
    results, idle = asyncio.run(measure(asked))
    rows = tabulate(results)
    gate, aims = find_missed(results, idle)
    if asked.json:
        json.dump({"rows": rows, "idle MiB": idle, "gate missed": gate, "missed": aims}, sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif asked.markdown:
        _print_markdown(rows)
    else:
        _print(rows, asked.rounds)
    if not asked.json:
        memory = ", ".join(f"{now:.0f} ({most:.0f})" for most, now in idle)
        print(f"\nMiB of an idle broker, one alone and three in a chain, and at most so far: {memory}")
        for line in [*(f"gate missed: {line}" for line in gate), *(f"missed: {line}" for line in aims)]:
            print(line)
    if asked.gate and gate:
        raise SystemExit(1)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="flux", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--markdown", action="store_true", help="print the table of docs/explanation/benchmarks/flux.md"
    )
    parser.add_argument("--gate", action="store_true", help="fail where the gate is missed")
    parser.add_argument("--rounds", type=int, default=5, help="how often each kind is measured")
    parser.add_argument(
        "--messages", type=int, default=10_000, help="messages of a round; a tenth one at a time"
    )
    parser.add_argument("--window", type=int, default=128, help="messages under way")
    parser.add_argument("--subscribers", type=int, default=100, help="subscribers on three ranks together")
    return parser.parse_args()


def _format(head: str, value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if head.startswith("x ") else f"{value:,.0f}"
    return "" if value is None else str(value)


def _print_markdown(rows: Sequence[Mapping[str, object]]) -> None:
    lines = [list(rows[0]), ["---" if head in TEXT else "---:" for head in rows[0]]]
    lines += [[_format(head, value) for head, value in row.items()] for row in rows]
    sys.stdout.writelines(f"| {' | '.join(line)} |\n" for line in lines)


def _print(rows: Sequence[Mapping[str, object]], rounds: int) -> None:
    table = Table(title=f"Flux brokers, best of {rounds} rounds")
    for head in rows[0]:
        table.add_column(head, justify="left" if head in TEXT else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_format(head, value) for head, value in row.items()))
    Console().print(table)


if __name__ == "__main__":
    main()
