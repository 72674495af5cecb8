"""Files by conversation, for the summary: added up by hand from the rows of the table of files."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from specwire.runtime.spark.answers.transfers import TRANSFERS
from specwire.runtime.spark.pipeline import summing
from specwire.runtime.spark.pipeline.summary import Transfer

pytestmark = pytest.mark.spark

MS = 1_000_000
"""Nanoseconds in a millisecond."""


def file(at_ms: int, octets: int, outcome: str = "complete", **more: Any) -> tuple[Any, ...]:
    """Return a file of two chunks that takes 10 ms."""
    row = {
        "protocol": "filemq", "date": date(2026, 1, 2), "tap": "t1", "conversation": "c1", "peer": "p1",
        "filename": "/a", "ts": datetime(2026, 1, 2, tzinfo=UTC), "seq": at_ms, "mono": at_ms * MS,
        "last_mono": (at_ms + 10) * MS, "offset": 0, "chunks": 2, "octets": octets, "outcome": outcome,
    }  # fmt: skip
    return tuple((row | more).get(name) for name in TRANSFERS.names)


def test_files_are_counted_by_conversation(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest of each protocol, at most so many; one that was resumed was not begun here, a deletion is no file."""
    rows = [
        file(1, 100),
        file(20, 50, "cut"),
        file(40, 7, "complete", offset=93),
        file(60, 0, "deleted", chunks=0),
        file(5, 500, "open", conversation="c2", peer="p2"),
        file(5, 1, conversation="c3", peer="p3"),
        file(5, 3, protocol="libfilemq", conversation="c4", peer="p4"),
    ]
    monkeypatch.setattr(summing, "KEPT", 2)
    found = summing.count_transfers(spark.createDataFrame(rows, TRANSFERS))
    assert found == (
        Transfer("t1", "filemq", "c2", "p2", 1, 0, 0, 2, 500, 0.01),
        Transfer("t1", "filemq", "c1", "p1", 2, 2, 1, 6, 157, 0.069),
        Transfer("t1", "libfilemq", "c4", "p4", 1, 1, 0, 2, 3, 0.01),
    )
