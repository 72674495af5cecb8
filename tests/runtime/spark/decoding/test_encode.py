"""Rows to frames again: octet for octet, faults included, and a sentence for each row that cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from specwire.runtime.spark import decode, encode, read, tables
from specwire.runtime.spark.decoding.options import CAPTURE
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import known_protocols, load_codec
from specwire.runtime.spark.session.java import describe_failure
from tests.generated.agreement import corpus
from tests.generated.vectors import package
from tests.runtime.spark import captures

pytestmark = pytest.mark.spark

BAD_CREDIT = "NOM.credit: expected 0 to 18446744073709551615, found -1 [FILEMQ v2 credit]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of five messages, of which one is faulty."""
    frames = [captures.ICANHAZ, captures.CHEEZBURGER, captures.SHORT_NOM, captures.NOM, captures.HUGZ]
    folder = tmp_path_factory.mktemp("encode") / "capture"
    return captures.write_capture(folder, [("C", one) for one in frames])


@pytest.fixture
def spoilt(spark: SparkSession, folder: Path) -> DataFrame:
    """The messages decoded, and the credit of the one NOM below zero."""
    decoded = decode(read(spark, folder), "filemq")
    nom = F.when(F.col("Nom").isNotNull(), F.struct(F.lit(-1).alias("credit")))
    return decoded.withColumn("Nom", nom)


@pytest.mark.parametrize("protocol", known_protocols())
def test_a_capture_comes_back(spark: SparkSession, protocol: str, tmp_path: Path) -> None:
    """Every vector of every protocol: what its codec writes of it, or the octets that are no message."""
    vectors = corpus(protocol)
    messages = [("C", list(frames)) for frames in vectors]
    captured = read(spark, captures.write_capture(tmp_path / "capture", messages, protocol=protocol))
    decoded = decode(captured, protocol)
    written = encode(decoded)
    assert written.schema == CAPTURE
    found = [(row.seq, [bytes(frame) for frame in row.frames]) for row in written.orderBy("seq").collect()]
    assert found == [(seq, again(protocol, list(frames))) for seq, frames in enumerate(vectors)]


def again(protocol: str, frames: list[bytes]) -> list[bytes]:
    """Return what the row codec makes of frames and writes again."""
    try:
        message = load_codec(protocol).decode(frames)
    except package(protocol).DecodeError:
        return frames
    return list(message.encode())


def test_what_was_noted_comes_back(spark: SparkSession, folder: Path) -> None:
    """The whole capture, row for row."""
    captured = read(spark, folder)
    assert encode(decode(captured, "filemq")).collect() == captured.collect()


def test_a_row_that_cannot_be_written_fails_the_query(spoilt: DataFrame) -> None:
    """And is named, with message, field and rule."""
    with pytest.raises(PySparkException) as caught:
        encode(spoilt).collect()
    assert f"message 3 of tap server-1-0: {BAD_CREDIT}" in describe_failure(caught.value)
    with pytest.raises(PySparkException) as caught:
        encode(spoilt.drop("seq")).collect()
    assert f"tap server-1-0: {BAD_CREDIT}" in describe_failure(caught.value)
    assert "message" not in describe_failure(caught.value)


def test_a_row_that_cannot_be_written_can_be_kept_or_left_out(spoilt: DataFrame) -> None:
    """The others are written all the same."""
    kept = encode(spoilt, mode="permissive").orderBy("seq").collect()
    assert [row["_error"] for row in kept] == [None, None, None, BAD_CREDIT, None]
    assert [row.frames is None for row in kept] == [False, False, False, True, False]
    dropped = encode(spoilt, mode="DROPMALFORMED").orderBy("seq").collect()
    assert [row.frames for row in dropped] == [row.frames for row in kept if row.frames]


def test_a_table_is_written_without_what_follows_from_it(spark: SparkSession, tmp_path: Path) -> None:
    """Flags as booleans and JSON values are for queries; the raw values count. An octet of JSON was changed."""
    captured = captures.write_capture(tmp_path / "capture", [("C", captures.FLUX_ATTR_GET)], protocol="flux")
    requests = tables(decode(read(spark, captured), "flux"))["Request"]
    renamed = requests.withColumn("topic", F.lit("attr.set")).withColumn("flags_topic", F.lit(False))
    (row,) = encode(renamed, "flux", message="Request").collect()
    assert [bytes(frame) for frame in row.frames] == [b"attr.set", *captures.FLUX_ATTR_GET[1:]]
    assert (row.seq, row.tap) == (0, "server-1-0")


def test_messages_of_ones_own(spark: SparkSession) -> None:
    """One column of a struct is enough; a row without a message has no frames."""
    rows = spark.sql("select struct(7 as credit) as Nom union all select null")
    found = encode(rows, "filemq").collect()
    assert {row.frames and bytes(row.frames[0]) for row in found} == {
        bytes.fromhex("aaa3070000000000000007"),
        None,
    }


def test_rows_of_something_else_are_refused(spark: SparkSession, folder: Path) -> None:
    """In one sentence, before any query."""
    captured = read(spark, folder)
    with pytest.raises(InputError, match="has no column '_message'"):
        encode(captured)
    with pytest.raises(InputError, match="has no column of a message of filemq"):
        encode(captured, "filemq")
    with pytest.raises(InputError, match="has no column of Nom: encode"):
        encode(captured, "filemq", message="Nom")
    with pytest.raises(InputError, match="filemq has no message 'NOM'; it has Ohai"):
        encode(captured, "filemq", message="NOM")
