"""The pipeline: a capture folder in; typed Parquet tables, a summary and a report out.

    capture --plan--> Plan --decode--> PROTOCOL/decoded --tables--> PROTOCOL/tables/MESSAGE
                                                   \\--counts--> summary.json, report.html

`plan` checks everything that can be checked without Spark, so that a slip in the request costs no start of a
Java process. Each captured message is decoded once: the decoded rows are written, and tables and figures are
read from there. The output folder is replaced as a whole, at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.segments import Segment, find_segments, list_protocols
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.tables import tables
from specwire.runtime.spark.pipeline.counts import (
    count_errors,
    count_over_time,
    count_taps,
    count_transfers,
    count_types,
    overview,
)
from specwire.runtime.spark.pipeline.output import MARK, check_replaceable, replace_folder
from specwire.runtime.spark.pipeline.summary import Summary, Transfer
from specwire.runtime.spark.protocols import load_schemas
from specwire.runtime.spark.reading.capture import CAPTURE, read_parquet
from specwire.runtime.spark.report.page import render_report
from specwire.runtime.spark.session.interrupts import heeded_interrupts
from specwire.runtime.spark.session.opening import open_session

REPORT = "report.html"
CHUNKS = "Cheezburger"
"""The message that carries files, in FILEMQ and in the C implementation's form of it."""

Progress = Callable[[str, int, int], None]
"""Told before each step: what is being done, how many steps are done, how many there are."""


class Plan(msgspec.Struct, frozen=True):
    """A request that was found to be sound.

    `protocols` are those to decode; `override` is the one that all messages are read as, whatever the tap
    stated, or None.
    """

    capture: Path
    out: Path
    segments: tuple[Segment, ...]
    protocols: tuple[str, ...]
    override: str | None

    @property
    def dropped(self) -> dict[str, int]:
        """Messages that each tap had dropped by its last segment."""
        counts: dict[str, int] = {}
        for segment in self.segments:
            if segment.source:
                tap = segment.source.tap
                counts[tap] = max(counts.get(tap, 0), segment.dropped)
        return counts


def run(
    capture: Path,
    out: Path,
    *,
    protocol: str | None = None,
    master: str = "local[*]",
    progress: Progress | None = None,
) -> Summary:
    """Run the pipeline in a Spark session of its own; see `plan` and `carry_out` for what is raised."""
    return run_plan(plan(capture, out, protocol=protocol), master=master, progress=progress)


def run_plan(request: Plan, *, master: str = "local[*]", progress: Progress | None = None) -> Summary:
    """Carry out a request in a Spark session of its own.

    Where it is interrupted, Spark ends before the unfinished output is removed: a task that still ran
    would write it anew.
    """
    with replace_folder(request.out) as folder, heeded_interrupts() as interrupts:

        def tell(step: str, done: int, total: int) -> None:
            interrupts.heed()
            if progress:
                progress(step, done, total)

        with open_session(master) as spark:
            return _write_output(spark, request, folder, tell)


def plan(capture: Path, out: Path, *, protocol: str | None = None) -> Plan:
    """Check a request without Spark.

    `protocol` reads every message as that protocol; without it each is read as its tap stated. Raises
    CaptureError for a capture that cannot be read and InputError for an unknown protocol or an output folder
    that must not be replaced.
    """
    segments = find_segments(capture)
    check_replaceable(out, capture)
    if not any(segment.rows for segment in segments):
        raise CaptureError(f"{capture}: the capture holds no messages")
    protocols = [protocol] if protocol else list_protocols(segments)
    for name in protocols:
        load_schemas(name)
    return Plan(capture, out, tuple(segments), tuple(protocols), protocol)


def carry_out(spark: SparkSession, request: Plan, *, progress: Progress | None = None) -> Summary:
    """Decode, write the tables, count, write summary and report, and put them in the place of the old output."""
    with replace_folder(request.out) as folder:
        return _write_output(spark, request, folder, progress)


def _write_output(spark: SparkSession, request: Plan, folder: Path, progress: Progress | None) -> Summary:
    begun = time.monotonic()
    steps = _Steps(progress, sum(2 + len(load_schemas(name).SCHEMAS) for name in request.protocols) + 2)
    rows = read_parquet(spark, request.capture, CAPTURE)
    decoded: dict[str, DataFrame] = {}
    written: dict[str, DataFrame] = {}
    for protocol in request.protocols:
        mine = rows if request.override else rows.where(F.col("protocol") == protocol)
        steps.begin(f"decoding {protocol}")
        decoded[protocol] = _store(decode(mine, protocol), folder / protocol / "decoded")
        for name, table in tables(decoded[protocol], protocol).items():
            steps.begin(f"writing {protocol} {name}")
            path = f"{protocol}/tables/{name}"
            written[path] = _store(table, folder / path)
    steps.begin("counting")
    summary = _summarise(request, decoded, written, begun)
    steps.begin("writing the report")
    (folder / MARK).write_bytes(summary.to_json())
    (folder / REPORT).write_text(render_report(summary), encoding="utf-8")
    return summary


def _store(frame: DataFrame, folder: Path) -> DataFrame:
    """Write a DataFrame and return it as it is read back."""
    frame.write.parquet(str(folder))
    return read_parquet(frame.sparkSession, folder)


def _summarise(
    request: Plan, decoded: dict[str, DataFrame], written: dict[str, DataFrame], begun: float
) -> Summary:
    rows = overview(decoded)
    return Summary(
        capture=str(request.capture),
        taps=count_taps(rows, request.dropped),
        types=count_types(rows),
        errors=count_errors(rows),
        transfers=_find_transfers(request, written),
        timeline=count_over_time(rows),
        tables={path: table.count() for path, table in written.items()},
        elapsed_s=round(time.monotonic() - begun, 3),
    )


def _find_transfers(request: Plan, written: dict[str, DataFrame]) -> tuple[Transfer, ...]:
    found: list[Transfer] = []
    for protocol in request.protocols:
        table = written.get(f"{protocol}/tables/{CHUNKS}")
        if table is not None:
            found += count_transfers(table, protocol)
    return tuple(found)


class _Steps:
    """Counts the steps of a run and tells whoever listens."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def begin(self, step: str) -> None:
        if self._progress:
            self._progress(step, self._done, self._total)
        self._done += 1
