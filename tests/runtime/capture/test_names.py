"""Names of segments: what they say, and which files stand for others."""

from __future__ import annotations

import pytest

from specwire.runtime.capture.names import (
    SegmentName,
    compacted_name,
    find_replaced,
    is_compacted,
    read_name,
    segment_name,
)


def test_names_say_tap_and_numbers() -> None:
    """Both kinds are read as they are written, with numbers of more than six digits too."""
    assert segment_name("server-1-0", 42) == "server-1-0-000042.parquet"
    assert read_name("server-1-0-000042.parquet") == SegmentName("server-1-0", 42, 42, False)
    assert compacted_name("server-1-0", 3, 1_234_567) == "server-1-0-000003_1234567.parquet"
    assert read_name("server-1-0-000003_1234567.parquet") == SegmentName("server-1-0", 3, 1_234_567, True)


@pytest.mark.parametrize(
    "name",
    [
        "data.parquet",
        "a-1.parquet",
        "a-0000042.parquet",  # not as it is written
        "a-000005_000004.parquet",
        "a-000005.csv",
        "-000005.parquet",
        "a-\u0660\u0660\u0660\u0660\u0660\u0665.parquet",
    ],
)
def test_other_names_say_nothing(name: str) -> None:
    """A file that another tool wrote is read, and never taken for one that stands for others."""
    assert read_name(name) is None
    assert not is_compacted(name)


def test_a_compacted_segment_stands_for_those_in_its_name() -> None:
    """Not for its neighbours, not for another tap's, not for itself."""
    whole = "a-000002_000004.parquet"
    others = ["a-000001.parquet", "a-000005.parquet", "b-000003.parquet", "c.parquet", whole]
    held = ["a-000002.parquet", "a-000003.parquet", "a-000004.parquet", "a-000002_000003.parquet"]
    assert find_replaced([*others, *held]) == frozenset(held)
