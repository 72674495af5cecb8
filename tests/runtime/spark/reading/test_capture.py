"""Reading a capture on Spark: every message, whatever the folder is called, and a sentence for each damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from specwire.runtime.capture import CaptureError
from specwire.runtime.capture.compact import compact
from specwire.runtime.spark.decoding.options import CAPTURE
from specwire.runtime.spark.reading.capture import read_capture
from tests.runtime.capture.folders import TUESDAY_S, put_segment
from tests.runtime.spark.captures import HUGZ, NOM, write_capture

pytestmark = pytest.mark.spark


def test_messages_are_read_as_captured(spark: SparkSession, tmp_path: Path) -> None:
    """Columns, types and frames are those of the segment."""
    frame = read_capture(spark, write_capture(tmp_path, [("C", NOM), ("S", HUGZ)]))
    assert frame.schema == CAPTURE
    rows = frame.orderBy("seq").collect()
    assert [(row.sender, [bytes(item) for item in row.frames]) for row in rows] == [("C", NOM), ("S", HUGZ)]
    assert rows[1].mono == 1_000_000
    assert frame.selectExpr("unix_micros(max(ts))").collect()[0][0] == 1_700_000_000_001_000


@pytest.mark.parametrize(
    "name", ["with space", "[1]", "{a,b}", "wild*?", "back\\slash", "naïve", "a:b", "50%25"]
)
def test_any_folder_name_is_meant_literally(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """Hadoop would read patterns into some of these."""
    write_capture(tmp_path / "a", [("C", NOM), ("C", NOM)])
    folder = write_capture(tmp_path / name, [("C", NOM)])
    assert read_capture(spark, folder).count() == 1


def test_unfinished_and_other_files_are_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    """A segment that is being written is hidden; notes are not segments."""
    write_capture(tmp_path, [("C", NOM)])
    (tmp_path / ".server-1-0-000001.parquet.tmp").write_bytes(b"PAR1half")
    (tmp_path / "notes.txt").write_text("about this capture")
    assert read_capture(spark, tmp_path).count() == 1


def test_segments_that_a_compacted_one_stands_for_are_passed_over(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Both are there for a time, for readers that are at work; no message is read twice."""
    for number in range(3):
        put_segment(tmp_path, number, range(number * 5, number * 5 + 5))
    compact(tmp_path, now_s=TUESDAY_S, grace_s=3600.0)
    assert len([*tmp_path.glob("*.parquet")]) == 4
    assert sorted(row.seq for row in read_capture(spark, tmp_path).collect()) == list(range(15))


def test_a_truncated_segment_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """Before any query, and with the name of the file."""
    write_capture(tmp_path, [("C", NOM)])
    whole = next(tmp_path.glob("*.parquet")).read_bytes()
    (tmp_path / "zz.parquet").write_bytes(whole[:-20])
    with pytest.raises(CaptureError, match=r"zz\.parquet: not a whole Parquet file"):
        read_capture(spark, tmp_path)


def test_a_missing_folder_is_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    """The sentence names the folder."""
    with pytest.raises(CaptureError, match="no such capture folder"):
        read_capture(spark, tmp_path / "gone")
