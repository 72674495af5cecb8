"""Capture folders made by hand, file by file."""

from __future__ import annotations

import os
from pathlib import Path

from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import Source, build_table, write_segment

NOM = bytes.fromhex("aaa3070000010000000000")
TAP = "server-17-60aa00bb00cc0"
"""A tap's id as `make_tap_id` writes it."""

DAY_S = 86_400
MONDAY_S = 1_700_438_400
"""2023-11-20 00:00:00 UTC."""

TUESDAY_S = MONDAY_S + DAY_S
WEDNESDAY_S = TUESDAY_S + DAY_S


def put_segment(
    folder: Path,
    number: int,
    seqs: range,
    at_s: int = MONDAY_S,
    *,
    tap: str = TAP,
    dropped: int = 0,
    frame: bytes = NOM,
) -> Path:
    """Write the messages of these `seq`, all seen at `at_s`, as one segment that was written then."""
    folder.mkdir(exist_ok=True)
    rows = [Captured(at_s * 10**6, seq, seq, "c1", "C", "00aa", (frame,), 0) for seq in seqs]
    table = build_table(rows, Source(tap, "filemq", "2"), dropped)
    path = write_segment(folder, segment_name(tap, number), table)
    os.utime(path, (at_s, at_s))
    return path


def names(folder: Path) -> list[str]:
    """Return what is in a folder, hidden files without the lock."""
    return sorted(path.name for path in folder.iterdir() if path.name != ".compact.lock")
