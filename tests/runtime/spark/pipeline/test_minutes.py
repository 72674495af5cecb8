"""Minutes of a table that a run computes again: found in files, and removed from others."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from specwire.runtime.spark.pipeline.commit import Area, begin, visible_files
from specwire.runtime.spark.pipeline.writing import drop_minutes, find_minutes, in_minutes

MINUTE_US = 60_000_000
TIME = pa.timestamp("us", "UTC")


def times(name: str, *values: int | None) -> pa.Table:
    """Return a table with a column of times in microseconds."""
    return pa.table({name: pa.array(values, TIME), "row": range(len(values))})


def test_minutes_of_rows(tmp_path: Path) -> None:
    """By the tap's column, whose name has an underscore if the message has a field `ts`."""
    pq.write_table(times("ts", 5, 59_999_999, 3 * MINUTE_US), tmp_path / "a")
    field = pa.table({"ts": ["x"], "_ts": pa.array([MINUTE_US + 1], TIME)})
    pq.write_table(field, tmp_path / "b")
    assert find_minutes([tmp_path / "a", tmp_path / "b"]) == [0, MINUTE_US, 3 * MINUTE_US]
    pq.write_table(times("ts", 5, None), tmp_path / "c")
    assert find_minutes([tmp_path / "a", tmp_path / "c"]) is None
    pq.write_table(times("minute", 0), tmp_path / "d")
    assert find_minutes([tmp_path / "d"]) is None
    assert in_minutes("ts", [0, MINUTE_US]) == (
        "ts BETWEEN timestamp_micros(0) AND timestamp_micros(119999999) "
        "AND unix_micros(date_trunc('minute', ts)) IN (0, 60000000)"
    )


def test_rows_of_other_minutes_stay(tmp_path: Path) -> None:
    """Over several row groups; a file without such rows is not written again."""
    out = tmp_path / "out"
    with begin(out) as first:
        folder = first.folder(Area.ADDED, "answers/latency/date=2026-01-01")
        folder.mkdir(parents=True)
        pq.write_table(times("minute", 0, MINUTE_US, 2 * MINUTE_US, MINUTE_US), folder / "a.parquet", 2)
        pq.write_table(times("minute", 3 * MINUTE_US), folder / "b.parquet")
        pq.write_table(times("minute", MINUTE_US), folder / "c.parquet")
        first.commit(first.before)
    with begin(out) as second:
        files = second.files("answers/latency")
        drop_minutes(second, files, [MINUTE_US])
        assert second.replaced == {files[0], files[2]}
        second.commit(second.before)
    left = [pq.ParquetFile(path).read()["row"].to_pylist() for path in visible_files(out / "answers")]
    assert sorted(left) == [[0], [0, 2]]
