"""Hand-made captures that grow segment by segment."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from specwire.runtime.capture.link import Captured
from specwire.runtime.capture.names import segment_name
from specwire.runtime.capture.segments import Source, build_table, write_segment
from tests.runtime.spark.captures import BEGUN, Message

TAP = "server-1-0"


def add_segment(
    folder: Path,
    number: int,
    messages: Sequence[Message],
    *,
    first: int,
    tap: str = TAP,
    conversation: str = "c1",
    now: bool = False,
) -> Path:
    """Write one segment of a tap whose first message has `seq` first, a millisecond between two messages.

    Messages are of 2023, or of this moment with `now`.
    """
    folder.mkdir(exist_ok=True)
    begun = time.time_ns() // 1000 - 1000 * (first + len(messages)) if now else BEGUN
    rows = [
        Captured(begun + 1000 * seq, 10**6 * seq, seq, conversation, sender, "00aa", tuple(frames), 0)
        for seq, (sender, frames) in enumerate(messages, first)
    ]
    table = build_table(rows, Source(tap=tap, protocol="filemq", edition="2"), 0)
    return write_segment(folder, segment_name(tap, number), table)
