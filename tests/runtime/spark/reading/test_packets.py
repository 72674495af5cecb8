"""Packet captures on Spark: one task a file, and what is missing is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.spark import decode, read, register
from specwire.runtime.spark.decoding.options import CAPTURE
from specwire.runtime.spark.session.java import describe_failure
from tests.runtime.spark import captures
from tests.runtime.spark.packet_captures import PEERING, peering, write_packets

pytestmark = pytest.mark.spark


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of one connection each, and a note."""
    folder = tmp_path / "pcaps [of] today"
    write_packets(folder / "a.pcap", peering().close())
    write_packets(folder / "b", peering(hugz=2).close())
    (folder / "notes.txt").write_text("no packets")
    return folder


def test_captured_messages(spark: SparkSession, folder: Path) -> None:
    """In the columns of a capture, each file with its own tap, each connection's protocol found out."""
    frame = read(spark, folder)
    assert frame.schema == CAPTURE and frame.rdd.getNumPartitions() == 2
    rows = frame.orderBy("tap", "seq").collect()
    assert len(rows) == 7 and {row.protocol for row in rows} == {"filemq"}
    taps = {row.tap for row in rows}
    assert len(taps) == 2 and all(tap.startswith("filemq-127.0.0.1-5670-0-") for tap in taps)
    one = read(spark, folder / "a.pcap").orderBy("seq").collect()
    assert [(row.seq, row.sender, bytes(row.frames[0])) for row in one] == [
        (seq, *said) for seq, said in enumerate(PEERING)
    ]
    assert {row.peer for row in one} == {b"me".hex()}
    decoded = decode(frame, "filemq").groupBy("_message").count().collect()
    assert {row["_message"]: row["count"] for row in decoded} == {"Ohai": 2, "OhaiOk": 2, "Hugz": 3}


def test_damaged_segments_are_skipped_beside_packets(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    """Also if no segment is left."""
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x-1-0-000000.parquet").write_bytes(b"PAR1")
    assert read(spark, [tmp_path / "bad", folder], damaged="skip").count() == 7
    with pytest.raises(CaptureError, match=r"x-1-0-000000\.parquet"):
        read(spark, tmp_path / "bad", damaged="skip")


def test_the_format(spark: SparkSession, folder: Path) -> None:
    """By content, or by the option; filters are evaluated.

    Segments and packet captures in one reading.
    """
    register(spark)
    reader = spark.read.format("specwire").option("protocol", "filemq")
    assert reader.load(str(folder)).where("sender = 'S'").count() == 2
    assert reader.option("from", "pcap").load(str(folder / "b")).count() == 4
    segments = captures.write_capture(folder.parent / "capture", [("C", captures.NOM)])
    both = spark.read.format("specwire").option("protocol", "filemq").load([str(segments), str(folder)])
    assert both.count() == 8


def test_a_protocol_must_be_named(spark: SparkSession, folder: Path) -> None:
    register(spark)
    with pytest.raises(PySparkException) as caught:
        spark.read.format("specwire").load(str(folder))
    assert describe_failure(caught.value).endswith(
        "a.pcap: a packet capture does not state its protocol: name it with the option 'protocol'"
    )


def test_what_is_missing_is_a_row_on_request(spark: SparkSession, tmp_path: Path) -> None:
    """One HUGZ of two was not recorded, which are five octets of ZMTP.

    And the last record is cut off.
    """
    talk = peering(hugz=2)
    del talk.packets[-2]
    path = write_packets(tmp_path / "torn.pcap", talk.close())
    path.write_bytes(path.read_bytes()[:-3])
    register(spark)
    reader = spark.read.format("specwire").option("protocol", "filemq")
    assert reader.load(str(path)).count() == 3
    rows = reader.option("damaged", "quarantine").load(str(path)).where("_error is not null").collect()
    assert {row["_error"].kind for row in rows} == {"packets"}
    told = sorted(row["_error"].text.removeprefix(f"{path}: ") for row in rows)
    assert told[0] == "5 octets of TCP are missing from the recording, in 1 place; messages there are lost"
    assert told[1].startswith("the file ends in the middle of a record")


def test_a_damaged_file_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """The first record says that it has 2 GiB."""
    path = write_packets(tmp_path / "bad.pcap", peering())
    octets = bytearray(path.read_bytes())
    octets[24 + 8 : 24 + 12] = (1 << 31).to_bytes(4, "little")
    path.write_bytes(octets)
    with pytest.raises(PySparkException) as caught:
        read(spark, path).collect()
    assert f"{path}: " in describe_failure(caught.value)
