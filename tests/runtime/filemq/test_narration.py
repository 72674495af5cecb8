"""Log lines: one for each event, none that an outsider can forge, and not too many refusals."""

from __future__ import annotations

import pytest

from specwire.runtime.filemq.events import (
    Event,
    FileDeleted,
    FilePublished,
    FileReceived,
    FileSent,
    FileWithdrawn,
    PeerClosed,
    PeerOpened,
    Refused,
    Subscribed,
)
from specwire.runtime.filemq.narration import Narrator, describe, show_peer
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
        (PeerClosed("00ff", "said KTHXBAI"), "disconnected from 00ff: said KTHXBAI"),
        (Refused("/a\n12:00 received /b\x1b[2J", "x"), "refused /a\\n12:00 received /b\\x1b[2J: x"),
        (FileReceived("/ü 文", 0, "AA"), "received /ü 文 (0 octets, SHA-1 AA)"),
    ],
)
def test_each_event_is_one_line(event: Event, line: str) -> None:
    assert describe(event) == line


def test_refusals_are_told_at_a_bounded_rate() -> None:
    lines: list[str] = []
    now = 0.0
    narrator = Narrator(lines.append, lambda: now)
    for i in range(1000):
        narrator.tell(Refused(f"/{i}", "is bad"))
    narrator.tell(FileDeleted("/a"))
    assert len(lines) == LINES + 1
    now = PER_S
    narrator.tell(Refused("/again", "is bad"))
    assert lines[-2:] == [f"{1000 - LINES} more were refused in 10 s", "refused /again: is bad"]


def test_long_routing_id_is_cut() -> None:
    """A client may name itself with 255 octets; what is shorter, and any endpoint, is told whole."""
    assert show_peer("ab" * 254 + "cd") == "abababababababab…abababcd (255 octets)"
    assert show_peer(b"specwire-peer-filemq-C-0042".hex()) == "specwire-peer-filemq-C-0042"
    assert (
        show_peer((b"a" * 30 + b"specwire-0042-bc").hex()) == "aaaaaaaaaaaaaaaa…specwire-0042-bc (46 octets)"
    )
    assert (
        show_peer(b"<b>with a blank</b>, which is no name".hex()) == "3c623e7769746820…6e616d65 (37 octets)"
    )
    assert show_peer("ab" * 20) == "ab" * 20
    assert show_peer("ipc://" + "a" * 60) == "ipc://" + "a" * 60
    assert (
        describe(PeerClosed("0a" * 255, "gone"))
        == "disconnected from 0a0a0a0a0a0a0a0a…0a0a0a0a (255 octets): gone"
    )
