"""A package of the user's on Spark: every backend, the format, frames again, and a pipeline run into typed tables."""

from __future__ import annotations

import shutil
import sys
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.capture.segments import list_files
from specwire.runtime.packages import REGISTRY, add_packages
from specwire.runtime.spark import decode, encode, read, register, tables
from specwire.runtime.spark.decoding.compile_jar import find_javac
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.protocols import load_columns
from specwire.runtime.spark.reading.source import SpecwireSource
from specwire.runtime.spark.session.target import jar_trouble
from tests.conftest import BRIEF_JAVAC
from tests.runtime.own_packages import (
    EDITION_2,
    LARGE,
    LARGE_QUOTE,
    QUOTE,
    QUOTE_2,
    SUBSCRIBE,
    write_package,
    write_ticker_capture,
)
from tests.runtime.spark.captures import write_capture
from tests.spark_session import Command

pytestmark = pytest.mark.spark

TYPED = Asked(layers=("typed",))
ROWS = [("Subscribe", None), ("Quote", Decimal(1250)), ("Quote", Decimal(LARGE))]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where Java decoders are kept: those of a package are compiled once for all tests."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def capture(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a capture that states ticker, whose package was added; workers cannot import it from where it is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", BRIEF_JAVAC)
    add_packages(write_package(tmp_path / "wire"))
    return write_ticker_capture(tmp_path / "capture")


@pytest.mark.parametrize("backend", ["arrow", "python", "jvm"])
def test_every_backend_decodes_it(backend: str, spark: SparkSession, capture: Path) -> None:
    """In Python workers, which were given the package, and in Java, which compiles it."""
    if backend == "jvm" and (find_javac() is None or jar_trouble()):
        pytest.skip("there is no javac, or no jar of our own decoders")
    decoded = decode(read(spark, capture), "ticker", backend=backend)
    assert [tuple(row) for row in decoded.orderBy("seq").select("_message", "Quote.price").collect()] == ROWS
    again = encode(decoded.orderBy("seq"), "ticker").select("frames").collect()
    assert [[bytes(frame) for frame in row[0]] for row in again] == [SUBSCRIBE, QUOTE, LARGE_QUOTE]
    quotes = tables(decoded, "ticker")["Quote"]
    assert [row[0] for row in quotes.orderBy("seq").select("price").collect()] == [1250, LARGE]


def test_workers_get_a_package_from_an_archive(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zip archive on Python's path, of which the workers know nothing."""
    place = write_package(tmp_path / "in_archive" / "zipped", "zipped_ticker").parent
    (place / "__init__.py").touch()
    archive = shutil.make_archive(str(tmp_path / "packages"), "zip", tmp_path / "in_archive")
    monkeypatch.syspath_prepend(archive)
    add_packages("zipped.zipped_ticker")
    capture = write_ticker_capture(tmp_path / "capture", "zipped_ticker")
    decoded = decode(read(spark, capture), "zipped_ticker", backend="arrow")
    assert [tuple(row) for row in decoded.orderBy("seq").select("_message", "Quote.price").collect()] == ROWS


def test_the_format_finds_it_by_what_the_capture_states(spark: SparkSession, capture: Path) -> None:
    """Planned and read in Python workers; SQL over a view."""
    register(spark)
    frame = spark.read.format("specwire").load(str(capture))
    assert [tuple(row) for row in frame.orderBy("seq").select("_message", "Quote.price").collect()] == ROWS


def test_another_edition_than_the_default(spark: SparkSession, capture: Path, tmp_path: Path) -> None:
    """By its name in every backend, beside the default in one session; the format takes the stated one."""
    add_packages(write_package(tmp_path / "wire2", edition=EDITION_2))
    other = write_capture(
        tmp_path / "other", [("S", QUOTE_2)], tap="u-1-0", protocol="ticker", edition=EDITION_2
    )
    backends = ("arrow", "python") if find_javac() is None or jar_trouble() else ("arrow", "python", "jvm")
    for backend in backends:
        found = decode(read(spark, other), "ticker@Ticker 2", backend=backend).select(
            "Quote.price", "Quote.volume"
        )
        assert [tuple(row) for row in found.collect()] == [(1300, 500)]
        first = decode(read(spark, capture), "ticker", backend=backend).orderBy("seq").select("Quote.*")
        assert [row.asDict() for row in first.collect()][1] == {"symbol": "ACME", "price": 1250}
    register(spark)
    assert spark.read.format("specwire").load(str(other)).select("Quote.volume").collect() == [(500,)]
    with pytest.raises(InputError, match="the capture holds ticker and ticker@Ticker 2: name one with the"):
        SpecwireSource({"path": f"{tmp_path}/[co]*r*"}).schema()


def test_a_run_writes_typed_tables_that_others_read(
    spark: SparkSession, capture: Path, tmp_path: Path
) -> None:
    """The price is more than a signed integer of 64 bits holds."""
    out = tmp_path / "out"
    summary = advance(spark, Store(out), list_files(capture), Request(capture, TYPED))
    assert summary is not None and (summary.messages, summary.undecoded, summary.unknown) == (3, 0, 0)
    table = ds.dataset(out / "typed/ticker/Quote", partitioning="hive").to_table()
    assert set(table["price"].to_pylist()) == {Decimal(1250), Decimal(LARGE)}
    query = f"select symbol, max(price) from read_parquet('{out}/typed/ticker/Quote/*/*.parquet') group by 1"
    assert duckdb.connect().execute(query).fetchall() == [("ACME", Decimal(LARGE))]
    spark.read.parquet(str(out / "typed/ticker/Quote")).createOrReplaceTempView("quotes")
    assert spark.sql("select max(price) from quotes").collect()[0][0] == LARGE


def test_a_protocol_without_a_package_is_kept_and_told(
    spark: SparkSession, capture: Path, tmp_path: Path
) -> None:
    """Nothing is imported because of it; the sentence names it and what to do."""
    REGISTRY.clear()
    before = set(sys.modules)
    out = tmp_path / "out"
    summary = advance(spark, Store(out), list_files(capture), Request(capture, TYPED))
    assert summary is not None and summary.unknown == 3
    assert summary.unknown_sentence == (
        "3 messages have no package here (ticker): name its package with --packages MODULE, "
        "--grammars DIR or SPECWIRE_PACKAGES, and use a new output folder"
    )
    assert ds.dataset(out / "typed/unknown/_errors", partitioning="hive").count_rows() == 3
    assert not {name for name in set(sys.modules) - before if "ticker" in name}
    with pytest.raises(InputError, match="there is no protocol 'ticker'"):
        load_columns("ticker")


def test_the_command_ends_with_status_3_and_the_sentence(
    command: Command, capture: Path, tmp_path: Path
) -> None:
    """With the option it ends with 0."""
    REGISTRY.clear()
    run = ("pipeline", "run", "--capture", str(capture), "--layers", "typed", "--out")
    ran = command(*run, str(tmp_path / "one"))
    assert ran.status == 3
    assert "3 messages have no package here (ticker): name its package with --packages MODULE, " in ran.err
    ran = command(*run, str(tmp_path / "two"), "--packages", str(tmp_path / "wire"))
    assert ran.status == 0, ran.err
    assert (tmp_path / "two/typed/ticker/Quote").is_dir()
