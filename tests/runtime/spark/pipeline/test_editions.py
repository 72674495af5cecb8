"""Two editions of the ticker in one folder: one table with the columns of both, alike in every engine.

The second edition has a `volume` in its quotes. The octets are written by hand.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from specwire.runtime.capture.segments import list_files
from specwire.runtime.packages import add_packages
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.catalog import register_tables
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from specwire.runtime.spark.session.executors import literal_path
from tests.runtime.own_packages import (
    EDITION,
    EDITION_2,
    LARGE,
    QUOTE,
    QUOTE_2,
    SUBSCRIBE,
    write_package,
    write_ticker_capture,
)
from tests.runtime.pcap.wire import Talk, message
from tests.runtime.spark.captures import write_capture
from tests.runtime.spark.packet_captures import write_packets
from tests.runtime.spark.pipeline.test_engines import (
    plain,
    read_duckdb,
    read_pandas,
    read_polars,
    read_pyarrow,
)
from tests.spark_session import Command

pytestmark = pytest.mark.spark

NEW = [("C", SUBSCRIBE), ("S", QUOTE_2)]
TYPED = Asked(layers=("frames", "typed"))

Row = tuple[str | None, int, int | None, str]
FIRST: list[Row] = [(EDITION, 1250, None, "t with 00aa"), (EDITION, LARGE, None, "t with 00aa")]
SECOND: list[Row] = [(EDITION_2, 1300, 500, "u with 00aa")]


@pytest.fixture
def packages(tmp_path: Path) -> Sequence[Path]:
    """The packages of both editions, which the test adds."""
    editions = (EDITION, EDITION_2)
    return [write_package(tmp_path / f"wire{number}", edition=one) for number, one in enumerate(editions)]


def check_quotes(spark: SparkSession, out: Path, expected: Sequence[Row]) -> None:
    """Read the quotes with every engine, as a stranger does."""
    folder = out / "typed/ticker/Quote"
    names = ["edition", "price", "volume", "conversation_name"]
    read = spark.read.parquet(literal_path(folder)).toArrow()
    for table in (read, *(read(folder) for read in (read_pyarrow, read_duckdb, read_polars, read_pandas))):
        rows = [tuple(map(plain, row.values())) for row in table.select(names).to_pylist()]
        assert sorted(rows, key=repr) == sorted(expected, key=repr)
    files = folder.rglob("*.parquet")
    assert len({str(pq.ParquetFile(file).schema).partition("\n")[2] for file in files}) == 1


def test_one_after_the_other(
    spark: SparkSession, tmp_path: Path, packages: Sequence[Path], few_answers: None
) -> None:
    """The second run brings the column; frames, answers and the catalog have both editions."""
    capture, store = tmp_path / "capture", Store(tmp_path / "out")
    add_packages(packages[0])
    write_ticker_capture(capture)
    assert advance(spark, store, list_files(capture), Request(capture))
    assert "volume" not in pq.read_schema(store.files("typed/ticker/Quote")[0]).names
    add_packages(packages[1])
    write_capture(capture, NEW, tap="u-1-0", protocol="ticker", edition=EDITION_2)
    summary = advance(spark, store, list_files(capture), Request(capture))
    assert summary is not None and (summary.messages, summary.undecoded, summary.unknown) == (5, 0, 0)
    check_quotes(spark, store.out, FIRST + SECOND)
    assert store.manifest.rows["typed/ticker/Quote"] == 3
    subscribed = read_duckdb(store.out / "typed/ticker/Subscribe").select(["edition", "symbol"]).to_pylist()
    assert sorted(row["edition"] for row in subscribed) == [EDITION, EDITION_2]
    frames = read_polars(store.out / "frames").select(["edition", "conversation_name"]).to_pylist()
    assert sorted(map(tuple, (row.values() for row in frames))) == [
        *[(EDITION, "t with 00aa")] * 3, *[(EDITION_2, "u with 00aa")] * 2,
    ]  # fmt: skip
    conversations = read_duckdb(store.out / "answers/conversations").to_pylist()
    assert sorted((row["conversation_name"], row["messages"]) for row in conversations) == [
        ("t with 00aa", 3),
        ("u with 00aa", 2),
    ]
    quotes = store.typed(spark, "ticker")["Quote"]
    assert [row[0] for row in quotes.select("volume").orderBy("price").collect()] == [None, 500, None]
    register_tables(spark, store.out, "of_editions")
    assert spark.sql("SELECT sum(volume) FROM of_editions.ticker_quote").collect() == [(500,)]
    assert advance(spark, store, list_files(capture), Request(capture)) == summary
    spark.sql("DROP DATABASE of_editions CASCADE")


def test_in_one_run(spark: SparkSession, tmp_path: Path, packages: Sequence[Path]) -> None:
    """The default reads what states no edition; an edition without a package is like an unknown protocol."""
    capture, store = tmp_path / "capture", Store(tmp_path / "out")
    add_packages(*packages)
    write_ticker_capture(capture)
    write_capture(capture, NEW, tap="u-1-0", protocol="ticker", edition=EDITION_2)
    write_capture(capture, [("S", QUOTE)], tap="v-1-0", protocol="ticker", edition="")
    write_capture(capture, [("S", QUOTE)], tap="w-1-0", protocol="ticker", edition="Ticker 3")
    summary = advance(spark, store, list_files(capture), Request(capture, TYPED))
    assert summary is not None and (summary.messages, summary.undecoded, summary.unknown) == (7, 1, 1)
    assert summary.unknown_sentence.startswith("1 messages have no package here (ticker@Ticker 3): name its ")
    check_quotes(spark, store.out, [*FIRST, *SECOND, (EDITION, 1250, None, "v with 00aa")])
    (error,) = read_pyarrow(store.out / "typed/unknown/_errors").to_pylist()
    assert (error["edition"], error["conversation_name"]) == ("Ticker 3", "w with 00aa")
    frames = read_pyarrow(store.out / "frames").select(["tap", "edition", "protocol"]).to_pylist()
    kept = {tuple(row.values()) for row in frames}
    assert {("v-1-0", None, "ticker"), ("w-1-0", "Ticker 3", "unknown")} < kept


def test_the_only_package_reads_every_edition(
    spark: SparkSession, tmp_path: Path, packages: Sequence[Path], caplog: pytest.LogCaptureFixture
) -> None:
    """A tap may state any text; the log says so, and `edition` is that of the package."""
    capture, store = tmp_path / "capture", Store(tmp_path / "out")
    add_packages(packages[0])
    write_capture(capture, [("S", QUOTE)], tap="t-1-0", protocol="ticker", edition="1.0")
    with caplog.at_level(logging.WARNING):
        assert advance(spark, store, list_files(capture), Request(capture, TYPED))
    (row,) = read_pyarrow(store.out / "typed/ticker/Quote").to_pylist()
    assert (row["edition"], row["price"]) == (EDITION, Decimal(1250))
    assert "ticker: the taps state edition '1.0', and the only known one is 'Ticker'" in caplog.text


def test_a_protocol_named_with_its_edition(
    spark: SparkSession, tmp_path: Path, packages: Sequence[Path]
) -> None:
    """Reads every message, whatever the tap stated, and packet captures, which state no edition."""
    capture, store = tmp_path / "capture", Store(tmp_path / "out")
    add_packages(*packages)
    write_capture(capture, NEW, tap="u-1-0", protocol="ticker", edition=EDITION)
    talk = Talk().handshake(b"me")
    for sender, (frame,) in NEW:
        talk.say(sender, message(frame))
    paths = [*list_files(capture), write_packets(tmp_path / "a.pcap", talk.close())]
    asked = Asked(f"ticker@{EDITION_2}", layers=("frames", "typed"))
    summary = advance(spark, store, paths, Request(capture, asked))
    assert summary is not None and (summary.messages, summary.undecoded) == (4, 0)
    check_quotes(spark, store.out, [*SECOND, (EDITION_2, 1300, 500, "ticker-127.0.0.1-5670 with 6d65")])
    assert store.protocols() == ["ticker"]


def test_the_command_says_that_an_edition_has_no_package(
    command: Command, tmp_path: Path, packages: Sequence[Path]
) -> None:
    """And how to name one; the messages are stored, and the exit status is 3."""
    write_capture(tmp_path / "capture", [("S", QUOTE)], tap="w-1-0", protocol="ticker", edition="Ticker 3")
    folders = ("--capture", str(tmp_path / "capture"), "--out", str(tmp_path / "out"))
    named = [word for package in packages for word in ("--packages", str(package))]
    outcome = command("pipeline", "run", *folders, "--layers", "typed", *named)
    assert outcome.status == 3, outcome.err
    assert outcome.err.splitlines()[-1] == (
        "1 messages have no package here (ticker@Ticker 3): name its package with --packages MODULE, "
        "--grammars DIR or SPECWIRE_PACKAGES, and use a new output folder"
    )
