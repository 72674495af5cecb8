"""Every engine reads every column of every table after two runs into one folder, and all read the same rows.

The first run has no JSON in payloads; the second has it, on another day, with numbers that need all 64 bits.
pyarrow's `dataset` is the reference; DuckDB, Polars, pandas and Spark (`toArrow()`) must give the same.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.protocols import known_protocols, load_schemas
from specwire.runtime.spark.session.executors import literal_path
from tests.runtime.spark.outputs import ANSWERED, JSON, LARGE, Output, run_twice

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

TYPED = ("cmb1", "zmtp")
"""Protocols that have the types of columns which the others lack: a table takes a second with all its readers."""


@pytest.fixture(scope="module")
def typed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frames and typed tables, by day."""
    folder = tmp_path_factory.mktemp("typed")
    asked = Asked(layers=("frames", "typed"))
    run_twice(spark, folder / "capture", Store(folder / "out"), TYPED, asked)
    return folder / "out"


@pytest.fixture
def answered(two_runs: Output) -> Path:
    """All layers, by hour."""
    return two_runs.out


@pytest.fixture(params=["typed", "answered"])
def folders(request: pytest.FixtureRequest) -> list[Path]:
    """The folders of all tables of an output."""
    out: Path = request.getfixturevalue(request.param)
    return [out / name for name in Store(out).tables()]


def plain(value: object) -> object:
    """Return a value without what engines may differ in: types of numbers, dates as text, time zones."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return int(value)
        case dict():
            return sorted((key, plain(item)) for key, item in value.items())
        case list():
            return [plain(item) for item in value]
    return value


def rows_of(table: pa.Table) -> list[str]:
    """Return the rows of a table, in an order that does not depend on the engine."""
    return sorted(repr(plain(row)) for row in table.to_pylist())


def read_pyarrow(folder: Path) -> pa.Table:
    return ds.dataset(folder, partitioning="hive", ignore_prefixes=[".", "_SUCCESS"]).to_table()


def read_duckdb(folder: Path) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found: pa.Table = connection.read_parquet(
            f"{folder}/**/*.parquet", hive_partitioning=True
        ).to_arrow_table()
        return found


def read_polars(folder: Path) -> pa.Table:
    return pl.scan_parquet(folder, hive_partitioning=True).collect().to_arrow()


def read_pandas(folder: Path) -> pa.Table:
    frame = pd.read_parquet(folder, dtype_backend="pyarrow")
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("read", [read_duckdb, read_polars, read_pandas], ids=lambda read: read.__name__[5:])
def test_engines_agree(folders: list[Path], read: Callable[[Path], pa.Table]) -> None:
    """With pyarrow, in every column of every table; integers may be decimals and texts may be dictionaries."""
    for folder in folders:
        assert rows_of(read(folder)) == rows_of(read_pyarrow(folder)), folder


def test_spark_agrees(spark: SparkSession, folders: list[Path]) -> None:
    """As a stranger reads the folders, and through `toArrow()`."""
    for folder in folders:
        found = spark.read.option("pathGlobFilter", "*.parquet").parquet(literal_path(folder)).toArrow()
        assert rows_of(found) == rows_of(read_pyarrow(folder)), folder


def test_every_type_of_column_is_in_a_table() -> None:
    """No protocol has one that the tables here do not have."""

    def types(protocols: tuple[str, ...]) -> set[str]:
        schemas = [schema for name in protocols for schema in load_schemas(name).SCHEMAS.values()]
        return {field.dataType.simpleString() for schema in schemas for field in schema}

    assert types(ANSWERED + TYPED) == types(known_protocols())


def test_values_of_the_second_run(answered: Path) -> None:
    """JSON is the text that was sent, without its NUL; a number of 64 bits is exact; the hour is that of `ts`."""
    table = read_pyarrow(answered / "typed/flux/Request").sort_by("ts")
    requests = [row for row in table.to_pylist() if row["tap"] in ("flux-1-0", "flux-1-1")]
    assert [row["payload_json"] for row in requests] == [None, JSON[:-1].decode()]
    assert [(str(row["date"]), row["hour"]) for row in requests] == [("2026-05-28", 20), ("2026-06-27", 20)]
    noms = read_pyarrow(answered / "typed/filemq/Nom")["credit"].to_pylist()
    assert Decimal(LARGE) in noms


def test_files_of_a_table_are_alike(folders: list[Path]) -> None:
    """One physical layout: no file has a column of another Parquet type, and none lies in 1970."""
    for folder in folders:
        files = sorted(folder.rglob("*.parquet"))
        layouts = {str(pq.ParquetFile(file).schema).partition("\n")[2] for file in files}
        assert len(layouts) == 1, folder
        # Spark infers more about the rows of a first run, and must not write what it infers.
        required = [field.name for field in pq.read_schema(files[0]) if not field.nullable]
        assert folder.parent.name != "answers" or not required, folder
        assert not [file for file in files if "1970" in str(file)]
