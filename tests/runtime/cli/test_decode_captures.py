"""Rows of capture folders: order, what was read before, what others put in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from specwire.generated import filemq
from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.limits import Limits
from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import compacted_name, read_name
from specwire.runtime.capture.segments import (
    Source,
    build_table,
    find_segments,
    read_footer,
    write_segment,
)
from specwire.runtime.cli.decode_captures import CaptureRows
from specwire.runtime.cli.decode_sinks import Written
from specwire.runtime.cli.decode_sources import Readers
from specwire.runtime.packages import add_packages
from specwire.runtime.pcap.recording import Recording
from specwire.runtime.pcap.rows import Row
from tests.runtime.own_packages import EDITION, EDITION_2, QUOTE, QUOTE_2, write_package
from tests.runtime.spark.captures import write_capture

NOM = tuple(filemq.Nom(credit=7).encode())


def reader(notes: list[str] | None = None) -> CaptureRows:
    told: list[str] = [] if notes is None else notes
    return CaptureRows(lambda protocol, edition: [filemq] if protocol == "filemq" else [], told.append)


def record(folder: Path, times: list[int], *, rows: int = 1, listener: str = "a:1") -> Recording:
    recording = Recording(folder, limits=Limits(segment_rows=rows))
    for ts in times:
        recording.add(Row(frames=NOM, ts=ts, protocol="filemq", sender="C", listener=listener), "2")
    recording.flush()
    return recording


def test_segments_of_a_tap_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    record(tmp_path, [1, 2, 3, 3, 3, 9], rows=2)
    assert len(list(tmp_path.iterdir())) == 3
    found = list(reader().read(tmp_path))
    assert [row.ts for row in found] == [1, 2, 3, 3, 3, 9]
    assert {row.message for row in found} == {filemq.Nom(credit=7)}


def test_taps_are_merged_by_time(tmp_path: Path) -> None:
    recording = Recording(tmp_path, limits=Limits(segment_rows=2))
    for ts, listener in ((1, "a:1"), (4, "a:1"), (2, "b:1"), (3, "b:1"), (9, "a:1"), (7, "b:1")):
        row = Row(frames=NOM, ts=ts, protocol="filemq", listener=listener, conversation=listener)
        recording.add(row, "2")
    recording.flush()
    found = list(reader().read(tmp_path))
    assert [(row.ts, row.conversation) for row in found] == [
        (1, "a:1"),
        (2, "b:1"),
        (3, "b:1"),
        (4, "a:1"),
        (7, "b:1"),
        (9, "a:1"),
    ]


def test_segments_are_read_once(tmp_path: Path) -> None:
    recording = record(tmp_path, [1, 2])
    rows = reader()
    assert [row.ts for row in rows.read(tmp_path)] == [1, 2]
    assert list(rows.read(tmp_path)) == []
    recording.add(Row(frames=NOM, ts=3, protocol="filemq", sender="C", listener="a:1"), "2")
    recording.flush()
    assert [row.ts for row in rows.read(tmp_path)] == [3]


def test_compacted_segment_is_read_only_by_who_comes_later(tmp_path: Path) -> None:
    """It stands for two that were read before; then for those and one that was not there yet."""
    record(tmp_path, [1, 2])
    paths = sorted(tmp_path.iterdir())
    rows = reader()
    assert [row.ts for row in rows.read(tmp_path)] == [1, 2]
    name, source = read_name(paths[0].name), read_footer(paths[0]).source
    assert name is not None and source is not None
    words = [Captured(ts, 0, seq, "", "C", "", NOM, 0) for seq, ts in enumerate((1, 2))]
    write_segment(tmp_path, compacted_name(name.tap, 0, 1), build_table(words, source, 0))
    assert list(rows.read(tmp_path)) == []
    assert [row.ts for row in reader().read(tmp_path)] == [1, 2], "and the two are passed over"


def test_what_taps_dropped_and_what_is_no_segment_are_told(tmp_path: Path) -> None:
    words = [Captured(1, 0, 0, "", "C", "", NOM, 0)]
    write_segment(tmp_path, "t-000000.parquet", build_table(words, Source("t", "filemq", "2"), 1200))
    (tmp_path / "x-000000.parquet").write_bytes(b"")
    notes: list[str] = []
    rows = reader(notes)
    assert len(list(rows.read(tmp_path))) == 1
    assert rows.notes() == ["tap t dropped 1,200 messages"]
    assert len(notes) == 1 and "x-000000.parquet: not a whole Parquet file" in notes[0]
    with pytest.raises(CaptureError, match="not a whole Parquet file"):
        list(reader().read(tmp_path / "x-000000.parquet"))


def test_payloads_that_were_not_kept_are_told(tmp_path: Path) -> None:
    words = [Captured(1, 0, 0, "", "C", "", NOM, 0)]
    write_segment(tmp_path, "t-000000.parquet", build_table(words, Source("t", "filemq", "2", "cut:64"), 0))
    rows = reader()
    list(rows.read(tmp_path))
    assert rows.notes() == ["tap t wrote payloads as 'cut:64', so they are not what was sent"]


def test_protocol_without_a_package_is_an_error_of_the_row(tmp_path: Path) -> None:
    words = [Captured(1, 0, 0, "", "C", "", NOM, 0)]
    write_segment(tmp_path, "t-000000.parquet", build_table(words, Source("t", "mine", "1"), 0))
    (row,) = reader().read(tmp_path)
    assert row.frames == NOM and row.error == (
        "there is no protocol 'mine' here: "
        "name its package with --packages MODULE, --grammars DIR or SPECWIRE_PACKAGES"
    )


def test_folder_without_a_capture(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="holds no segments"):
        list(reader().read(tmp_path))


def test_the_stated_edition_chooses_the_package(tmp_path: Path) -> None:
    """Rows say which edition it is, so that what is written from them states it again."""
    add_packages(write_package(tmp_path / "one"), write_package(tmp_path / "two", edition=EDITION_2))
    capture, out = tmp_path / "capture", tmp_path / "out"
    write_capture(capture, [("S", QUOTE)], tap="t-1-0", protocol="ticker", edition=EDITION)
    write_capture(capture, [("S", QUOTE_2)], tap="u-1-0", protocol="ticker", edition=EDITION_2)
    write_capture(capture, [("S", QUOTE)], tap="v-1-0", protocol="ticker", edition="Ticker 3")
    rows = list(CaptureRows(Readers(()).for_protocol, pytest.fail).read(capture))
    assert sorted((row.edition, row.message.price) for row in rows if row.message) == [
        (EDITION, 1250),
        (EDITION_2, 1300),
    ]
    (other,) = [row for row in rows if row.message is None]
    assert str(other.error).startswith("there is no protocol 'ticker@Ticker 3' here")
    written = Written(out, Readers(()), json=True)
    for row in rows:
        written.take(row)
    written.end()
    stated = {segment.source.edition for segment in find_segments(out) if segment.source}
    assert stated == {EDITION, EDITION_2}
