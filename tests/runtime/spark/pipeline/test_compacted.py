"""A capture that is compacted between two runs: the second finds every message known."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from specwire.runtime.capture.compact import compact
from specwire.runtime.capture.segments import list_files
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.pipeline.summary import Summary, Totals
from tests.runtime.capture.folders import TUESDAY_S, put_segment

pytestmark = pytest.mark.spark


def test_no_message_is_taken_twice_and_none_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    """Two of three segments were read when all are merged into one file."""
    capture, store = tmp_path / "capture", Store(tmp_path / "out")
    asked = Asked(layers=("typed",))

    def run(paths: list[Path]) -> Summary:
        summary = advance(spark, store, paths, Request(capture, asked))
        assert summary is not None
        return summary

    for number in range(3):
        put_segment(capture, number, range(number * 5, number * 5 + 5), dropped=number)
    assert run(list_files(capture)[:2]).totals == Totals(captured=10, typed=10)
    compact(capture, now_s=TUESDAY_S)
    assert len(list_files(capture)) == 1
    last = run(list_files(capture))
    assert (last.totals, last.dropped, last.missing) == (Totals(captured=15, typed=15), 2, 0)
    tables = store.typed(spark, "filemq")
    assert sum(table.count() for table in tables.values()) == 15
