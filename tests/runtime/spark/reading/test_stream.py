"""The reader of a folder: what it gives, look by look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.reading.position import Position
from specwire.runtime.spark.reading.stream import (
    FolderStream,
    SegmentPart,
    StreamOptions,
    read_stream_options,
)
from tests.runtime.spark import captures
from tests.runtime.spark.growing import TAP, add_segment

SAID = [("C", captures.NOM)]


def stream(folder: Path, *, settle_s: float = 5.0) -> FolderStream:
    """A stream of the names that its tasks are asked to read."""
    return FolderStream(folder, StreamOptions(settle_s=settle_s), lambda path, wanted: iter([wanted]))


def give(reader: FolderStream, start: dict[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The names that come next, and the offset after them."""
    end = reader.latestOffset(start, ReadAllAvailable())
    return Position.from_json(end).names_since(Position.from_json(start)), end


def test_what_was_given_is_not_looked_up_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One look at a name finds that it was given; the looks after that are at new names."""
    for number in range(3):
        add_segment(tmp_path, number, SAID, first=number)
    reader = stream(tmp_path)
    names, offset = give(reader, reader.initialOffset())
    assert names == [f"server-1-0-00000{number}.parquet" for number in range(3)]
    looked: list[str] = []
    has = Position.has

    def note(position: Position, name: str) -> bool:
        looked.append(name)
        return has(position, name)

    monkeypatch.setattr(Position, "has", note)
    assert give(reader, offset) == ([], offset)
    assert looked == names
    add_segment(tmp_path, 3, SAID, first=3)
    assert give(reader, offset)[0] == ["server-1-0-000003.parquet"]
    assert looked == [*names, "server-1-0-000003.parquet"]


def test_a_file_that_comes_back_after_its_tap_was_forgotten_is_given(tmp_path: Path) -> None:
    """What a look remembers ends with the file."""
    path = add_segment(tmp_path, 0, SAID, first=0)
    reader = stream(tmp_path)
    _, offset = give(reader, reader.initialOffset())
    assert give(reader, offset) == ([], offset)
    path.unlink()
    add_segment(tmp_path, 0, SAID, first=0, tap="other-1-0")
    names, offset = give(reader, offset)
    assert names == ["other-1-0-000000.parquet"]
    add_segment(tmp_path, 0, SAID, first=0)
    assert give(reader, offset)[0] == ["server-1-0-000000.parquet"]


def test_a_file_that_was_slow_to_be_copied_is_given_again_when_it_is_whole(tmp_path: Path) -> None:
    """Given cut off, it is not given again while it grows, but once it is whole, with what came meanwhile."""
    path = add_segment(tmp_path, 0, SAID, first=0)
    octets = path.read_bytes()
    path.write_bytes(octets[:-9])
    reader = stream(tmp_path, settle_s=0.0)
    names, offset = give(reader, reader.initialOffset())
    assert names == [path.name]
    assert give(reader, offset) == ([], offset)
    _change(path, octets[:-5])
    assert give(reader, offset) == ([], offset)
    add_segment(tmp_path, 1, SAID, first=1)
    _change(path, octets)
    names, offset = give(reader, offset)
    assert names == [path.name, "server-1-0-000001.parquet"]
    assert give(stream(tmp_path), offset) == ([], offset)


def test_a_file_that_became_whole_is_among_those_that_are_here_now(tmp_path: Path) -> None:
    """With a trigger that ends when all that is here was given."""
    path = add_segment(tmp_path, 0, SAID, first=0)
    octets = path.read_bytes()
    path.write_bytes(octets[:-9])
    _, offset = give(stream(tmp_path, settle_s=0.0), Position().to_json())
    _change(path, octets)
    reader = stream(tmp_path)
    reader.prepareForTriggerAvailableNow()
    assert give(reader, offset)[0] == [path.name]


def _change(path: Path, octets: bytes) -> None:
    """Write a file anew, at another moment than before, however coarse the file system's clock is."""
    before = path.stat().st_ctime
    while path.stat().st_ctime == before:
        path.write_bytes(octets)


@pytest.mark.parametrize(
    ("name", "value"), [("segments", "0"), ("octets", "-1"), ("gap_s", "-0.5"), ("settle_s", "x")]
)
def test_impossible_limits_are_refused(name: str, value: str) -> None:
    """A stream of no segments at a time would never end."""
    with pytest.raises(InputError, match=f"option '{name}' is '{value}'; it must be a number"):
        read_stream_options({name: value})


def test_another_checkpoint_is_refused(tmp_path: Path) -> None:
    """Such as one of Spark's own file source."""
    with pytest.raises(InputError, match="begin with a new checkpoint"):
        stream(tmp_path).latestOffset({"logOffset": 3}, ReadAllAvailable())


def test_a_batch_that_runs_again_finds_its_segments_compacted(tmp_path: Path) -> None:
    """Its messages are those after the start's, up to the end's."""
    for number in range(4):
        add_segment(tmp_path, number, SAID * 5, first=number * 5)
    reader = stream(tmp_path)
    start = Position().add([f"{TAP}-00000{number}.parquet" for number in (0, 1)], seqs={TAP: 9}).to_json()
    _, end = give(reader, start)
    add_segment(tmp_path, 4, SAID * 5, first=20)
    (compacted := tmp_path / f"{TAP}-000000_000004.parquet").touch()
    for number in range(5):
        (tmp_path / f"{TAP}-00000{number}.parquet").unlink()
    (part,) = reader.partitions(start, end)
    assert [*reader.read(part)] == [SegmentPart(compacted.name, 9, 19)]
