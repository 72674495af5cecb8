"""Measure NORFAB's peers: ``make bench``. Ours, the real norfab 0.25.0 in the same run, and a bare relay of pyzmq.

Every peer is a separate process on this machine, over TCP on loopback, without security, with its default durability (ours
once more with ``--durability full``). The tasks do nothing, and every package gets the same number of jobs. Packages take
turns, and the best round counts for each figure: whatever else the machine does only makes it worse. The real package is
omitted where it cannot be installed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.benchmarks.norfab.jobs import OURS, OURS_FULL, Kind, one_and_one, real, relayed, to_all
from tests.benchmarks.norfab.scale import crowd
from tests.integration.norfab_real import NotInstallableError, python_with_norfab

Row = dict[str, object]
LESS_IS_BETTER = ("ms", "MiB", "s", "% of a core", "us a job")
HEADS = ("case", "kind", "unit", "value", "x norfab 0.25.0")
WINDOWS = (1, 64)
"""Jobs in flight through a relay."""


def measure(kinds: Sequence[Kind], asked: argparse.Namespace) -> Iterator[Row]:
    """Return the figures of one round."""
    with tempfile.TemporaryDirectory() as folder:
        place = (Path(folder) / str(number) for number in range(1000))
        for kind in kinds:
            if "jobs" in asked.only:
                yield from one_and_one(kind, next(place), asked.jobs, asked.together)
                yield from to_all(kind, next(place), 10, asked.all)
            if "relay" in asked.only:
                yield from relayed(kind, next(place), asked.relay, WINDOWS)
        if "relay" in asked.only:
            yield from relayed(None, next(place), asked.relay, WINDOWS)
        if "scale" in asked.only:
            yield from crowd(next(place), asked.workers, asked.clients, asked.seconds)


def best(rows: Sequence[Row]) -> list[Row]:
    """Return the best of each figure, with its ratio to the real package's."""
    found: dict[tuple[object, object], Row] = {}
    for row in rows:
        known = found.setdefault((row["case"], row["kind"]), row)
        better: Callable[..., object] = min if row["unit"] in LESS_IS_BETTER else max
        known["value"] = better(known["value"], row["value"])
    for (case, _), row in found.items():
        theirs = found.get((case, "norfab 0.25.0"))
        if theirs is not None and theirs is not row:
            ours, other = _number(row), _number(theirs)
            row["x norfab 0.25.0"] = other / ours if row["unit"] in LESS_IS_BETTER else ours / other
    return list(found.values())


def _number(row: Row) -> float:
    value = row["value"]
    assert isinstance(value, float)
    return value


def main() -> None:
    """Measure, and print a table or JSON."""
    asked = _parse()
    kinds = [OURS, OURS_FULL]
    try:
        kinds.append(real(python_with_norfab()))
    except NotInstallableError as error:
        print(error, file=sys.stderr)
    rows = best([row for _ in range(asked.rounds) for row in measure(kinds, asked)])
    cases = list(dict.fromkeys(row["case"] for row in rows))
    rows.sort(key=lambda row: cases.index(row["case"]))
    if asked.json:
        json.dump(rows, sys.stdout, indent=2)
        sys.stdout.write("\n")
    elif asked.markdown:
        lines = [list(HEADS), ["---", "---", "---", "---:", "---:"], *map(_cells, rows)]
        sys.stdout.writelines(f"| {' | '.join(line)} |\n" for line in lines)
    else:
        table = Table(title=f"NORFAB's peers, best of {asked.rounds}", title_justify="left")
        for head in HEADS:
            table.add_column(head, justify="right" if head.startswith(("value", "x ")) else "left")
        for row in rows:
            table.add_row(*_cells(row))
        Console(width=120).print(table)


def _cells(row: Row) -> list[str]:
    value, ratio = _number(row), row.get("x norfab 0.25.0")
    shown = f"{value:,.0f}" if value >= 100 else f"{value:.2f}"
    cells = [str(row[head]) for head in HEADS[:3]]
    return [*cells, shown, f"{ratio:.1f}" if isinstance(ratio, float) else ""]


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="norfab", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--markdown", action="store_true", help="print the table of docs/explanation/benchmarks/norfab.md"
    )
    parser.add_argument("--rounds", type=int, default=2, help="how often each kind is measured")
    parser.add_argument("--jobs", type=int, default=300, help="jobs one at a time")
    parser.add_argument("--together", type=int, default=500, help="jobs in flight together")
    parser.add_argument("--all", type=int, default=100, help="jobs to ten workers")
    parser.add_argument("--relay", type=int, default=20_000, help="jobs through a broker alone")
    parser.add_argument("--workers", type=int, default=2_000, help="workers of one broker")
    parser.add_argument("--clients", type=int, default=200, help="clients of that broker")
    parser.add_argument("--seconds", type=float, default=30.0, help="of heartbeats at that broker")
    cases = ("jobs", "relay", "scale")
    parser.add_argument("--only", nargs="+", choices=cases, default=cases)
    return parser.parse_args()


if __name__ == "__main__":
    main()
