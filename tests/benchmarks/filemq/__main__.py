"""Measure FILEMQ peers against bare ZeroMQ sockets, each side in a process of its own: ``make bench``.

Three transfers over TCP on loopback: one large file, many small ones, and one file to many clients.
The baseline is a loop of bare pyzmq sockets that sends the same octets and writes the same files
(`bare`), in the same run: alone, with a wait for the disk after each file, and with the SHA-1
computed while the file arrives. Our clients (`peers`) do both by default. They are also measured
without the wait, and without either. All kinds take turns, and the best round of each counts. What
arrived is checked after the clock has stopped. Files are in the page cache. The memory of a process
is its largest resident set.

With ``--gate`` the exit status is 1 if a ratio of `GATES` is missed. `libfilemq` compares with
another implementation, and `notice` measures the delay of a change.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.filemq.transfer import MEGABYTE, Case, Kind, Run, make_files, transfer

SMALL_OCTETS = 1000
GATES = {"large": ("x bare, digest", 0.8), "small": ("x bare, digest", 0.2), "many": ("x one client", 0.6)}
"""Least ratio of each case, with its column, for clients that compute the digest while they receive."""
TEXT = ("case", "kind")

BARE = Kind("bare", "tests.benchmarks.filemq.bare")
BARE_DIGEST = Kind("bare, digest inline", BARE.module, ("digest",))
BARE_SYNCED = Kind("bare, synced", BARE.module, ("sync",))
UNCHECKED = Kind("peers, digest after", "tests.benchmarks.filemq.peers", ("unchecked",))
UNSYNCED = Kind("peers, digest inline", UNCHECKED.module)
SYNCED = Kind("peers, digest inline, synced", UNSYNCED.module, ("sync",))

YARDSTICKS: Mapping[Kind, Kind] = {UNCHECKED: BARE, UNSYNCED: BARE, SYNCED: BARE_SYNCED}
"""What promises as much about the disk as each kind of ours."""

KINDS = (BARE, UNCHECKED, UNSYNCED, BARE_DIGEST, SYNCED, BARE_SYNCED)


def measure(case: Case, rounds: int) -> dict[Kind, Run]:
    """Return the least that each kind took, and the most memory that it had."""
    runs: dict[Kind, list[Run]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "published"
        digests = make_files(case, folder)
        for _ in range(rounds):
            for kind in KINDS:
                runs[kind].append(transfer(case, kind, folder, digests, Path(work)))
    return {
        kind: Run(
            seconds=min(run.seconds for run in rows),
            client_cpu_s=min(run.client_cpu_s for run in rows),
            server_cpu_s=min(run.server_cpu_s for run in rows),
            client_kib=max(run.client_kib for run in rows),
            server_kib=max(run.server_kib for run in rows),
        )
        for kind, rows in runs.items()
    }


def tabulate(case: Case, best: Mapping[Kind, Run], alone: Mapping[Kind, float]) -> list[dict[str, object]]:
    """Return one row for each kind.

    Args:
        alone: octets a second of one client that gets as much as all of `case` together; empty where there is none.
    """
    rows: list[dict[str, object]] = []
    for kind, run in best.items():
        ours = kind in YARDSTICKS
        rows.append(
            {
                "case": case.name,
                "kind": kind.name,
                "MB/s": case.octets / run.seconds / MEGABYTE,
                "files/s": case.files * case.clients / run.seconds,
                "x bare": best[BARE].seconds / run.seconds,
                "x bare, same wait": best[YARDSTICKS[kind]].seconds / run.seconds if ours else None,
                "x bare, digest": best[BARE_DIGEST].seconds / run.seconds if ours else None,
                "x one client": case.octets / run.seconds / alone[kind] if kind in alone else None,
                "client CPU s": run.client_cpu_s,
                "server CPU s": run.server_cpu_s,
                "client MiB": run.client_kib / 1024,
                "server MiB": run.server_kib / 1024,
            }
        )
    return rows


def main() -> None:
    """Measure, and print a table or JSON."""
    asked = _parse()
    each = asked.megabytes // asked.clients * MEGABYTE
    large = Case(f"one file of {asked.megabytes} MB", asked.megabytes * MEGABYTE, 1, 1)
    cases = {
        "large": large,
        "small": Case(f"{asked.files:,} files of 1 kB", SMALL_OCTETS, asked.files, 1),
        "many": Case(f"{each // MEGABYTE} MB to each of {asked.clients} clients", each, 1, asked.clients),
    }
    rows: list[dict[str, object]] = []
    missed: list[str] = []
    alone: dict[Kind, float] = {}
    for name, case in cases.items():
        if name not in asked.only:
            continue
        best = measure(case, asked.rounds)
        found = tabulate(case, best, alone if case.clients > 1 else {})
        rows += found
        missed += find_missed(name, found)
        if case is large:
            alone = {kind: case.octets / run.seconds for kind, run in best.items()}
    if asked.json:
        json.dump(rows, sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif asked.markdown:
        _print_markdown(rows)
    else:
        _print(rows, asked.rounds)
    for line in missed:
        print(f"gate missed: {line}", file=sys.stderr)
    if asked.gate and missed:
        raise SystemExit(1)


def find_missed(name: str, rows: Sequence[Mapping[str, object]]) -> list[str]:
    """Return a sentence if a case misses its gate."""
    head, least = GATES[name]
    (found,) = (row[head] for row in rows if row["kind"] == UNSYNCED.name)
    if isinstance(found, float) and found < least:
        return [f"{rows[0]['case']}: {found:.2f} {head}, of {least}"]
    return []


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="filemq", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--markdown", action="store_true", help="print the table of docs/explanation/benchmarks/filemq.md"
    )
    parser.add_argument("--gate", action="store_true", help="fail if a ratio is too low")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the large file")
    parser.add_argument("--files", type=int, default=10_000, help="number of small files")
    parser.add_argument("--clients", type=int, default=50, help="number of clients of one server")
    parser.add_argument("--rounds", type=int, default=3, help="how often each kind is measured")
    parser.add_argument(
        "--only", nargs="+", choices=("large", "small", "many"), default=("large", "small", "many")
    )
    return parser.parse_args()


def _print_markdown(rows: Sequence[Mapping[str, object]]) -> None:
    lines = [list(rows[0]), ["---" if head in TEXT else "---:" for head in rows[0]]]
    lines += [[_format(head, value) for head, value in row.items()] for row in rows]
    sys.stdout.writelines(f"| {' | '.join(line)} |\n" for line in lines)


def _print(rows: Sequence[Mapping[str, object]], rounds: int) -> None:
    title = f"FILEMQ peers against bare sockets that write the same files (best of {rounds})"
    table = Table(title=title, title_justify="left")
    for head in rows[0]:
        table.add_column(head, justify="left" if head in TEXT else "right")
    for row in rows:
        table.add_row(*(_format(head, value) for head, value in row.items()))
    Console(width=150).print(table)


def _format(head: str, value: object) -> str:
    if not isinstance(value, float):
        return "" if value is None else str(value)
    return f"{value:.2f}" if head.startswith("x ") or head.endswith(" s") else f"{value:,.0f}"


if __name__ == "__main__":
    main()
