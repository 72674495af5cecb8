"""Which segments are given next, and which are held back."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.runtime.capture import CaptureError
from specwire.runtime.spark.reading.position import Position
from specwire.runtime.spark.reading.stream import (
    NewFile,
    StreamOptions,
    choose_files,
    find_new_files,
    list_names,
)
from tests.runtime.spark import captures

NOW = 1_000_000.0
OPTIONS = StreamOptions(gap_s=10.0, settle_s=5.0, segments=4, octets=100)


def arrival(
    number: int, *, age_s: float = 0.0, tap: str = "a", octets: int = 10, whole: bool = True
) -> NewFile:
    return NewFile(f"{tap}-{number:06d}.parquet", NOW - age_s, octets, whole)


def chosen(arrivals: list[NewFile], given: Position | None = None) -> list[str]:
    names = choose_files(arrivals, given or Position(), OPTIONS, NOW)
    return [name.removesuffix(".parquet").replace("-00000", "") for name in names]


def test_in_the_order_of_their_numbers() -> None:
    """Whatever the order in which they were changed."""
    assert chosen([arrival(1, age_s=9), arrival(0, age_s=1), arrival(2, age_s=5)]) == ["a0", "a1", "a2"]


def test_one_that_is_missing_is_waited_for() -> None:
    """From when the next one came, and no longer than that."""
    given = Position().add(["a-000000.parquet"])
    assert chosen([arrival(2, age_s=9.9), arrival(3)], given) == []
    assert chosen([arrival(2, age_s=10.0), arrival(3)], given) == ["a2", "a3"]
    assert chosen([arrival(1), arrival(2), arrival(3)], given) == ["a1", "a2", "a3"]


def test_one_that_is_late_is_given_at_once() -> None:
    """There is nothing left to wait for."""
    given = Position().add(["a-000000.parquet", "a-000003.parquet"])
    assert chosen([arrival(1), arrival(4)], given) == ["a1", "a4"]


def test_one_that_is_not_whole_may_become_so() -> None:
    """Meanwhile those after it wait; other taps do not."""
    assert chosen([arrival(0, age_s=4.9, whole=False), arrival(1), arrival(0, tap="b")]) == ["b0"]
    assert chosen([arrival(0, age_s=5.0, whole=False), arrival(1)]) == ["a0", "a1"]


def test_no_more_than_the_limits() -> None:
    """In files and octets; the oldest first, and one that is larger than the limit by itself."""
    many = [arrival(number, age_s=20 - number) for number in range(9)]
    assert chosen([*many, arrival(0, tap="b", age_s=19.5)]) == ["a0", "b0", "a1", "a2"]
    large = [arrival(0, octets=1000, age_s=3), arrival(1, octets=60, age_s=2), arrival(2, octets=60, age_s=1)]
    assert chosen(large) == ["a0"]
    assert chosen(large[1:], Position().add(["a-000000.parquet"])) == ["a1"]


def test_a_folder_is_looked_through(tmp_path: Path) -> None:
    """Hidden files and other kinds are not segments; a cut one is not whole; none is too old."""
    captures.write_capture(tmp_path, [("C", captures.NOM)], tap="a-1-0")
    whole = (tmp_path / "a-1-0-000000.parquet").read_bytes()
    (tmp_path / "a-1-0-000001.parquet").write_bytes(whole[:-1])
    (tmp_path / "a-1-0-000002.parquet").write_bytes(b"")
    (tmp_path / "a-1-0-000003.parquet").write_bytes(whole[-12:])
    (tmp_path / ".a-1-0-000004.parquet.tmp").write_bytes(whole)
    (tmp_path / ".a-1-0-000005.parquet").write_bytes(whole)
    (tmp_path / "notes.txt").write_text("not a segment")
    (tmp_path / "folder.parquet").mkdir()
    names = list_names(tmp_path)
    arrivals = find_new_files(tmp_path, [*names, "gone.parquet"])
    assert names == [f"a-1-0-00000{number}.parquet" for number in range(4)]
    assert [found.complete for found in arrivals] == [True, False, False, False]
    assert arrivals[0].octets == len(whole)


def test_segments_that_a_compacted_one_stands_for_are_not_given(tmp_path: Path) -> None:
    """It is given itself, unless they were; the next segment does not wait for those before it."""
    for name in ("a-1-0-000000", "a-1-0-000001", "a-1-0-000000_000001", "a-1-0-000002"):
        (tmp_path / f"{name}.parquet").touch()
    assert list_names(tmp_path) == ["a-1-0-000000_000001.parquet", "a-1-0-000002.parquet"]
    given = Position().add(["a-1-0-000000.parquet", "a-1-0-000001.parquet"])
    assert given.has("a-1-0-000000_000001.parquet")
    assert given.add(["a-1-0-000000_000001.parquet"]).last("a-1-0") == 1


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Rather than a capture of which everything has gone."""
    with pytest.raises(CaptureError, match="cannot be read: No such file"):
        list_names(tmp_path / "nosuch")
