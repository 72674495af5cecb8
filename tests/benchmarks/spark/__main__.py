"""Measure Spark's part against reading a capture and doing nothing with it: ``make bench``.

    python -m tests.benchmarks.spark [--rows N] [--rounds N] [--only decode …] [--markdown | --json] [--gate]

Sessions have two cores and the compilers that a user has (tests take quicker ones): one for each topic, and where it
is backends that are compared (`decode`, `packages`, `linear`) one for each of them, a Java process of its own, as users
have one. Captures are written into a temporary folder (`TMPDIR`): 5 million messages are 0.4 GB. Each topic is a module
beside this one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.table import Table

from specwire.runtime.spark.session.opening import open_session
from specwire.runtime.spark.session.target import find_java
from tests.benchmarks.spark.decode import SESSIONS
from tests.benchmarks.spark.harness import Bench, Row

TOPICS = ("decode", "packages", "linear", "conversations", "latency", "pipeline", "packets", "mixed")
"""Modules of this folder, in the order in which they are run."""
SETTINGS = {"spark.driver.memory": "2g", "spark.sql.shuffle.partitions": "4"}
HEADS = ("case", "way", "rows", "median s", "best s", "x", "best x", "wanted", "peak MiB")
TEXTS = 2
"""So many columns hold text."""


def measure(asked: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of each topic that was asked for."""
    with tempfile.TemporaryDirectory() as folder:
        for topic in asked.only:
            module = import_module(f"tests.benchmarks.spark.{topic}")
            for backends in _sessions(module, asked.backends):
                with open_session("local[2]", SETTINGS) as spark:
                    for row in module.measure(Bench(spark, Path(folder), asked.rows, asked.rounds, backends)):
                        print(
                            f"{row.case}, {row.way}: {row.median_s:.2f} s, x {row.ratio:.2f}", file=sys.stderr
                        )
                        yield row


def _sessions(topic: ModuleType, backends: Sequence[str]) -> list[Sequence[str]]:
    """Return the backends of each session of a topic: one of those that it knows, or all in one session."""
    known: Sequence[str] | None = getattr(topic, "SESSIONS", None)
    return [backends] if known is None else [(name,) for name in backends if name in known]


def main() -> int:
    """Measure, and print a table or JSON; return the exit status."""
    asked = _parse()
    if find_java() is None:
        print("Spark is not measured: there is no Java", file=sys.stderr)
        return 0
    rows = list(measure(asked))
    missed = [row for row in rows if row.missed]
    if asked.json:
        json.dump([asdict(row) for row in rows], sys.stdout, indent=2)
        sys.stdout.write("\n")
        return int(asked.gate and bool(missed))
    (_print_markdown if asked.markdown else _print)(rows)
    for row in missed:
        print(f"missed: {row.case}, {row.way}: x {row.ratio:.2f}, wanted {_goal(row)}")
    return int(asked.gate and bool(missed))


def _goal(row: Row) -> str:
    if row.wanted is None:
        return ""
    return f">= {-row.wanted:g}" if row.wanted < 0 else f"<= {row.wanted:g}"


def _cells(row: Row) -> list[str]:
    return [
        row.case, row.way, f"{row.rows:,}", f"{row.median_s:.2f}", f"{row.best_s:.2f}", f"{row.ratio:.2f}",
        f"{row.best_ratio:.2f}", _goal(row), f"{row.peak_mib:,.0f}",
    ]  # fmt: skip


def _print_markdown(rows: Sequence[Row]) -> None:
    rule = ["---" if number < TEXTS else "---:" for number in range(len(HEADS))]
    sys.stdout.writelines(f"| {' | '.join(line)} |\n" for line in [list(HEADS), rule, *map(_cells, rows)])


def _print(rows: Sequence[Row]) -> None:
    table = Table(title="Spark, times of the first way of each case", title_justify="left")
    for number, head in enumerate(HEADS):
        table.add_column(head, justify="left" if number < TEXTS else "right")
    for row in rows:
        table.add_row(*_cells(row))
    Console(width=130).print(table)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="spark", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument(
        "--markdown", action="store_true", help="print the tables of docs/explanation/benchmarks/spark.md"
    )
    parser.add_argument("--gate", action="store_true", help="fail where a goal is missed")
    parser.add_argument("--rows", type=int, default=5_000_000, help="messages of the captures")
    parser.add_argument("--rounds", type=int, default=5, help="how often each way is measured")
    parser.add_argument("--backends", nargs="+", choices=SESSIONS, default=SESSIONS)
    parser.add_argument("--only", nargs="+", choices=TOPICS, default=TOPICS, help="topics")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
