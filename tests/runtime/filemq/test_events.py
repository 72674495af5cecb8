"""Log lines: one for each event, none that an outsider can forge, and not too many refusals."""

from __future__ import annotations

import pytest

from specwire.runtime.filemq.events import (
    FileDeleted,
    FilePublished,
    FileReceived,
    FileSent,
    FileWithdrawn,
    PeerClosed,
    PeerOpened,
    Subscribed,
)
from specwire.runtime.kernel.log import EventLog, LogEvent, Refused
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.quota import LINES, PER_S


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (FileReceived("/a", 1234, "AA"), "received /a (1,234 octets, SHA-1 AA)"),
        (FileReceived("/a", 1, "AA", verified=False), "received /a (1 octets, SHA-1 AA, unverified)"),
        (FileDeleted("/a"), "deleted /a"),
        (FilePublished("/a", 1, "AA"), "published /a (1 octets, SHA-1 AA)"),
        (FileWithdrawn("/a"), "withdrawn /a"),
        (FileSent("/a", 1, "00ff"), "sent /a to 00ff (1 octets)"),
        (Subscribed("/a"), "subscribed to /a"),
        (Subscribed("/a", "00ff"), "00ff subscribed to /a"),
        (Refused("/a", "is bad"), "refused /a: is bad"),
        (Refused("/a", "is bad", "00ff"), "refused /a of 00ff: is bad"),
        (PeerOpened("00ff"), "connected with 00ff"),
        (PeerOpened("00ff", "joe"), "connected with 00ff (user joe)"),
        (PeerClosed("00ff", "said KTHXBAI"), "disconnected from 00ff: said KTHXBAI"),
        (Refused("/a\n12:00 received /b\x1b[2J", "x"), "refused /a\\n12:00 received /b\\x1b[2J: x"),
        (FileReceived("/ü 文", 0, "AA"), "received /ü 文 (0 octets, SHA-1 AA)"),
    ],
)
def test_each_event_is_one_line(event: LogEvent, line: str) -> None:
    lines: list[str] = []
    log = EventLog(lines.append, "test", LogForm.TEXT)
    log.emit(event)
    log.close()
    assert [text.split(" ", 1)[1] for text in lines] == [line]


def test_the_rate_of_refusals_is_bounded() -> None:
    lines: list[str] = []
    now = 0.0
    log = EventLog(lines.append, "test", LogForm.TEXT, clock=lambda: now)
    for i in range(1000):
        log.emit(Refused(f"/{i}", "is bad"))
    log.emit(FileDeleted("/a"))
    assert len(lines) == LINES + 1
    now = PER_S
    log.emit(Refused("/again", "is bad"))
    log.close()
    assert [text.split(" ", 1)[1] for text in lines[-2:]] == [
        f"{1000 - LINES} more were refused in 10 s",
        "refused /again: is bad",
    ]
