"""Count the functions that handle one message: ``make trace PEER=filemq``.

The counted functions run between two points: a socket passes a message to the receive callback of
its `Link`, and the answer is passed to a `Link` to be sent. Some cases begin or end with the
program's own call or callback.

- Both peers run in this process, on loopback, each in a thread of its own. Only the thread of the
  counted peer is measured: work in its worker threads (files, SQLite) does not count.
- The peers have no tap. The shortest of `EXCHANGES` counts, without the first: imports and caches
  are warm, and a timer that fires meanwhile does not count.
- A function counts once, however often it runs. A comprehension is part of its function. Functions
  in C are not seen, so `make` chooses the Python build of the codecs (``SPECWIRE_PURE=1``).
- Classes are those with a method or property that ran.

    python -m tests.benchmarks.trace filemq|zre|norfab|flux [--list | --json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from tests.benchmarks.trace.cases import CASES, run_case
from tests.benchmarks.trace.exchange import APART, PEER, Function

PARTS = (PEER, *APART.values())


def count(functions: Sequence[Function]) -> list[tuple[str, int, int, int]]:
    """Return part, functions, modules and classes, for each part."""
    rows = []
    for part in PARTS:
        found = [one for one in functions if one.part == part]
        classes = {(one.file, one.owner) for one in found if one.owner}
        rows.append((part, len(found), len({one.file for one in found}), len(classes)))
    return rows


def main() -> None:
    """Trace a peer, and print tables or JSON."""
    parser = argparse.ArgumentParser(
        prog="trace", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("peer", choices=CASES, help="the protocol")
    parser.add_argument("--list", action="store_true", help="print each function, too")
    parser.add_argument("--json", action="store_true", help="print JSON: the functions of each case")
    asked = parser.parse_args()
    found = {name: asyncio.run(run_case(case)) for name, case in CASES[asked.peer].items()}
    if asked.json:
        names = {case: [f"{one.file}:{one.name}" for one in functions] for case, functions in found.items()}
        json.dump(names, sys.stdout, indent=2)
        return
    console = Console()
    for case, functions in found.items():
        print(f"{asked.peer} {case}")
        table = Table()
        for head in ("part", "functions", "modules", "classes"):
            table.add_column(head, justify="left" if head == "part" else "right")
        for row in count(functions):
            table.add_row(*map(str, row))
        console.print(table)
        if asked.list:
            for part in PARTS:
                files = Counter(one.file for one in functions if one.part == part)
                for file, number in files.items():
                    print(f"{part:9} {file} ({number})")
                    print(*(f"{'':12}{one.name}" for one in functions if one.file == file), sep="\n")


if __name__ == "__main__":
    main()
