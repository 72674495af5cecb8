"""What an output folder holds: plain rows, so that two of them can be compared, and the table of alerts."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from specwire.runtime.spark.live.alerts import ALERTS, TABLE
from specwire.runtime.spark.pipeline.store import ANSWERS, FRAMES, LATE, TYPED, Store

Rows = dict[str, list[str]]


def read_rows(out: Path, *layers: str) -> Rows:
    """Return the rows of all tables of some layers by table, each row as text, sorted; without layers of all."""
    store = Store(out)
    found: Rows = {}
    for layer in layers or (FRAMES, TYPED, ANSWERS, LATE):
        for path in store.files(layer):
            parts = path.relative_to(out).parent.parts
            table = "/".join(part for part in parts if "=" not in part)
            place = [part for part in parts if "=" in part]
            rows = found.setdefault(table, [])
            rows += (f"{place} {sorted(row.items())}" for row in _read(path).to_pylist())
    return {table: sorted(rows) for table, rows in found.items()}


def _read(path: Path) -> pa.Table:
    # By itself: a table's partition columns are in its path.
    with path.open("rb") as file:
        return pq.read_table(file)


def read_alerts(spark: SparkSession, out: Path) -> DataFrame:
    """Return the table of alerts; no rows before the first."""
    folder = out / TABLE
    return spark.read.parquet(str(folder)) if folder.is_dir() else spark.createDataFrame([], ALERTS)


def count(rows: Rows) -> int:
    """Return how many rows there are in all tables."""
    return sum(map(len, rows.values()))
