"""Segment files: the columns, the metadata, and one sentence for each kind of damage."""

from __future__ import annotations

import stat
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specwire.runtime.capture import CaptureError
from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import (
    COLUMNS,
    Source,
    build_table,
    find_segments,
    read_segments,
    survey_segments,
    write_segment,
)

SOURCE = Source(tap="server-1-0", protocol="filemq", edition="2")
ROWS = [
    Captured(1_700_000_000_000_001, 10, 0, "c1", "C", "00aa", (b"\xaa\xa3\x04",), 0),
    Captured(1_700_000_000_000_002, 11, 1, "c1", "S", "00aa", (b"\xaa\xa3\x08", b""), 0),
]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """A capture of one segment with two messages."""
    write_segment(tmp_path, segment_name(SOURCE.tap, 0), build_table(ROWS, SOURCE, dropped=4))
    return tmp_path


def test_columns_are_those_of_the_design() -> None:
    """The order and types are what readers in other programs rely on."""
    assert [f"{field.name} {field.type}" for field in COLUMNS] == [
        "ts timestamp[us, tz=UTC]",
        "mono int64",
        "seq int64",
        "protocol string",
        "tap string",
        "conversation string",
        "sender string",
        "peer string",
        "frames list<item: binary>",
    ]


def test_rows_come_back(capture: Path) -> None:
    """What was captured is what is read, frames octet by octet."""
    table = read_segments(capture)
    assert table.schema.equals(COLUMNS)
    assert table.column("frames").to_pylist() == [[b"\xaa\xa3\x04"], [b"\xaa\xa3\x08", b""]]
    assert table.column("mono").to_pylist() == [10, 11]
    assert table.column("ts").cast(pa.int64()).to_pylist() == [row.ts for row in ROWS]


def test_metadata_names_the_tap_and_its_drops(capture: Path) -> None:
    """The metadata of the file says who wrote it and what is missing."""
    (segment,) = find_segments(capture)
    assert (segment.source, segment.dropped, segment.rows) == (SOURCE, 4, 2)
    metadata = pq.read_metadata(segment.path).metadata
    assert metadata is not None
    assert metadata[b"specwire.tap"] == b"server-1-0"
    assert metadata[b"specwire.edition"] == b"2"


def test_only_the_owner_may_read(capture: Path) -> None:
    """Captures hold payloads."""
    (segment,) = find_segments(capture)
    assert stat.S_IMODE(segment.path.stat().st_mode) == 0o600


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the segment nor the file aside stays when the disk refuses."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_segment(tmp_path, "a.parquet", build_table(ROWS, SOURCE, dropped=0))
    assert list(tmp_path.iterdir()) == []


def test_unfinished_files_are_passed_over(capture: Path) -> None:
    """A file that a killed writer left behind is hidden."""
    (capture / ".server-1-0-000001.parquet.tmp").write_bytes(b"PAR1half")
    (capture / ".hidden.parquet").write_bytes(b"PAR1half")
    assert len(find_segments(capture)) == 1


def test_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    """The sentence names the folder."""
    with pytest.raises(CaptureError, match=r"gone: there is no such capture folder"):
        find_segments(tmp_path / "gone")


def test_an_empty_folder_is_one_sentence(tmp_path: Path) -> None:
    """A folder with other files only is as empty as one with none."""
    (tmp_path / "notes.txt").write_text("not a segment")
    with pytest.raises(CaptureError, match="holds no segments"):
        find_segments(tmp_path)


@pytest.mark.parametrize("kept", [0, 3, 100, -1])
def test_a_cut_off_segment_is_named(capture: Path, kept: int) -> None:
    """A file without its footer cannot be told apart from damage, and is named."""
    broken = capture / "zz.parquet"
    (segment,) = find_segments(capture)
    broken.write_bytes(segment.path.read_bytes()[:kept])
    with pytest.raises(CaptureError, match=r"zz\.parquet: not a whole Parquet file"):
        find_segments(capture)


def test_a_foreign_parquet_file_is_named(capture: Path) -> None:
    """A Parquet file of something else is refused by its columns."""
    pq.write_table(pa.table({"id": [1]}), capture / "zz.parquet")
    with pytest.raises(CaptureError, match=r"zz\.parquet: not a capture segment, it has no column 'ts'"):
        find_segments(capture)


def test_a_column_of_another_type_is_named(capture: Path) -> None:
    """The same names with other types are foreign as well."""
    table = build_table(ROWS, SOURCE, dropped=0)
    at = table.schema.get_field_index("mono")
    strings = table.set_column(at, "mono", pa.array(["a", "b"]))
    pq.write_table(strings, capture / "zz.parquet")
    with pytest.raises(CaptureError, match="column 'mono' is string instead of int64"):
        find_segments(capture)


def test_a_file_without_metadata_still_reads(capture: Path) -> None:
    """Another tool may have merged segments; the rows are what counts."""
    table = build_table(ROWS, SOURCE, dropped=0).replace_schema_metadata(None)
    pq.write_table(table, capture / "merged.parquet")
    merged = next(segment for segment in find_segments(capture) if segment.path.name == "merged.parquet")
    assert (merged.source, merged.dropped, merged.rows) == (None, 0, 2)


def test_a_survey_tells_sound_files_from_others(capture: Path) -> None:
    """Each unsound file has its own sentence, and none keeps the others from being listed."""
    (sound,) = find_segments(capture)
    pq.write_table(pa.table({"id": [1]}), capture / "foreign.parquet")
    (capture / "cut.parquet").write_bytes(sound.path.read_bytes()[:-3])
    found = survey_segments(capture)
    assert found.sound == (sound,)
    assert [bad.path.name for bad in found.unsound] == ["cut.parquet", "foreign.parquet"]
    assert found.unsound[0].reason.endswith(
        "cut.parquet: not a whole Parquet file, it was cut off or damaged"
    )
    assert found.unsound[1].reason.endswith("not a capture segment, it has no column 'ts'")


@pytest.mark.parametrize(
    "metadata", [{"tap": "a"}, {"tap": "a", "protocol": "p", "edition": "1", "dropped": "x"}]
)
def test_metadata_of_another_kind_is_named(capture: Path, metadata: dict[str, str]) -> None:
    """What it should say and does not is part of the sentence."""
    named = {f"specwire.{key}": text for key, text in metadata.items()}
    table = build_table(ROWS, SOURCE, dropped=0).replace_schema_metadata(named)
    pq.write_table(table, capture / "odd.parquet")
    with pytest.raises(
        CaptureError, match=r"odd\.parquet: not a capture segment, its metadata has no (protocol|number)"
    ):
        find_segments(capture)
