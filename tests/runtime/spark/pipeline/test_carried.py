"""Calls that are open at the end of a run: rows of the answer, and from the same files the state of the next run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from specwire.generated import flux
from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.segments import Source, build_table, list_files, write_segment
from specwire.runtime.spark.answers import requests
from specwire.runtime.spark.pipeline import advance as advancing
from specwire.runtime.spark.pipeline import answering
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from tests.runtime.spark.captures import BEGUN
from tests.runtime.spark.outputs import read_table

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000
NUMBER = 1_000_000
SEGMENTS = (
    # Milliseconds, tag, whether it is a request; the last call of the first segment begins on the next day.
    ((0, 1, True), (1, 2, True), (DAY_MS - 10, 3, True)),
    ((DAY_MS - 5, 1, False),),
    ((DAY_MS - 4, 2, False), (DAY_MS - 3, 3, False)),
    ((DAY_MS - 2, 1, True),),
)
OPEN_AFTER: tuple[list[int], ...] = ([0, 1, 2], [1, 2], [], [6])
"""By run, the calls that wait, each by the `seq` of its request."""
LATENCIES = {0: (DAY_MS - 5) * 1000.0, 1: (DAY_MS - 5) * 1000.0, 2: 7000.0}
"""Of those that were answered, in microseconds."""


def write(folder: Path, number: int) -> None:
    """Write one of the segments."""
    begin = sum(map(len, SEGMENTS[:number]))
    rows = []
    for seq, (at_ms, tag, asks) in enumerate(SEGMENTS[number], begin):
        message = (flux.Request if asks else flux.Response)(topic="a.b", matchtag=tag)
        ts, mono = BEGUN + 1000 * at_ms, NUMBER * at_ms
        rows.append(Captured(ts, mono, seq, "c1", "CS"[not asks], "00aa", tuple(message.encode()), 0))
    folder.mkdir(exist_ok=True)
    table = build_table(rows, Source("t-1-0", "flux", "2"), 0)
    write_segment(folder, f"t-1-0-{number:06d}.parquet", table)


@pytest.mark.parametrize("few", [True, False], ids=["gathered", "by Spark"])
def test_open_calls_are_carried_over(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: bool
) -> None:
    """The state is the open rows as they were written, is gone where nothing is open, and begins again after that."""
    monkeypatch.setattr(answering, "continued", lambda _: iter((requests.CONTINUED,)))
    monkeypatch.setattr(answering, "all_sums", lambda _: iter(()))
    monkeypatch.setattr(answering, "roll_ups", lambda _: iter(()))
    if not few:
        monkeypatch.setattr(advancing, "FEW_MESSAGES", 0)
    capture, store = tmp_path / "capture", Store(tmp_path / "out")
    for number, waiting in enumerate(OPEN_AFTER):
        write(capture, number)
        assert advance(spark, store, list_files(capture), Request(capture))
        rows = {row["seq"]: row for row in read_table(store, "answers/requests")}
        assert sorted(seq for seq, row in rows.items() if row["outcome"] == "open") == waiting
        assert {s: r["latency_us"] for s, r in rows.items() if r["outcome"] == "answered"} == {
            seq: latency for seq, latency in LATENCIES.items() if seq in rows and seq not in waiting
        }
        kept = {row["seq"]: row for row in read_table(store, "state/flux/requests/requests")}
        assert kept == {seq: rows[seq] for seq in waiting}
