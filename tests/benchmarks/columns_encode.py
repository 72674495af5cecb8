"""Measure encoding from columns against encoding row by row, in one process: ``make bench``.

The yardstick is what a program does without columns: ``encode`` of every message, and a pyarrow array of the frames.
Making the messages from the columns first, which that program has to do too, is not counted against it.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import process_time
from types import ModuleType
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from specwire.generated import filemq, flux, norfab, zmtp, zre
from specwire.generated.messages import Message

FRAMES = pa.list_(pa.binary())
ROWS = 200_000
DIFFERENT = 1000
"""So many rows differ; then they come again."""
ROUNDS = 5
DIGEST = "407B386BDED4EEB62D59EB8069E0111906DFCC50"
UUID = "9af3256275334e2fbef389b82dabfb0d"


@dataclass(frozen=True)
class Result:
    """Nanoseconds a row, and how many times slower the row path was."""

    case: str
    encode_ns: float
    ratio: float


def cases() -> dict[str, tuple[ModuleType, Sequence[Message]]]:
    """Return the measured messages by name."""
    numbers = range(DIFFERENT)
    cheezburgers = [
        filemq.Cheezburger(
            n, 1, f"/photos/{n}.jpg", n << 12, (("size", str(n)), ("sha-1", DIGEST)), b"\0" * 64
        )
        for n in numbers
    ]
    return {
        "flux request, header alone": (flux, [flux.Request(routes=None, matchtag=n) for n in numbers]),
        "flux request": (
            flux,
            [flux.Request(topic=f"kvs.{n}", payload=b'{"key":"a"}\0', matchtag=n) for n in numbers],
        ),
        "filemq NOM": (filemq, [filemq.Nom(credit=n << 20) for n in numbers]),
        "filemq CHEEZBURGER, 2 headers": (filemq, cheezburgers),
        "filemq ICANHAZ, 20 cached": (filemq, [icanhaz(n) for n in numbers]),
        "norfab POST": (
            norfab,
            [norfab.PostClient(f"s{n}", "all", UUID, b'{"task": "add"}') for n in numbers],
        ),
        "zmtp READY, 2 properties": (
            zmtp,
            [zmtp.Ready((("Socket-Type", b"DEALER"), ("Identity", b"%d" % n))) for n in numbers],
        ),
        "zre HELLO": (
            zre,
            [
                zre.Hello(
                    version=2,
                    sequence=n,
                    endpoint="tcp://10.0.0.1:5670",
                    groups=("A", "B"),
                    status=1,
                    name=f"node-{n}",
                    headers=(("k", "v"),),
                )
                for n in numbers
            ],
        ),
        "filemq, NOM and CHEEZBURGER in turn": (
            filemq,
            [
                message
                for pair in zip(map(filemq.Nom, numbers), cheezburgers, strict=True)
                for message in pair
            ],
        ),
    }


def icanhaz(number: int) -> filemq.Icanhaz:
    """Return a request that lists what is there already."""
    cache = tuple((f"folder/file-{n:03}-{number}.txt", DIGEST) for n in range(20))
    return filemq.Icanhaz("/photos", (("RESYNC", "1"),), cache)


def measure(name: str, module: ModuleType, messages: Sequence[Message], rows: int) -> Result:
    """Time one case; both ways give the same array."""
    times = max(1, rows // len(messages))
    few = module.columns.decode(pa.array([message.encode() for message in messages], FRAMES))
    (batch,) = pa.Table.from_batches([few] * times).combine_chunks().to_batches()
    many = list(messages) * times

    def row_path() -> Any:
        return pa.array([message.encode() for message in many], FRAMES)

    if module.columns.encode(batch) != row_path():
        raise AssertionError(f"{name}: columns and rows disagree")
    columns_s = best(lambda: module.columns.encode(batch))
    return Result(name, columns_s / len(many) * 1e9, best(row_path) / columns_s)


def best(run: Callable[[], object]) -> float:
    """Return the seconds of processor time of the fastest of several rounds: what else runs does not count."""
    found = []
    for _ in range(ROUNDS):
        start = process_time()
        run()
        found.append(process_time() - start)
    return min(found)


def main() -> None:
    """Measure every case and print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print machine-readable results")
    parser.add_argument("--rows", type=int, default=ROWS, help="how many rows each case has")
    arguments = parser.parse_args()
    results = [measure(name, *case, arguments.rows) for name, case in cases().items()]
    if arguments.json:
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    table = Table("message", title="Columns to frames, against row by row", title_justify="left")
    for head in ("encode ns", "x row path"):
        table.add_column(head, justify="right")
    for result in results:
        table.add_row(result.case, f"{result.encode_ns:,.0f}", f"{result.ratio:.1f}")
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
