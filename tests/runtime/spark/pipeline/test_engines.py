"""Every engine reads every column of every table after two runs into one folder, and all read the same rows.

The first run has no JSON in payloads; the second has it, on another day, with numbers that need all 64 bits.
pyarrow's `dataset` is the reference; DuckDB, Polars, pandas and Spark (`toArrow()`) must give the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, find, settings
from pyspark.sql import SparkSession

from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import Source, build_table, list_files, write_segment
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.protocols import known_protocols, load_schemas
from specwire.runtime.spark.session.executors import literal_path

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

DAY_US = 86_400_000_000
BEGUN = (1_780_000_000_000_000, 1_780_000_000_000_000 + 30 * DAY_US)
"""When the messages of the two runs begin: 2026-05-28 and 2026-06-27."""

JSON = b'{"rank": 1.5, "big": 18446744073709551615, "list": [1, null]}\0'
LARGE = 2**63 + 5
ANSWERED = ("filemq", "flux")
"""Protocols whose answers are written too."""
TYPED = ("cmb1", "zmtp")
"""Protocols that have the types of columns which the others lack: a table takes a second with all its readers."""


@cache
def smallest(protocol: str, name: str) -> Any:
    """Return the smallest message of a class."""
    strategies = import_module(f"specwire.generated.{protocol}.strategies")
    function = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    made = getattr(strategies, function, None) or getattr(strategies, f"{function}_")
    # The first message that is drawn; it is the smallest.
    return find(made(), lambda _: True, settings=settings(phases=[Phase.generate], database=None))


def messages_of(protocol: str, run: int) -> Iterator[tuple[str, list[bytes]]]:
    """Yield a message of each class with its sender; in the second run with JSON and large numbers."""
    package = import_module(f"specwire.generated.{protocol}")
    for name in load_schemas(protocol).SCHEMAS:
        message = smallest(protocol, name)
        if run and protocol == "flux" and name in ("Request", "Response"):
            message = getattr(package, name)(topic="kvs.get", payload=JSON, matchtag=7)
        if run and (protocol, name) == ("filemq", "Nom"):
            message = package.Nom(credit=LARGE)
        yield "C", message.encode()
    yield "C", [b"\xff\xfe"]


def write_run(folder: Path, protocols: tuple[str, ...], run: int) -> Path:
    """Write a segment of each protocol for the first or the second run."""
    folder.mkdir(exist_ok=True)
    for protocol in protocols:
        rows = [
            Captured(
                BEGUN[run] + seq * 1000, seq * 10**6, seq + 100 * run, "c1", sender, "p", tuple(frames), 0
            )
            for seq, (sender, frames) in enumerate(messages_of(protocol, run))
        ]
        tap = f"{protocol}-1-{run}"
        write_segment(folder, segment_name(tap, 0), build_table(rows, Source(tap, protocol, "1"), 0))
    return folder


def run_twice(spark: SparkSession, folder: Path, protocols: tuple[str, ...], asked: Asked) -> Store:
    """Return the output of two runs."""
    store, capture = Store(folder / "out"), folder / "capture"
    for run in (0, 1):
        write_run(capture, protocols, run)
        assert advance(spark, store, list_files(capture), Request(capture, asked))
    return store


@pytest.fixture(scope="module")
def typed(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Frames and typed tables, by day."""
    asked = Asked(layers=("frames", "typed"))
    return run_twice(spark, tmp_path_factory.mktemp("typed"), TYPED, asked)


@pytest.fixture(scope="module")
def answered(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """All layers, by hour."""
    return run_twice(spark, tmp_path_factory.mktemp("answered"), ANSWERED, Asked(partition="hour"))


@pytest.fixture(scope="module", params=["typed", "answered"])
def folders(request: pytest.FixtureRequest) -> list[Path]:
    """The folders of all tables of an output."""
    store: Store = request.getfixturevalue(request.param)
    return [store.out / name for name in store.tables()]


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


def test_values_of_the_second_run(answered: Store) -> None:
    """JSON is the text that was sent, without its NUL; a number of 64 bits is exact; the hour is that of `ts`."""
    requests = read_pyarrow(answered.out / "typed/flux/Request").sort_by("ts").to_pylist()
    assert [row["payload_json"] for row in requests] == [None, JSON[:-1].decode()]
    assert [(str(row["date"]), row["hour"]) for row in requests] == [("2026-05-28", 20), ("2026-06-27", 20)]
    noms = read_pyarrow(answered.out / "typed/filemq/Nom")["credit"].to_pylist()
    assert Decimal(LARGE) in noms


def test_files_of_a_table_are_alike(folders: list[Path]) -> None:
    """One physical layout: no file has a column of another Parquet type, and none lies in 1970."""
    for folder in folders:
        files = sorted(folder.rglob("*.parquet"))
        assert len({str(pq.ParquetFile(file).schema).partition("\n")[2] for file in files}) == 1, folder
        assert not [file for file in files if "1970" in str(file)]
