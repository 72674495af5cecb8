"""Outputs of alerts: a table that has each alert once, and lines for immediate use.

The alerts of one day in a batch are one file, named after the stream and the batch and renamed into
place. A batch that runs again after a crash therefore replaces its own files. Lines are written
before the files and cannot be undone: after a crash the last lines may be written twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DateType, StructField, StructType

from specwire.runtime.spark.errors import InputError, JobError
from specwire.runtime.spark.live.alerting import ALERTS
from specwire.runtime.spark.pipeline.store import ROW_SCHEMA
from specwire.runtime.spark.reading.capture import literal_path

TABLE = "alerts"

DATE = StructField("date", DateType(), metadata={"comment": "of ts, in UTC"})

Line = Callable[[Mapping[str, object]], None]
"""Called with one alert, in JSON types."""


def store_alerts(out: Path, stream: str, batch: int, found: DataFrame, line: Line | None = None) -> int:
    """Write the alerts of one batch into the table of an output folder; return their number.

    Raises JobError if a file cannot be written.
    """
    rows = found.toArrow()
    try:
        tell(rows, line)
        if rows.num_rows:
            _store(out, stream, batch, rows)
    except OSError as error:
        raise JobError(
            f"{error.filename or out}: alerts cannot be written: {error.strerror or error}"
        ) from error
    return rows.num_rows


def tell(rows: pa.Table, line: Line | None) -> None:
    """Call `line`, if there is one, with each row of alerts."""
    if line is not None:
        for row in rows.to_pylist():
            line({name: _plain(value) for name, value in row.items()})


def alert_file(stream: str, batch: int) -> str:
    """Return the name of the file with the alerts of one batch and day."""
    return f"alerts-{stream[:8]}-{batch:06d}.parquet"


def _store(out: Path, stream: str, batch: int, rows: pa.Table) -> None:
    days = pc.cast(rows["ts"], pa.date32())
    for day in sorted({day for day in days.to_pylist() if day is not None}):
        mine = rows.filter(pc.equal(days, pa.scalar(day, pa.date32())))
        _write(out / TABLE / f"date={day.isoformat()}", alert_file(stream, batch), mine)


def read_alerts(spark: SparkSession, out: Path) -> DataFrame:
    """Return the table of alerts, which has no rows if there have been none."""
    schema = StructType([*ALERTS, DATE])
    if not (out / TABLE).is_dir():
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(literal_path(out / TABLE))


def _write(folder: Path, name: str, rows: pa.Table) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = folder / f".{name}.tmp"
    # Spark reads the columns' comments from here.
    metadata = {**(rows.schema.metadata or {}), ROW_SCHEMA: ALERTS.json().encode()}
    with aside.open("wb") as file:
        pq.write_table(rows.replace_schema_metadata(metadata), file)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(folder / name)


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime | date) else value


def line_writer(path: Path) -> Line:
    """Return a function that appends each alert to a file as one line of JSON.

    Raises InputError if the file cannot be written.
    """
    try:
        path.open("a").close()
    except OSError as error:
        raise InputError(f"{path}: alerts cannot be written there: {error.strerror}") from error

    def write(alert: Mapping[str, object]) -> None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(alert, ensure_ascii=False) + "\n")

    return write
