"""Numbers that are times: from octets to a timestamp column that other engines read. Instants are derived by hand."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import duckdb
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from specwire.generator.packages import package_files
from specwire.generator.targets import choose_targets
from specwire.runtime.capture.segments import list_files
from specwire.runtime.packages import add_packages
from specwire.runtime.spark import decode, read, tables
from specwire.runtime.spark.pipeline.advance import advance
from specwire.runtime.spark.pipeline.manifest import Asked
from specwire.runtime.spark.pipeline.request import Request
from specwire.runtime.spark.pipeline.store import Store
from tests.generator.compiling import compiled
from tests.runtime.spark.captures import write_capture

pytestmark = pytest.mark.spark

GRAMMAR = """\
tick = %x01 in-s in-ms in-us in-ns since-1900 fraction laps
in-s = 8OCTET
in-ms = 8OCTET
in-us = 8OCTET
in-ns = 8OCTET
since-1900 = 4OCTET
fraction = 8OCTET
laps = count *lap
count = OCTET
lap = 4OCTET
"""
PROFILE = """
name = "clock"
edition = "Clock"
[types.in-s]
type = "integer"
timestamp = "s"
[types.in-ms]
type = "integer"
signed = true
timestamp = "ms"
[types.in-us]
type = "integer"
signed = true
timestamp = "us"
[types.in-ns]
type = "integer"
timestamp = "ns"
[types.since-1900]
type = "integer"
timestamp = "s"
epoch = "1900-01-01"
[types.fraction]
type = "float"
timestamp = "s"
[types.lap]
type = "integer"
[types.laps]
timestamp = "s"
"""
NAMES = ("in_s", "in_ms", "in_us", "in_ns", "since_1900", "fraction", "laps")
TIMES = tuple(f"{name}_time" for name in NAMES)

Numbers = tuple[int, int, int, int, int, float, list[int]]


def octets(numbers: Numbers) -> list[bytes]:
    """Return the frames of a message."""
    *times, fraction, laps = numbers
    head = struct.pack(">BQqqQId", 1, *times, fraction)
    return [head + bytes([len(laps)]) + b"".join(lap.to_bytes(4, "big") for lap in laps)]


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


NOW = utc(2023, 11, 14, 22, 13, 20)
ROWS: list[tuple[Numbers, tuple[object, ...]]] = [
    (  # 1700000000 s since 1970; NTP begins 2208988800 s earlier
        (1700000000, 1700000000123, 1700000000123456, 1700000000123456789, 3908988800, 1700000000.25, [1700000000, 0]),
        (
            NOW, NOW.replace(microsecond=123000), NOW.replace(microsecond=123456), NOW.replace(microsecond=123456),
            NOW, NOW.replace(microsecond=250000), [NOW, utc(1970, 1, 1)],
        ),
    ),
    (  # the last second of the year 9999, the last moment before 1970, the end of an era of NTP
        (253402300799, -1, 253402300799999999, 2**64 - 1, 2**32 - 1, -0.25, []),
        (
            utc(9999, 12, 31, 23, 59, 59), utc(1969, 12, 31, 23, 59, 59, 999000),
            utc(9999, 12, 31, 23, 59, 59, 999999), utc(2554, 7, 21, 23, 34, 33, 709551),
            utc(2036, 2, 7, 6, 28, 15), utc(1969, 12, 31, 23, 59, 59, 750000), [],
        ),
    ),
    (  # a second later
        (253402300800, -62135596800001, 253402300800000000, 999, 0, 253402300800.0, [2**32 - 1]),
        (None, None, None, utc(1970, 1, 1), utc(1900, 1, 1), None, [utc(2106, 2, 7, 6, 28, 15)]),
    ),
    (  # the first moment of the year 1
        (0, -62135596800000, -62135596800000000, 1000, 1, -62135596800.0, [1]),
        (
            utc(1970, 1, 1), utc(1, 1, 1), utc(1, 1, 1), utc(1970, 1, 1, 0, 0, 0, 1), utc(1900, 1, 1, 0, 0, 1),
            utc(1, 1, 1), [utc(1970, 1, 1, 0, 0, 1)],
        ),
    ),
    (  # numbers that are no times at all
        (2**64 - 1, -(2**63), 2**63 - 1, 0, 0, float("nan"), []),
        (None, None, None, utc(1970, 1, 1), utc(1900, 1, 1), None, []),
    ),
    (
        (2**63, 2**63 - 1, -(2**63), 1, 0, float("-inf"), []),
        (None, None, None, utc(1970, 1, 1), utc(1900, 1, 1), None, []),
    ),
]  # fmt: skip


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Give a capture of the messages, whose package was added."""
    protocol = compiled(tmp_path / "grammars", GRAMMAR, PROFILE).protocol
    for path, text in package_files([protocol], choose_targets(None)).items():
        (tmp_path / "wire" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "wire" / path).write_text(text)
    add_packages(tmp_path / "wire/clock")
    messages = [("C", octets(numbers)) for numbers, _ in ROWS]
    return write_capture(tmp_path / "capture", messages, protocol="clock", edition="Clock")


def found_in(table: pa.Table) -> list[tuple[object, ...]]:
    """Return the times of a table in the order of the messages."""
    assert all(str(table.schema.field(name).type) == "timestamp[us, tz=UTC]" for name in TIMES[:-1])
    return [tuple(row[name] for name in TIMES) for row in table.sort_by("seq").to_pylist()]


def test_a_run_writes_times_that_others_read(spark: SparkSession, capture: Path, tmp_path: Path) -> None:
    """pyarrow, DuckDB, pandas and Spark read the same instants; the numbers keep their columns."""
    out = tmp_path / "out"
    assert (
        advance(spark, Store(out), list_files(capture), Request(capture, Asked(layers=("typed",))))
        is not None
    )
    folder = out / "typed/clock/Tick"
    table = ds.dataset(folder, partitioning="hive").to_table()
    expected = [times for _, times in ROWS]
    assert found_in(table) == expected
    assert set(table["in_s"].to_pylist()) == {Decimal(numbers[0]) for numbers, _ in ROWS}
    assert set(table["in_ms"].to_pylist()) == {numbers[1] for numbers, _ in ROWS}
    frame = pd.read_parquet(folder, dtype_backend="pyarrow")
    assert found_in(pa.Table.from_pandas(frame, preserve_index=False)) == expected
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        query = f"select * from read_parquet('{folder}/*/*.parquet', hive_partitioning = true)"
        assert found_in(connection.sql(query).to_arrow_table()) == expected
    assert found_in(spark.read.parquet(str(folder)).toArrow()) == expected


def test_times_are_not_affected_by_the_options_of_decode(spark: SparkSession, capture: Path) -> None:
    """Numbers of eight octets may be long, and a field that was not asked for has no time; `times` omits all."""
    rows = read(spark, capture).where("seq = 0")
    for decoded in (decode(rows, "clock"), decode(rows, "clock", u64="long")):
        (row,) = tables(decoded, "clock")["Tick"].select("in_s_time", "in_ns_time").toArrow().to_pylist()
        assert (row["in_s_time"], row["in_ns_time"]) == (NOW, NOW.replace(microsecond=123456))
    some = tables(decode(rows, "clock", columns=["seq", "Tick.in_ms"]), "clock")["Tick"]
    assert some.columns == ["seq", "in_ms", "in_ms_time"]
    without = tables(decode(rows, "clock"), "clock", times=False)["Tick"]
    assert not set(TIMES) & set(without.columns) and set(NAMES) <= set(without.columns)
