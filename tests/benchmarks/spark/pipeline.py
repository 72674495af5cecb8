"""What a run of the pipeline costs for each message, and what one costs that finds a single new segment.

The yardstick is reading the capture and doing nothing with it. A run writes: captured frames once more, typed
tables, and with the answers also what is open; so it is a multiple of that, and the multiple shall not grow with
the capture.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.manifest import LAYERS, Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.report.page import draw_report
from tests.benchmarks.spark.captures import SEGMENT_ROWS, flux_requests, in_segments
from tests.benchmarks.spark.harness import Bench, Row, consume


def measure(bench: Bench) -> Iterator[Row]:
    """Yield whole runs over a fifth of the messages and over all, then runs over one segment more."""
    for share in (5, 1):
        rows = in_segments(bench.rows / share)
        segments = bench.capture("flux", "flux", in_segments(bench.rows), flux_requests)[
            : rows // SEGMENT_ROWS
        ]
        ways: dict[str, Callable[[], object]] = {
            "scan": partial(_scan, bench, segments),
            "typed": partial(_run, bench, segments, ("typed",)),
            "frames, typed": partial(_run, bench, segments, ("frames", "typed")),
            "all layers": partial(_run, bench, segments, LAYERS),
        }
        yield from bench.take_turns("pipeline run", ways, rows)
        if rows > SEGMENT_ROWS:
            with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
                before = Path(folder) / "out"
                _advance(bench, segments[:-1], before, LAYERS)
                more: dict[str, Callable[[], object]] = {
                    "scan of the new segment": partial(_scan, bench, segments[-1:]),
                    "run over it": partial(_run_again, bench, segments, before),
                }
                yield from bench.take_turns(
                    f"one new segment after {rows - SEGMENT_ROWS:,}", more, SEGMENT_ROWS
                )


def _scan(bench: Bench, segments: list[Path]) -> None:
    consume(bench.read(segments))


def _run(bench: Bench, segments: list[Path], layers: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
        _advance(bench, segments, Path(folder) / "out", layers)


def _run_again(bench: Bench, segments: list[Path], before: Path) -> None:
    """Run over the last segment; what the runs before it left is linked, not copied."""
    with tempfile.TemporaryDirectory(dir=bench.folder) as folder:
        out = Path(folder) / "out"
        shutil.copytree(before, out, copy_function=os.link)
        _advance(bench, segments, out, LAYERS)


def _advance(bench: Bench, segments: list[Path], out: Path, layers: tuple[str, ...]) -> None:
    request = Request(segments[0].parent, Asked(layers=layers))
    summary = advance(bench.spark, Store(out), segments, request, draw=draw_report)
    assert summary is not None and summary.messages == SEGMENT_ROWS * len(segments)
