"""Measure decoding to columns against the row codec and against copying, in one process: ``make bench``.

Two yardsticks: what a program does without columns (`decode` of every message, then pyarrow makes arrays of the
values), and copying the octets of the messages once. The second is what no decoder can beat; columns are wider than
what is on the wire, so what it takes to write them is given too, as a copy of the columns' octets.

Memory is what is taken at the same time beyond what was there before: Arrow's pool and numpy, as tracemalloc sees
it, against the octets of input and output.
"""

from __future__ import annotations

import argparse
import json
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import process_time
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from specwire.generated import filemq, flux, norfab, zmtp
from specwire.generated.columns import native as columns_native
from specwire.generated.columns.rows import decode_rows
from specwire.generated.messages import Message

ROWS = 1_000_000
ROW_PATH_ROWS = 20_000
DIFFERENT = 1000
"""So many messages differ; then they come again."""
ROUNDS = 9
UUID = "9af3256275334e2fbef389b82dabfb0d"
FRAMES = pa.list_(pa.binary())


@dataclass(frozen=True)
class Result:
    """One kind of message in one build of the decoder; ratios above 1 say how many times as long something takes."""

    case: str
    build: str
    million_per_s: float
    octets: float
    row_path_ratio: float
    """The row path takes so many times as long."""
    copy_ratio: float
    """It takes so many times as long as copying the messages' octets."""
    write_ratio: float
    """And as copying the octets of the columns that it fills."""
    memory_ratio: float
    """The most memory in use, against input and output together."""


def cases() -> dict[str, tuple[ModuleType, Sequence[Message]]]:
    """Return the measured messages by name."""
    numbers = range(DIFFERENT)
    requests = [flux.Request(routes=None, nodeid=n, matchtag=n * 3) for n in numbers]
    controls = [flux.Control(type_=n % 7, status=n, userid=n * 77) for n in numbers]
    return {
        "flux CONTROL, header alone": (flux, controls),
        "flux REQUEST, header alone": (flux, requests),
        "both, mixed": (flux, [row for pair in zip(controls, requests, strict=True) for row in pair]),
        "flux REQUEST, 2 hops": (flux, [whole_request(n) for n in numbers]),
        "filemq CHEEZBURGER, 2 headers": (filemq, [cheezburger(n, 16) for n in numbers]),
        "filemq CHEEZBURGER, 1 KiB": (filemq, [cheezburger(n, 1024) for n in numbers]),
        "norfab POST": (norfab, [norfab.PostClient("service", "all", UUID, b'{"a": 1}') for _ in numbers]),
        "zmtp frame": (zmtp, [zmtp.MessageLast(b"x" * (n % 90)) for n in numbers]),
    }


def whole_request(number: int) -> Message:
    """A request on its way."""
    return flux.Request(("f1", f"rank{number}"), f"kvs.{number}", b'{"key":"a"}\0', matchtag=number)


def cheezburger(number: int, octets: int) -> Message:
    """A piece of a file, with a name and two headers."""
    headers = (("size", str(number * 1000)), ("sha-1", "407B386BDE"))
    return filemq.Cheezburger(number, 1, f"/photos/a{number}.jpg", number << 12, headers, b"x" * octets)


def repeated(rows: Sequence[Sequence[bytes]], count: int) -> pa.Array[Any]:
    """Return the rows again and again, `count` in all, behind each other in one buffer."""
    return pa.concat_arrays([pa.array(rows, FRAMES)] * (count // len(rows)))


def best_s(work: Callable[[], object]) -> float:
    """Return the least processor time of a call, in seconds."""
    times: list[float] = []
    for _ in range(ROUNDS):
        begun = process_time()
        work()
        times.append(process_time() - begun)
    return min(times)


def copying_s(octets: int) -> float:
    """Return the time of copying so many octets into memory that was in use before."""
    source = np.ones(octets, np.uint8)
    return best_s(source.copy)


def measure(case: str, build: str, module: ModuleType, messages: Sequence[Message]) -> Result:
    """Measure one case."""
    rows = [message.encode() for message in messages]
    count = ROWS if sum(map(len, rows[0])) < 256 else ROWS // 10
    array = repeated(rows, count)
    few = repeated(rows, ROW_PATH_ROWS).to_pylist()
    columns = module.columns
    decode_s = best_s(lambda: columns.decode(array)) / count
    row_path_s = best_s(
        lambda: decode_rows(few, columns.SCHEMA, module.codec.decode, columns.ATTRIBUTES, module.codec.LAYOUT)
    ) / len(few)
    octets = sum(len(frame) for frames in rows for frame in frames) / len(rows)
    filled, peak = memory(columns, array)
    return Result(
        case,
        build,
        1e-6 / decode_s,
        octets,
        row_path_s / decode_s,
        decode_s * count / copying_s(int(octets * count)),
        decode_s * count / copying_s(filled),
        peak / (filled + array.nbytes),
    )


_POOLS: list[pa.MemoryPool] = []
"""Pools stay for as long as anything that was allocated in them."""


def memory(columns: ModuleType, array: pa.Array[Any]) -> tuple[int, int]:
    """Return the octets of the columns that are filled, and the most that was in use with the input."""
    _POOLS.append(pa.proxy_memory_pool(pa.default_memory_pool()))
    before = pa.default_memory_pool()
    pa.set_memory_pool(_POOLS[-1])
    tracemalloc.start()
    batch = columns.decode(array)
    peak = tracemalloc.get_traced_memory()[1] + (_POOLS[-1].max_memory() or 0)
    tracemalloc.stop()
    pa.set_memory_pool(before)
    names = [name for name in batch.schema.names if batch.column(name).null_count < len(batch)]
    return batch.select(names).nbytes, peak + array.nbytes


def main() -> None:
    """Measure every case in every build and print a table, or JSON with ``--json``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    as_json = parser.parse_args().json
    builds = {"numpy": None} | ({"compiled": columns_native.KERNELS} if columns_native.KERNELS else {})
    results: list[Result] = []
    for case, (module, messages) in cases().items():
        for build, kernels in builds.items():
            with mock.patch.object(columns_native, "KERNELS", kernels):
                results.append(measure(case, build, module, messages))
    if as_json:
        print(json.dumps([asdict(result) for result in results], indent=2))
        return
    table = Table(title="Columns against rows and against copying", title_justify="left")
    for head in ("messages", "build", "M/s", "octets", "x row path", "x copy in", "x copy out", "memory"):
        table.add_column(head, justify="left" if head in ("messages", "build") else "right")
    for r in results:
        ratios = (r.row_path_ratio, r.copy_ratio, r.write_ratio, r.memory_ratio)
        table.add_row(
            r.case, r.build, f"{r.million_per_s:.1f}", f"{r.octets:.0f}", *(f"{x:.1f}" for x in ratios)
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
