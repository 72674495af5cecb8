"""What a run takes in of a capture: every segment and every message has a stated outcome."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.segments import Source, build_table, list_files, write_segment
from specwire.runtime.spark.pipeline.commit import begin, visible_files
from specwire.runtime.spark.pipeline.counts import SCHEMA as COUNTS
from specwire.runtime.spark.pipeline.intake import Intake, take_in
from specwire.runtime.spark.pipeline.ledger import (
    TABLE,
    Entry,
    Ledger,
    Outcome,
    read_ledger,
    write_entries,
)
from specwire.runtime.spark.pipeline.merging import MERGED_AFTER, merge_small
from specwire.runtime.spark.pipeline.summing import count_segments, total
from tests.runtime.spark import captures

NOM = captures.NOM


def segment(
    folder: Path,
    name: str,
    seqs: range | list[int],
    *,
    tap: str = "t-1-0",
    times: list[int] | None = None,
    dropped: int = 0,
) -> Path:
    """Write messages of these `seq` as one segment; `times` are microseconds since 1970."""
    folder.mkdir(exist_ok=True)
    at = times or [captures.BEGUN + seq for seq in seqs]
    rows = [
        Captured(ts, seq, seq, "c1", "C", "00aa", tuple(NOM), 0) for seq, ts in zip(seqs, at, strict=True)
    ]
    return write_segment(folder, name, build_table(rows, Source(tap, "filemq", "2"), dropped))


def rewrite(path: Path, **columns: list[object]) -> None:
    """Put other values into a segment's columns."""
    table = pq.read_table(path)
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, pa.array(values, table.schema.field(name).type))
    pq.write_table(table, path)


def take(folder: Path, ledger: Ledger | None = None) -> tuple[Intake, Ledger]:
    """Take in a folder; return what a run reads, and the ledger after it."""
    before = ledger or Ledger()
    found = take_in(list_files(folder), before, 1)
    return found, before.add(found.entries)


def outcomes(intake: Intake) -> dict[str, str]:
    """Return what came of each file."""
    return {entry.name: entry.outcome for entry in intake.entries}


def test_new_segments_are_read_once(tmp_path: Path) -> None:
    """In the order of their messages; a second run looks at nothing."""
    segment(tmp_path, "b.parquet", range(5), dropped=1)
    segment(tmp_path, "a.parquet", range(5, 9), dropped=3)
    found, ledger = take(tmp_path)
    assert [portion.path.name for portion in found.portions] == ["b.parquet", "a.parquet"]
    assert found.rows == 9
    assert ledger.known() == {"t-1-0": ((0, 8),)}
    assert ledger.dropped() == {"t-1-0": 3}
    assert take(tmp_path, ledger)[0] == Intake((), ())
    segment(tmp_path, "c.parquet", range(9, 10))
    assert outcomes(take(tmp_path, ledger)[0]) == {"c.parquet": "read"}


def test_a_copy_counts_once(tmp_path: Path) -> None:
    """Under another name, at once or later."""
    segment(tmp_path, "a.parquet", range(5))
    shutil.copy(tmp_path / "a.parquet", tmp_path / "copy of a.parquet")
    found, ledger = take(tmp_path)
    assert outcomes(found) == {"a.parquet": "read", "copy of a.parquet": "duplicate"}
    assert (found.rows, len(found.portions)) == (5, 1)
    shutil.copy(tmp_path / "a.parquet", tmp_path / "0.parquet")
    found, ledger = take(tmp_path, ledger)
    assert outcomes(found) == {"0.parquet": "duplicate"}
    assert total(COUNTS.empty_table(), ledger).repeated == 10


def test_messages_in_two_segments_count_once(tmp_path: Path) -> None:
    """Of a segment that overlaps with others, what they have not."""
    segment(tmp_path, "a.parquet", range(5))
    segment(tmp_path, "b.parquet", range(3, 9))
    found, ledger = take(tmp_path)
    assert outcomes(found) == {"a.parquet": "read", "b.parquet": "partial"}
    assert found.portions[1].known == {"t-1-0": ((3, 4),)}
    assert (found.rows, found.entries[1].repeated) == (9, 2)
    assert ledger.known() == {"t-1-0": ((0, 8),)}


def test_messages_twice_in_one_file_count_once(tmp_path: Path) -> None:
    """A tool has put a segment together from pieces."""
    segment(tmp_path, "a.parquet", [0, 1, 1, 2, 7])
    found, _ = take(tmp_path)
    (portion,) = found.portions
    assert (portion.repeats, found.rows, found.entries[0].repeated) == (True, 4, 1)
    assert found.entries[0].by_tap() == {"t-1-0": ((0, 2), (7, 7))}


def test_holes_are_not_known(tmp_path: Path) -> None:
    """A file that spans more numbers than it has rows does not hide the rest."""
    segment(tmp_path, "a.parquet", [0, 1, 8, 9])
    segment(tmp_path, "b.parquet", range(2, 8))
    found, ledger = take(tmp_path)
    assert set(outcomes(found).values()) == {"read"}
    assert (found.rows, ledger.known()) == (10, {"t-1-0": ((0, 9),)})


def test_two_taps_in_one_file_are_told_apart(tmp_path: Path) -> None:
    """A capture that was put together; each tap counts from 0."""
    path = segment(tmp_path, "a.parquet", [0, 0, 1, 1])
    rewrite(path, tap=["x", "y", "x", "y"], protocol=["filemq", "filemq", None, "flux"])
    found, ledger = take(tmp_path)
    assert ledger.known() == {"x": ((0, 1),), "y": ((0, 1),)}
    assert (found.rows, found.portions[0].repeats) == (4, False)
    assert found.portions[0].protocols == (None, "filemq", "flux")


def test_a_truncated_segment_is_set_aside(tmp_path: Path) -> None:
    """With the reason, while the others are read; when it has become whole it is read too."""
    segment(tmp_path, "a.parquet", range(5))
    path = segment(tmp_path, "b.parquet", range(5, 9))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    found, ledger = take(tmp_path)
    assert outcomes(found) == {"a.parquet": "read", "b.parquet": "quarantined"}
    (told,) = count_segments(ledger).told
    assert "b.parquet: not a whole Parquet file, it was cut off or damaged" in told.reason
    assert take(tmp_path, ledger)[0] == Intake((), ())
    path.write_bytes(whole)
    found, ledger = take(tmp_path, ledger)
    assert outcomes(found) == {"b.parquet": "read"}
    assert count_segments(ledger).quarantined == 0


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"seq": [0, None]}, "a row has no 'seq'"),
        ({"tap": ["t", None]}, "a row has no 'tap'"),
        ({"ts": [None, None]}, "a row has no 'ts'"),
        ({"ts": [0, 2**62]}, "a row's 'ts' is no value that there can be"),
        ({"ts": [0, 253_402_300_800_000_000]}, "a row's 'ts' is no value that there can be"),  # year 10,000
    ],
)
def test_messages_that_cannot_be_placed_are_set_aside(
    tmp_path: Path, columns: dict[str, list[object]], sentence: str
) -> None:
    """The whole file, because nothing tells what it is."""
    rewrite(segment(tmp_path, "a.parquet", [0, 1]), **columns)
    found, _ = take(tmp_path)
    assert outcomes(found) == {"a.parquet": "quarantined"}
    assert sentence in found.entries[0].reason


def test_what_is_no_file_is_set_aside(tmp_path: Path) -> None:
    """A pipe that nobody writes to is not waited for; a link that leads nowhere is nothing."""
    segment(tmp_path, "a.parquet", [0])
    os.mkfifo(tmp_path / "b.parquet")
    (tmp_path / "c.parquet").mkdir()
    (tmp_path / "d.parquet").symlink_to(tmp_path / "nowhere")
    found, _ = take(tmp_path)
    assert outcomes(found) == {"a.parquet": "read", "b.parquet": "quarantined", "c.parquet": "quarantined"}
    assert {entry.reason.partition(": ")[2] for entry in found.entries[:2]} == {
        "not a file, so not a segment"
    }


@pytest.mark.parametrize("column", ["tap", "protocol"])
def test_names_that_are_not_utf_8_are_set_aside(tmp_path: Path, column: str) -> None:
    """Between others, so that neither the least nor the greatest name in the footer shows it."""
    path = segment(tmp_path, "a.parquet", [0, 1, 2])
    names: dict[str, list[object]] = {column: ["a", "b", "c"]}
    rewrite(path, **names)
    captures.put_octets(path, column)
    found, _ = take(tmp_path)
    assert outcomes(found) == {"a.parquet": "quarantined"}
    assert f"a row's '{column}' is not UTF-8" in found.entries[0].reason


def test_foreign_files_are_set_aside(tmp_path: Path) -> None:
    """Parquet that is no capture, a capture with another type, and no Parquet at all."""
    pq.write_table(pa.table({"name": ["x"]}), tmp_path / "a.parquet")
    table = pq.read_table(segment(tmp_path, "b.parquet", range(3)))
    at = table.schema.get_field_index("seq")
    pq.write_table(table.set_column(at, "seq", table["seq"].cast(pa.string())), tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_text("a letter")
    found, _ = take(tmp_path)
    assert set(outcomes(found).values()) == {"quarantined"}
    reasons = [entry.reason for entry in found.entries]
    assert "has no column 'ts'" in reasons[0]
    assert "column 'seq' is string instead of int64" in reasons[1]
    assert "not a whole Parquet file" in reasons[2]


def test_a_clock_that_jumps_is_read(tmp_path: Path) -> None:
    """From 1970 to now within a segment, and back: `seq` says the order."""
    segment(tmp_path, "a.parquet", range(4), times=[5, captures.BEGUN, captures.BEGUN - 10**6, 9])
    found, _ = take(tmp_path)
    assert outcomes(found) == {"a.parquet": "read"}
    assert (found.entries[0].first, found.entries[0].last) == (5, captures.BEGUN)


def test_times_all_over_the_calendar_are_set_aside(tmp_path: Path) -> None:
    """Each date becomes a folder."""
    day = 86_400_000_000
    segment(tmp_path, "a.parquet", range(500), times=[seq * 3 * day for seq in range(500)])
    found, _ = take(tmp_path)
    assert "its messages have 500 dates, more than the 366 that are read" in found.entries[0].reason


def test_a_segment_behind_the_answers_is_late(tmp_path: Path) -> None:
    """Not one that closes a gap before anything was answered."""
    segment(tmp_path, "0.parquet", range(3))
    segment(tmp_path, "2.parquet", range(6, 9))
    first, ledger = take(tmp_path)
    assert not any(portion.late for portion in first.portions)
    segment(tmp_path, "1.parquet", range(3, 6))
    segment(tmp_path, "3.parquet", range(9, 10))
    segment(tmp_path, "other.parquet", range(2), tap="u-2-0")
    found, ledger = take(tmp_path, ledger)
    assert outcomes(found) == {"1.parquet": "late", "3.parquet": "read", "other.parquet": "read"}
    assert (total(COUNTS.empty_table(), ledger).late, ledger.settled()["t-1-0"]) == (3, 9)


def test_a_file_that_changed_is_told(tmp_path: Path) -> None:
    """What was read of it stays; what is new in it is read."""
    segment(tmp_path, "a.parquet", range(5))
    _, ledger = take(tmp_path)
    (tmp_path / "a.parquet").unlink()
    path = segment(tmp_path, "a.parquet", range(3, 8))
    os.utime(path, ns=(1, 1))
    found, ledger = take(tmp_path, ledger)
    assert outcomes(found) == {"a.parquet": "partial"}
    assert (
        found.entries[0].reason == "the file has changed since run 1 read it; 3 messages in it were not known"
    )
    assert ledger.known() == {"t-1-0": ((0, 7),)}
    assert [told.outcome for told in count_segments(ledger).told] == ["partial"]
    path.write_bytes(b"broken")
    found, ledger = take(tmp_path, ledger)
    assert outcomes(found) == {"a.parquet": "quarantined"}
    assert ledger.known() == {"t-1-0": ((0, 7),)}


def test_a_tap_that_only_dropped_is_known(tmp_path: Path) -> None:
    """Its segment has no rows."""
    segment(tmp_path, "a.parquet", [], dropped=9)
    found, ledger = take(tmp_path)
    assert (outcomes(found), found.portions, ledger.dropped()) == ({"a.parquet": "read"}, (), {"t-1-0": 9})


def test_the_ledger_is_kept(tmp_path: Path) -> None:
    """Every row of it, and in few files however many runs there were."""
    entry = Entry(
        "a.parquet", 10, 20, run=1, outcome=Outcome.PARTIAL, reason="odd", rows=5, repeated=1, tap="t", edition="2",
        dropped=3, taps=["t"], stretches=[[0, 3]], protocols=["filemq", ""],
        first=1, last=int(datetime(2026, 1, 2, tzinfo=UTC).timestamp() * 1e6),
    )  # fmt: skip
    entries = [entry]
    for number in range(2, MERGED_AFTER + 3):
        entries.append(Entry(f"{number}.parquet", number, 0, run=number, outcome=Outcome.READ))
    entries[-1] = msgspec.structs.replace(entry, run=entries[-1].run, reason="")
    for entry in entries:
        with begin(tmp_path / "out") as run:
            write_entries(run, [entry])
            merge_small(run, [TABLE])
            run.commit(run.before)
    ledger = read_ledger(tmp_path / "out")
    assert list(ledger) == [entries[-1], *entries[1:-1]], "the last one replaces the first"
    assert ledger.told() == []
    assert len(visible_files(tmp_path / "out" / "segments")) == 3, "the merged one, and those of two runs"
