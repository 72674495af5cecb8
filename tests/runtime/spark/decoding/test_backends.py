"""All backends give one result: every vector, truncation and mutation of every protocol, errors included.

What the rows must be is worked out by the row codec here, without Spark. The vectors come from other implementations.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.generated.columns.rows import decode_rows
from specwire.runtime.capture.segments import COLUMNS
from specwire.runtime.spark.decoding import backends
from specwire.runtime.spark.decoding.backends import BACKENDS, find_backend, load_backend
from specwire.runtime.spark.decoding.decode import decode
from specwire.runtime.spark.decoding.options import CAPTURE, noted_name
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import known_protocols, load_codec, load_columns, load_layout
from specwire.runtime.spark.session.target import JAR, jar_trouble
from tests.generated.agreement import corpus, mutated, truncations
from tests.generated.vectors import all_recorded

pytestmark = pytest.mark.spark

MUTATIONS = 2500
LONGEST = 400
"""Messages of more octets are truncated at their first octets only."""

Row = Sequence[bytes | None] | None


def rows_of(protocol: str, vectors: Sequence[tuple[bytes, ...]]) -> list[Row]:
    """Return the vectors, their truncations and mutations, and other protocols' messages."""
    chance = random.Random(protocol)
    found: dict[tuple[bytes | None, ...] | None, None] = dict.fromkeys(vectors)
    for frames in vectors:
        found |= dict.fromkeys(truncations(tuple(frame[:LONGEST] for frame in frames)))
    most = len(found) + MUTATIONS
    while len(found) < most:
        found[tuple(mutated(chance.choice(vectors), chance))] = None
    known = vectors[0]
    odd: list[tuple[bytes | None, ...] | None] = [
        None,
        (),
        (None,),
        (b"",),
        (*known, None),
        (None, *known),
        (b"",) * 300,
        (*known, *known),
    ]
    found |= dict.fromkeys(odd) | dict.fromkeys(all_recorded())
    return list(found)


def write_rows(folder: Path, rows: Sequence[Row]) -> str:
    """Write rows as a segment has them; their numbers are their `seq`."""
    numbers = range(len(rows))
    table = pa.table(
        {
            "ts": [0] * len(rows), "mono": numbers, "seq": numbers, "protocol": ["p"] * len(rows),
            "tap": ["t"] * len(rows), "conversation": ["c"] * len(rows),
            "sender": [("C", "S", "", None)[number % 4] for number in numbers],
            "peer": [None] * len(rows), "frames": pa.array(rows, pa.list_(pa.binary())),
        },
        schema=COLUMNS,
    )  # fmt: skip
    pq.write_table(table, folder / "rows.parquet")
    return str(folder)


def usable(spark: SparkSession, protocol: str) -> list[str]:
    """Return the backends that can decode a protocol here; fail where one cannot without one of the known reasons."""
    absent = set() if JAR.is_file() else {"jvm"}
    reasons = {name: load_backend(name).available(spark, protocol) for name in BACKENDS}
    assert {name for name, reason in reasons.items() if reason is not None} == absent, reasons
    return [name for name, reason in reasons.items() if reason is None]


def assert_backends_agree(spark: SparkSession, protocol: str, folder: Path, rows: Sequence[Row]) -> None:
    """Check every backend against the row codec, in one query."""
    columns = load_columns(protocol)
    expected = decode_rows(
        rows, columns.SCHEMA, load_codec(protocol).decode, columns.ATTRIBUTES, load_layout(protocol)
    )
    frame = spark.read.schema(CAPTURE).parquet(write_rows(folder, rows))
    names = usable(spark, protocol)
    seq, octets = (F.col(noted_name(protocol, name)) for name in ("seq", "octets"))
    sizes = [sum(len(octets) for octets in frames or () if octets) for frames in rows]

    def told(name: str) -> DataFrame:
        decoded = decode(frame, protocol, name)
        return decoded.select(
            F.lit(name).alias("_backend"), seq.alias("_seq"), octets.alias("_octets"), *columns.SCHEMA.names
        )

    found = reduce(DataFrame.unionAll, map(told, names)).toArrow()
    for name in names:
        mine = found.filter(pc.field("_backend") == name).sort_by("_seq")
        assert mine["_octets"].to_pylist() == sizes, name
        got = mine.select(columns.SCHEMA.names).cast(columns.SCHEMA)
        if not got.equals(pa.Table.from_batches([expected])):
            assert_same(name, rows, got, expected)


def assert_same(name: str, rows: Sequence[Row], got: pa.Table, expected: pa.RecordBatch) -> None:
    """Show the first row that differs; all the columns are looked at, row by row."""
    for frames, mine, other in zip(rows, got.to_pylist(), expected.to_pylist(), strict=True):
        assert mine == other, (name, frames)


@pytest.mark.parametrize("protocol", known_protocols())
def test_backends_agree_with_the_row_codec(spark: SparkSession, protocol: str, tmp_path: Path) -> None:
    """Compares every row, and of errors the message, field, frame, offset, kind and text."""
    rows = rows_of(protocol, corpus(protocol))
    assert len(rows) > MUTATIONS
    assert_backends_agree(spark, protocol, tmp_path, rows)


def test_the_java_decoders_take_part() -> None:
    """Where there is a jar, it is of the sources as they are; where there is none, that is told."""
    if not JAR.is_file():
        pytest.skip(f"no backend jvm is compared: {jar_trouble()}")
    assert jar_trouble() is None


def test_a_text_that_is_not_utf_8_keeps_its_octets(spark: SparkSession, tmp_path: Path) -> None:
    """In the raw frames, whichever backend: Spark itself would take the octets for text."""
    header = bytes.fromhex("8e010101ffffffff00000000ffffffff00000001")
    frame = spark.read.schema(CAPTURE).parquet(write_rows(tmp_path, [[b"kvs\xff", header]]))
    for name in usable(spark, "flux"):
        (row,) = decode(frame, "flux", name).collect()
        assert (row["_message"], row["_error"].kind, row["_error"].offset) == (None, "text", 3), name
        assert [bytes(octets) for octets in row["_frames"]] == [b"kvs\xff", header], name


def test_auto_is_the_first_that_can(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    """And the log names it."""
    with caplog.at_level(logging.INFO, backends.__name__):
        chosen = find_backend("auto", spark, "flux")
    first = next(name for name in BACKENDS if load_backend(name).available(spark, "flux") is None)
    assert chosen is load_backend(first)
    assert f"flux is decoded by the backend {first}" in caplog.text


def test_auto_says_why_it_is_not_a_better_one(
    spark: SparkSession, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason of each that comes before."""
    monkeypatch.setattr(load_backend("jvm"), "available", lambda *_: "there is no jar")
    with caplog.at_level(logging.INFO, backends.__name__):
        find_backend("auto", spark, "flux")
    assert "flux is decoded by the backend arrow; not by jvm: there is no jar" in caplog.text
    with pytest.raises(InputError, match="the backend 'jvm' cannot decode flux here: there is no jar"):
        find_backend("jvm", spark, "flux")


def test_an_unknown_backend_is_one_sentence(spark: SparkSession) -> None:
    """The sentence lists the known ones."""
    known = "auto, jvm, arrow, python"
    with pytest.raises(InputError, match=f"there is no backend 'rust'; the known ones are {known}"):
        find_backend("rust", spark, "flux")


def test_the_backend_that_was_removed_names_the_others(spark: SparkSession) -> None:
    with pytest.raises(InputError, match=r"^the backend 'sql' was removed: use 'jvm' \(Java\) or 'arrow'$"):
        find_backend("sql", spark, "flux")
