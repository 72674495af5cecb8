"""Merging closed days: no message is lost, read twice or changed, wherever the work is cut off."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from specwire.runtime.capture import CaptureError
from specwire.runtime.capture import compact as compacting
from specwire.runtime.capture.compact import Compacted, compact
from specwire.runtime.capture.segments import find_segments, list_files, read_segments
from specwire.runtime.spark.pipeline.intake import take_in
from specwire.runtime.spark.pipeline.ledger import Ledger, Outcome
from tests.runtime.capture.folders import (
    MONDAY_S,
    TAP,
    TUESDAY_S,
    WEDNESDAY_S,
    names,
    put_segment,
)

MERGED = f"{TAP}-000000_000002.parquet"


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Three segments of Monday and two of Tuesday, ten messages each."""
    folder = tmp_path / "capture"
    for number in range(5):
        day_s = MONDAY_S if number < 3 else TUESDAY_S
        put_segment(folder, number, range(number * 10, number * 10 + 10), day_s + number, dropped=number)
    return folder


def seqs(folder: Path) -> list[int]:
    """Return the `seq` of all messages that a reader finds."""
    return [int(str(seq)) for seq in read_segments(folder).column("seq")]


def test_a_closed_day_becomes_one_file(capture: Path) -> None:
    """The day that is not over stays as it is; the rows are the same, the metadata that of the last segment."""
    before = read_segments(capture)
    done = compact(capture, now_s=TUESDAY_S + 100)
    (merged,) = done.merged
    assert (merged.day, merged.segments, merged.messages, merged.name) == ("2023-11-20", 3, 30, MERGED)
    assert done.deleted == 3
    assert names(capture) == [MERGED, f"{TAP}-000003.parquet", f"{TAP}-000004.parquet"]
    assert read_segments(capture).equals(before)
    segment = find_segments(capture)[0]
    assert (segment.rows, segment.dropped) == (30, 2)
    assert segment.source == find_segments(capture)[1].source
    assert stat.S_IMODE(segment.path.stat().st_mode) == 0o600
    assert segment.path.stat().st_mtime == MONDAY_S + 2  # its age is that of its last segment


def test_who_could_read_the_segments_can_read_the_file(capture: Path) -> None:
    """Its mode is theirs."""
    for path in capture.iterdir():
        path.chmod(0o640)
    compact(capture, now_s=TUESDAY_S)
    assert stat.S_IMODE((capture / MERGED).stat().st_mode) == 0o640


def test_the_next_day_becomes_another(capture: Path) -> None:
    """And a third call has nothing to do."""
    compact(capture, now_s=TUESDAY_S)
    compact(capture, now_s=WEDNESDAY_S)
    assert names(capture) == [MERGED, f"{TAP}-000003_000004.parquet"]
    assert seqs(capture) == list(range(50))
    assert compact(capture, now_s=WEDNESDAY_S) == Compacted((), 0, 0, ())


def test_readers_pass_over_what_was_merged(capture: Path) -> None:
    """With a grace both stay for a time, and each message is there once at every moment."""
    made = compact(capture, now_s=TUESDAY_S, grace_s=3600.0)
    assert (made.deleted, made.waiting) == (0, 3)
    assert len(names(capture)) == 6
    assert [path.name for path in list_files(capture)] == [
        MERGED, f"{TAP}-000003.parquet", f"{TAP}-000004.parquet",
    ]  # fmt: skip
    assert seqs(capture) == list(range(50))
    for number in (3, 4):
        (capture / f"{TAP}-00000{number}.parquet").unlink()
    came_s = (capture / MERGED).stat().st_ctime
    assert compact(capture, now_s=came_s + 3599.0, grace_s=3600.0).waiting == 3
    assert compact(capture, now_s=came_s + 3600.0, grace_s=3600.0).deleted == 3


def take(folder: Path, before: Ledger) -> tuple[list[tuple[str, str, int]], Ledger]:
    """Take a folder in as a pipeline does; return name, outcome and new messages of each file, and the ledger."""
    found = take_in(list_files(folder), before, 1)
    told = [(entry.name, str(entry.outcome), entry.taken) for entry in found.entries]
    return told, before.add(found.entries)


def test_a_pipeline_that_read_the_segments_finds_nothing_new(capture: Path) -> None:
    """Each message is known by tap and seq."""
    _, ledger = take(capture, Ledger())
    compact(capture, now_s=TUESDAY_S)
    told, _ = take(capture, ledger)
    assert told == [(MERGED, Outcome.DUPLICATE, 0)]


def test_a_pipeline_that_read_some_takes_the_rest(capture: Path) -> None:
    """Those that were merged before it came to them are neither lost nor late."""
    found = take_in(list_files(capture)[:2], Ledger(), 1)
    compact(capture, now_s=TUESDAY_S)
    told, _ = take(capture, Ledger().add(found.entries))
    assert told[0] == (MERGED, Outcome.PARTIAL, 10)
    assert sum(taken for _, _, taken in told) == 30


def test_a_gap_in_the_numbers_is_not_merged_over(capture: Path) -> None:
    """A segment that comes late is then read as ever: no file stands for it."""
    late = (capture / f"{TAP}-000001.parquet").rename(capture.parent / "late")
    assert compact(capture, now_s=TUESDAY_S).merged == ()
    late.rename(capture / f"{TAP}-000001.parquet")
    assert seqs(capture) == list(range(50))


def test_a_damaged_segment_stays_and_is_named(capture: Path) -> None:
    """What comes before it and after it is merged without it."""
    put_segment(capture, 5, range(50, 60), TUESDAY_S)
    damaged = capture / f"{TAP}-000002.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    done = compact(capture, now_s=WEDNESDAY_S)
    assert [merged.name for merged in done.merged] == [
        f"{TAP}-000000_000001.parquet",
        f"{TAP}-000003_000005.parquet",
    ]
    assert [bad.path for bad in done.left] == [damaged]
    assert damaged.exists()


def test_other_taps_and_foreign_files_are_left_alone(capture: Path) -> None:
    """A single segment of a tap, one under another name, and a file with a tap that is not its name's."""
    put_segment(capture, 0, range(3), tap="client-18-60aa00bb00cc1")
    put_segment(capture, 1, range(3), tap="x").rename(capture / "mine.parquet")
    put_segment(capture, 7, range(3), tap="y").rename(capture / "z-000007.parquet")
    put_segment(capture, 8, range(3), tap="y").rename(capture / "z-000008.parquet")
    compact(capture, now_s=TUESDAY_S)
    assert {"client-18-60aa00bb00cc1-000000.parquet", "mine.parquet", "z-000007.parquet"} < set(
        names(capture)
    )


def test_large_days_become_several_files(capture: Path) -> None:
    """Each at a border between segments."""
    octets = (capture / f"{TAP}-000000.parquet").stat().st_size
    done = compact(capture, now_s=TUESDAY_S, file_octets=int(octets * 2.5))
    assert [merged.segments for merged in done.merged] == [2]
    assert seqs(capture) == list(range(50))


def test_pretending_changes_nothing(capture: Path) -> None:
    """But says what would be done."""
    before = [*capture.iterdir()]
    done = compact(capture, now_s=TUESDAY_S, pretend=True)
    assert [merged.messages for merged in done.merged] == [30]
    assert [*capture.iterdir()] == before


def test_progress_is_told(capture: Path) -> None:
    """Files looked at, then files merged, of how many."""
    told: list[tuple[str, int, int]] = []
    compact(capture, now_s=WEDNESDAY_S, progress=lambda *step: told.append(step))
    assert told[:2] == [("looking at segments", 0, 5), ("looking at segments", 1, 5)]
    assert told[-2:] == [("merging segments", 3, 5), ("merging segments", 5, 5)]


class Killed(BaseException):
    """What a test raises where a process would be killed."""


def kill(*_: object) -> None:
    """End the work here."""
    raise Killed


@pytest.mark.parametrize("place", ["_check", "_delete_replaced", "sync_folder"])
def test_killed_anywhere_nothing_is_lost(capture: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """While the file is written, before anything is deleted, after: the next call ends what was begun."""
    with monkeypatch.context() as patched:
        patched.setattr(compacting, place, kill)
        with pytest.raises(Killed):
            compact(capture, now_s=TUESDAY_S)
    assert seqs(capture) == list(range(50))
    if not (capture / MERGED).exists():
        (capture / f".{MERGED}.tmp").touch()  # what a kill -9 leaves
    compact(capture, now_s=TUESDAY_S)
    assert names(capture) == [MERGED, f"{TAP}-000003.parquet", f"{TAP}-000004.parquet"]
    assert seqs(capture) == list(range(50))


def test_killed_half_way_through_deleting(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the segments are gone: the rest is passed over, and deleted next time."""
    unlink: Callable[..., None] = Path.unlink

    def once(path: Path, missing_ok: bool = False) -> None:
        if path.name.endswith("000001.parquet"):
            raise Killed
        unlink(path, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", once)
        with pytest.raises(Killed):
            compact(capture, now_s=TUESDAY_S)
    assert seqs(capture) == list(range(50))
    assert compact(capture, now_s=TUESDAY_S).deleted == 2


def test_a_damaged_merged_file_deletes_nothing(capture: Path) -> None:
    """A copy that was cut off: the segments that it stands for are still there."""
    compact(capture, now_s=TUESDAY_S, grace_s=1e12)
    merged = capture / MERGED
    merged.write_bytes(merged.read_bytes()[:-1])
    assert compact(capture, now_s=TUESDAY_S).deleted == 0
    merged.unlink()
    assert seqs(capture) == list(range(50))


def test_only_one_at_a_time(capture: Path) -> None:
    """A second process is told so."""
    descriptor = os.open(capture / ".compact.lock", os.O_CREAT | os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        with pytest.raises(CaptureError, match="another process compacts this capture"):
            compact(capture, now_s=TUESDAY_S)
    finally:
        os.close(descriptor)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    """Nothing is made of it."""
    with pytest.raises(CaptureError, match="there is no such capture folder"):
        compact(tmp_path / "none", now_s=TUESDAY_S)
    assert not (tmp_path / "none").exists()


def test_a_folder_that_is_no_capture(tmp_path: Path) -> None:
    """Nothing is left in it, no lock either."""
    with pytest.raises(CaptureError, match="the capture folder holds no segments"):
        compact(tmp_path, now_s=TUESDAY_S)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_all_as_it_was(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is told in one sentence."""

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    before = names(capture)
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    monkeypatch.setattr(pq.ParquetWriter, "close", lambda writer: None)
    with pytest.raises(
        CaptureError, match="cannot be compacted: No space left on device; no message is lost"
    ):
        compact(capture, now_s=TUESDAY_S)
    assert names(capture) == before
