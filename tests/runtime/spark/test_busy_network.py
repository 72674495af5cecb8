"""The large capture that reports and loads are looked at with holds what it says, in small."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from specwire.generated.errors import DecodeError
from specwire.runtime.capture.segments import find_segments
from tests.benchmarks.spark.busy.capture import write_capture

MESSAGES = 4000


def test_a_small_one_is_sound(tmp_path: Path) -> None:
    """All but a few messages decode, in the order of their numbers; the same size gives the same capture."""
    written = write_capture(tmp_path / "one", MESSAGES)
    assert MESSAGES * 0.8 < written <= MESSAGES * 1.1
    write_capture(tmp_path / "two", MESSAGES)
    wrong: Counter[str] = Counter()
    rows = 0
    for segment in find_segments(tmp_path / "one"):
        assert segment.source is not None
        protocol = segment.source.protocol
        table = pq.read_table(segment.path)
        assert table.equals(pq.read_table(tmp_path / "two" / segment.path.name))
        for column in ("seq", "ts", "mono"):
            assert pc.all(pc.greater_equal(table[column][1:], table[column][:-1])).as_py()
        decode = import_module(f"specwire.generated.{protocol}").decode
        for frames in table["frames"].to_pylist():
            rows += 1
            try:
                decode(frames)
            except DecodeError:
                wrong[protocol] += 1
    assert rows == written
    assert wrong["filemq"] == 5
    assert 0 < wrong["flux"] <= 2 * (3 + 1 + 1), "some may be where a child was made to be silent"
    assert set(wrong) == {"flux", "filemq"}
