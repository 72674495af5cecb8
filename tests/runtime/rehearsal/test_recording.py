"""What is read of a capture, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.segments import Source, build_table, write_segment
from specwire.runtime.rehearsal.errors import RehearsalError
from specwire.runtime.rehearsal.replay.recording import read_recording

FRAMES = (b"\xaa\xa3\x01",)


def write(folder: Path, name: str, rows: int, protocol: str = "filemq", **source: str) -> None:
    """Write a segment of a tap with rows of two conversations in turn."""
    said = [Captured(n, n, n, f"c{n % 2}", "C" if n % 4 < 2 else "S", "", FRAMES, 0) for n in range(rows)]
    stated = Source(tap=name, protocol=protocol, edition="", **source)
    write_segment(folder, f"{name}.parquet", build_table(said, stated, 0))


def read(folder: Path, protocol: str | None = None, tap: str | None = None, messages: int = 100) -> list[int]:
    recording = read_recording(folder, protocol=protocol, tap=tap, messages=messages)
    return [len(script.said) for script in recording.scripts]


def test_conversations_are_told_apart_in_the_order_of_their_beginning(tmp_path: Path) -> None:
    write(tmp_path, "server-12-5f", 8)
    recording = read_recording(tmp_path, protocol=None, tap=None, messages=100)
    assert (recording.protocol, recording.tap, recording.cut) == ("filemq", "server", False)
    assert [script.conversation for script in recording.scripts] == ["c0", "c1"]
    assert [said.mono for said in recording.scripts[1].said] == [1, 3, 5, 7]
    assert [said.sender for said in recording.scripts[0].said] == ["C", "S", "C", "S"]


def test_more_is_not_read_than_was_asked_for(tmp_path: Path) -> None:
    write(tmp_path, "server-12-5f", 8)
    recording = read_recording(tmp_path, protocol=None, tap=None, messages=5)
    assert (recording.messages, recording.cut) == (5, True)


def test_processes_of_one_tap_are_one_and_other_taps_are_to_be_named(tmp_path: Path) -> None:
    write(tmp_path, "server-12-5f", 2)
    write(tmp_path, "server-13-6a", 2)
    assert sum(read(tmp_path)) == 4
    write(tmp_path, "client-14-7b", 6)
    with pytest.raises(RehearsalError, match="has several: name one with --tap, of client, server"):
        read(tmp_path)
    assert sum(read(tmp_path, tap="client")) == 6
    assert sum(read(tmp_path, tap="server-12-5f")) == 2


def test_protocols_are_to_be_named_where_there_are_several(tmp_path: Path) -> None:
    write(tmp_path, "a-1-1", 2)
    write(tmp_path, "a-1-2", 4, protocol="flux")
    with pytest.raises(RehearsalError, match="name one with --protocol, of filemq, flux"):
        read(tmp_path)
    assert sum(read(tmp_path, protocol="flux")) == 4
    with pytest.raises(RehearsalError, match="has no protocol 'zre'; it has filemq, flux"):
        read(tmp_path, protocol="zre")


def test_payloads_that_were_not_kept_cannot_be_played(tmp_path: Path) -> None:
    write(tmp_path, "a-1-1", 2, payload="cut 16")
    with pytest.raises(RehearsalError, match=r"payloads were not kept \(cut 16\)"):
        read(tmp_path)


def test_a_tap_that_is_not_there_and_a_folder_that_is_none(tmp_path: Path) -> None:
    write(tmp_path, "a-1-1", 2)
    with pytest.raises(RehearsalError, match="has no messages of filemq by the tap b"):
        read(tmp_path, tap="b")
    with pytest.raises(CaptureError):
        read(tmp_path / "nowhere")
