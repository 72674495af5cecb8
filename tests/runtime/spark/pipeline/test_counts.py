"""Counting decoded rows: what is counted, and that no row is sorted for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame as Classic

from specwire.runtime.spark.pipeline.counts import count_rows
from specwire.runtime.spark.pipeline.summary import UNKNOWN

pytestmark = pytest.mark.spark

DECODED = (
    "ts timestamp, tap string, sender string, octets long, _message string, "
    "_error struct<message: string, field: string, kind: string, text: string>"
)
BEGIN = datetime(2026, 1, 2, tzinfo=UTC)


def found(message: str | None, field: str, text: str) -> dict[str, str | None]:
    """What is wrong with a message."""
    return {"message": message, "field": field, "kind": "length", "text": text}


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plans of queries whose rows are asked for."""
    told: list[str] = []
    collect = Classic.toArrow

    def noted(frame: Any) -> pa.Table:
        told.append(frame._jdf.queryExecution().executedPlan().toString())
        return collect(frame)

    monkeypatch.setattr(Classic, "toArrow", noted)
    return told


def counted(spark: SparkSession, errors: list[dict[str, str | None] | None]) -> list[dict[str, Any]]:
    """Count one message of two octets each second."""
    rows = [
        (BEGIN + timedelta(seconds=second), "t", "C", 2, None if error else "Nom", error)
        for second, error in enumerate(errors)
    ]
    table = count_rows(spark.createDataFrame(rows, DECODED), UNKNOWN, 60_000)
    names = ("message", "wrong_field", "messages", "octets", "text")
    return sorted(
        ({name: row[name] for name in names} for row in table.to_pylist()),
        key=lambda row: str(row["wrong_field"]),
    )


def test_findings_of_one_field_are_one_row_with_the_least_text(spark: SparkSession) -> None:
    """Whatever the index in it; a finding may name no message."""
    wrong = [found("NOM", "list[3]", "b"), found("NOM", "list[11]", "a"), found(None, "[0]", "no message")]
    errors = [None, wrong[0], None, wrong[1], None, wrong[2]]
    assert counted(spark, errors) == [
        {"message": "Nom", "wrong_field": None, "messages": 3, "octets": 6, "text": None},
        {"message": None, "wrong_field": "[]", "messages": 1, "octets": 2, "text": "no message"},
        {"message": None, "wrong_field": "list[]", "messages": 2, "octets": 4, "text": "a"},
    ]


def test_rows_that_decode_are_not_sorted(spark: SparkSession, plans: list[str]) -> None:
    """A sort holds all rows of a task, in memory and beyond that on the disk."""
    assert [row["messages"] for row in counted(spark, [None, None])] == [2]
    assert [("HashAggregate" in plan, "Sort" in plan) for plan in plans] == [(True, False)]
