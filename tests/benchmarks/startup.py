"""Measure how much longer than Python itself the command line and the packages take to start: ``make bench``.

Each runs in a process of its own, in turn with ``python -c pass``, and the best of several runs counts:
everything else that a machine does only adds time. What is promised is the difference: of a command under a
third of a second, of the import of a generated package, with all that it imports, under 60 ms. The ratio
says how much of it is the machine.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table

from specwire import generated

LIMIT_S = 1 / 3
IMPORT_LIMIT_S = 0.06
RUNS = 7
PACKAGES = tuple(path.parent.name for path in sorted(Path(generated.__file__).parent.glob("*/codec.py")))
COMMANDS = {
    "specwire --help": ["--help"],
    "specwire --version": ["--version"],
    "specwire decode, one message": ["decode", "zre", "aaa106020001"],
    "specwire decode --json": ["decode", "zre", "aaa106020001", "--json"],
}


@dataclass(frozen=True)
class Start:
    """Seconds that something took, and by how much and how many times that is longer than bare Python."""

    case: str
    seconds: float
    more_s: float
    ratio: float
    limit_s: float

    @property
    def kept(self) -> bool:
        """Whether the promise is kept."""
        return self.more_s < self.limit_s


def measure() -> list[Start]:
    """Return a row for each command, and one for each package."""
    commands = [_measure(case, LIMIT_S, "-m", "specwire", *words) for case, words in COMMANDS.items()]
    imports = [(name, f"import specwire.generated.{name}") for name in PACKAGES]
    return commands + [
        _measure(f"import of {name}", IMPORT_LIMIT_S, "-c", program) for name, program in imports
    ]


def _measure(case: str, limit_s: float, *arguments: str) -> Start:
    bare = started = float("inf")
    for _ in range(RUNS):
        bare = min(bare, _seconds("-c", "pass"))
        started = min(started, _seconds(*arguments))
    return Start(case, started, started - bare, started / bare, limit_s)


def _seconds(*arguments: str) -> float:
    begun = perf_counter()
    # The end of its output tells when it ends; waiting for the process with a time limit would be polling.
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True, timeout=60)
    return perf_counter() - begun


def main() -> None:
    """Print a row for each command, or JSON with ``--json``; fail where the promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    as_json = parser.parse_args().json
    rows = measure()
    if as_json:
        json.dump([asdict(row) for row in rows], sys.stdout, indent=2)
        sys.stdout.write("\n")
    else:
        _show(rows)
    sys.exit(not all(row.kept for row in rows))


def _show(rows: list[Start]) -> None:
    table = Table(title="Start against bare Python", title_justify="left")
    table.add_column("what starts")
    for head in ("ms", "ms more than Python", "at most", "x Python"):
        table.add_column(head, justify="right")
    for row in rows:
        cells = (
            f"{row.seconds * 1e3:.0f}",
            f"{row.more_s * 1e3:.0f}",
            f"{row.limit_s * 1e3:.0f}",
            f"{row.ratio:.1f}",
        )
        table.add_row(row.case, *cells)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
