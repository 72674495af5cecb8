"""A stream of decoded messages for pipelines of the user's own."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from specwire.runtime.spark.decoding.tables import tables
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.live.messages import follow, local_file
from tests.runtime.spark import captures
from tests.runtime.spark.growing import add_segment

LIMIT_S = 600
"""For what takes seconds on a machine that has nothing else to do."""

DOCUMENT = Path(__file__).parents[4] / "docs" / "how-to" / "live.md"


def test_names_of_files_are_taken_as_spark_writes_them() -> None:
    """With any number of slashes, and per cent signs that stand for themselves."""
    assert local_file("file:/a b/c%20d.parquet") == Path("/a b/c%20d.parquet")
    assert local_file("file:///a/b.parquet") == Path("/a/b.parquet")


@pytest.mark.spark
def test_a_capture_is_followed(spark: SparkSession, tmp_path: Path) -> None:
    """Decoded rows, documented columns, and a row for a segment that was cut off; old files are not too old.

    Spark takes the age of a file from the newest one that it has seen in an earlier batch.
    """
    capture, found = tmp_path / "a (capture) of 100%", tmp_path / "found"
    add_segment(capture, 0, [("C", captures.OHAI), ("C", captures.SHORT_NOM)], first=0)
    (capture / "cut-1-0-000000.parquet").write_bytes(b"PAR1")
    messages = follow(spark, capture, "filemq")
    assert messages.schema["_message"].metadata["comment"]
    ohai = tables(messages, "filemq", schema=messages.schema)["Ohai"]
    assert "protocol" in ohai.columns

    def take() -> list[tuple[str | None, str | None]]:
        query = messages.select("_message", "_error.kind").writeStream.format("parquet")
        query.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        assert query.start(str(found)).awaitTermination(LIMIT_S)
        rows = spark.read.parquet(str(found)).collect()
        return sorted(((row["_message"], row["kind"]) for row in rows), key=str)

    first: list[tuple[str | None, str | None]] = [("Ohai", None), (None, "length"), (None, "segment")]
    assert take() == first
    old = add_segment(capture, 1, [("C", captures.NOM)], first=2)
    os.utime(old, (10**9, 10**9))
    assert take() == [("Nom", None), *first]


@pytest.mark.spark
@pytest.mark.parametrize("name", ["{a}", "a[1]", "a*", "a?", "a\\b"])
def test_a_folder_that_a_stream_would_read_more_than_once_is_refused(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    with pytest.raises(InputError, match="a stream of files cannot follow a folder"):
        follow(spark, tmp_path / name, "filemq")


@pytest.mark.spark
def test_the_example_of_the_document_runs(spark: SparkSession, tmp_path: Path) -> None:
    """On a capture that is still empty."""
    text = DOCUMENT.read_text(encoding="utf-8").replace('"captures/today"', repr(str(tmp_path)))
    (block,) = re.findall(r"```py\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {"spark": spark}
    exec(compile(block, DOCUMENT.name, "exec"), names)  # noqa: S102
    assert names["messages"].isStreaming
    assert "Request" in names["messages"].columns
