"""What goes from a capture by age and size, and what never does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specwire.runtime.capture.amounts import parse_age, parse_size
from specwire.runtime.capture.retention import Aged, Pruned, Retention, choose_old, prune
from tests.runtime.capture.folders import MONDAY_S, TAP, names, put_segment

NOW_S = MONDAY_S + 100


def aged(*pairs: tuple[int, int]) -> list[Aged]:
    """Files of these octets and ages in seconds."""
    return [Aged(Path(f"{at}"), octets, NOW_S - age) for at, (octets, age) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("retention", "gone"),
    [
        (Retention(), ""),
        (Retention(keep_s=50), "2"),
        (Retention(keep_s=30), "20"),
        (Retention(max_octets=600), ""),
        (Retention(max_octets=599), "2"),
        (Retention(max_octets=299), "20"),
        (Retention(max_octets=0), "201"),
        (Retention(keep_s=50, max_octets=299), "20"),
    ],
)
def test_the_oldest_go_first(retention: Retention, gone: str) -> None:
    """By either bound, and no more than it takes."""
    files = aged((100, 40), (200, 20), (300, 60))
    assert "".join(str(file.path) for file in choose_old(files, retention, NOW_S)) == gone


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Three segments of 0, 10 and 20 seconds after midnight."""
    for number in range(3):
        put_segment(tmp_path, number, range(number, number + 1), MONDAY_S + 10 * number)
    return tmp_path


def test_old_segments_are_deleted(capture: Path) -> None:
    """And what was done is told."""
    done = prune(capture, Retention(keep_s=85), NOW_S)
    assert [file.path.name for file in done.segments] == [f"{TAP}-000000.parquet", f"{TAP}-000001.parquet"]
    assert names(capture) == [f"{TAP}-000002.parquet"]
    assert (done.kept, done.kept_octets) == (1, (capture / f"{TAP}-000002.parquet").stat().st_size)
    assert done.octets == sum(file.octets for file in done.segments)


def test_pretending_deletes_nothing(capture: Path) -> None:
    """It tells the same."""
    before = names(capture)
    told = prune(capture, Retention(max_octets=0), NOW_S, pretend=True)
    assert (len(told.segments), told.kept, names(capture)) == (3, 0, before)


def test_only_a_taps_files_are_deleted(capture: Path) -> None:
    """Whatever else is in the folder is somebody's: other names, folders, links."""
    for name in ("mine.parquet", "table-1-000000.parquet", "notes.txt", ".hidden-000000.parquet"):
        (capture / name).write_text("")
        os.utime(capture / name, (0, 0))
    (capture / f"{TAP}-000009.parquet").mkdir()
    (capture / f"{TAP}-000008.parquet").symlink_to(capture / "mine.parquet")
    before = names(capture)
    done = prune(capture, Retention(keep_s=0), NOW_S)
    assert len(done.segments) == 3
    assert set(before) - set(names(capture)) == {file.path.name for file in done.segments}


def test_what_a_dead_writer_left_is_deleted(capture: Path) -> None:
    """After an hour without a change; a file that is being written stays."""
    for number, age in ((7, 3601), (8, 3599)):
        path = capture / f".{TAP}-00000{number}.parquet.tmp"
        path.write_bytes(b"PAR1")
        os.utime(path, (NOW_S - age, NOW_S - age))
    done = prune(capture, Retention(), NOW_S)
    assert [file.path.name for file in done.left_over] == [f".{TAP}-000007.parquet.tmp"]
    assert f".{TAP}-000008.parquet.tmp" in names(capture)


def test_an_empty_folder_has_nothing_to_give(tmp_path: Path) -> None:
    """It is no error: a server prunes before it has written anything."""
    assert prune(tmp_path, Retention(keep_s=0, max_octets=0), NOW_S) == Pruned((), (), 0, 0)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("12h", 43_200), ("7d", 604_800), ("1.5w", 907_200)]
)
def test_ages(text: str, seconds: float) -> None:
    """As a person writes them."""
    assert parse_age(text) == seconds


@pytest.mark.parametrize(
    ("text", "octets"),
    [
        ("0", 0),
        ("512", 512),
        ("500M", 500_000_000),
        ("20GB", 20 * 10**9),
        ("1.5t", 15 * 10**11),
        ("2Mi", 2 << 20),
    ],
)
def test_sizes(text: str, octets: int) -> None:
    """In powers of 1000, or of 1024 with an i."""
    assert parse_size(text) == octets


@pytest.mark.parametrize("text", ["", "7", "-1d", "d", "7 days", "1e9s", "\u0667d"])
def test_what_is_no_age(text: str) -> None:
    """The sentence shows what would be one."""
    with pytest.raises(ValueError, match="is no age: write 90s"):
        parse_age(text)


@pytest.mark.parametrize("text", ["", "big", "-1", "1X", "1e3", "M"])
def test_what_is_no_size(text: str) -> None:
    """The sentence shows what would be one."""
    with pytest.raises(ValueError, match="is no size: write 500M"):
        parse_size(text)
