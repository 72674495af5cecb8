"""The log of a peer in the foreground: lines anywhere, bars only on a terminal that may be drawn on."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import pytest
from rich.console import Console

from specwire.runtime.cli import peer_log
from specwire.runtime.cli.peer_log import PeerLog
from specwire.runtime.filemq.events import (
    FileDeleted,
    FileReceived,
    FileSent,
    FileWithdrawn,
    PeerClosed,
    PeerOpened,
    Progress,
    Subscribed,
)
from specwire.runtime.kernel.log import LogEvent, Refused
from specwire.runtime.log.lines import OURS
from specwire.runtime.log.quota import LINES

HALF = Progress("/large", 500_000_000, 1_000_000_000, 50e6)
HIDE_CURSOR, SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    """Take away the handlers of logs that a test leaves open: they would write into other tests' logs."""
    before = list(OURS.handlers)
    yield
    OURS.handlers[:] = before


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> io.StringIO:
    """What is drawn on a terminal of 100 columns."""
    return draw_on(monkeypatch)


def draw_on(monkeypatch: pytest.MonkeyPatch, **environment: str) -> io.StringIO:
    file = io.StringIO()
    console = Console(file=file, force_terminal=True, width=100, _environ={"TERM": "xterm", **environment})
    monkeypatch.setattr(peer_log, "messages", lambda: console)
    return file


def take(file: io.StringIO) -> str:
    """Return what was drawn since the last time."""
    text = file.getvalue()
    file.seek(0)
    file.truncate()
    return text


def plain(text: str) -> str:
    """Return text without what steers a terminal."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_a_long_file_has_a_bar_with_amount_rate_and_time_left(
    written: io.StringIO, capsys: pytest.CaptureFixture[str]
) -> None:
    log = PeerLog()
    log.tell(PeerOpened("tcp://a"))
    assert take(written) == ""
    assert re.fullmatch(r"\d\d:\d\d:\d\d connected with tcp://a\n", capsys.readouterr().err)
    log.tell(HALF)
    drawn = take(written)
    assert HIDE_CURSOR in drawn
    assert re.search(r"/large ━+[╸╺]?━* +50 % of +1\.0 GB +50\.0 MB/s +0:10 left", plain(drawn))
    assert capsys.readouterr().err == "", "a bar is told in no line"
    log.close()
    assert SHOW_CURSOR in take(written)


def test_lines_stand_above_the_bars(written: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    log = PeerLog()
    log.tell(HALF)
    take(written)
    log.tell(Refused("/[red]b", "is bad"))
    drawn = plain(take(written))
    assert re.search(r"refused /\[red\]b: is bad\n+.*/large ━", drawn, re.DOTALL), (
        "no markup, and the bar again"
    )
    assert capsys.readouterr().err == ""
    log.close()


@pytest.mark.parametrize(
    ("progress", "end"),
    [
        (HALF, FileReceived("/large", 1_000_000_000, "AA")),
        (HALF, Refused("/large", "its digest is another")),
        (HALF, FileDeleted("/large")),
        (Progress("/large", 1, 2, 1.0, "01"), FileWithdrawn("/large")),
        (HALF, PeerClosed("tcp://a", "said KTHXBAI")),
        (Progress("/large", 1, 2, 1.0, "01"), FileSent("/large", 2, "01")),
        (Progress("/large", 1, 2, 1.0, "01"), PeerClosed("01", "is gone")),
    ],
)
def test_a_bar_goes_with_its_file(written: io.StringIO, progress: Progress, end: LogEvent) -> None:
    log = PeerLog()
    log.tell(progress)
    take(written)
    log.tell(end)
    assert SHOW_CURSOR in take(written)
    log.tell(PeerOpened("tcp://a"))
    assert take(written) == ""


def test_what_happens_to_another_file_leaves_the_bar(written: io.StringIO) -> None:
    log = PeerLog()
    log.tell(Progress("/large", 1, 2, 1.0, "01"))
    for event in (
        FileSent("/large", 2, "02"),
        FileReceived("/b", 1, "AA"),
        FileDeleted("/b"),
        FileWithdrawn("/b"),
        PeerClosed("02", "is gone"),
    ):
        log.tell(event)
    assert SHOW_CURSOR not in take(written)
    log.close()


def test_names_from_the_wire_do_not_steer_the_terminal(written: io.StringIO) -> None:
    log = PeerLog()
    log.tell(Progress("/\x1b[2J[bold]" + "n" * 100, 5, None, 1.0))
    drawn = take(written)
    assert "\x1b[2J" not in drawn
    assert "…nnn" in drawn and "5 octets" in drawn
    log.close()


@pytest.mark.parametrize("peer", ["", "00112233"])
def test_a_line_keeps_to_the_width_of_the_terminal(written: io.StringIO, peer: str) -> None:
    """The end of the name tells more than its beginning, so that is what is left of it."""
    log = PeerLog()
    log.tell(Progress("/" + "long/" * 30 + "name.txt", 10, 10**12, 1e9, peer))
    line = plain(take(written)).strip("\r\n ")
    assert len(line) <= 100
    assert re.match(rf"…[^ ]*/name\.txt {f'to {peer} ' if peer else ''}━{{10,}}", line)
    log.close()


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_that_wants_none_gets_lines(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    written = draw_on(monkeypatch, **environment)
    log = PeerLog()
    log.tell(HALF)
    log.close()
    assert take(written) == ""
    assert "receiving /large: 50 % of 1.0 GB, 50.0 MB/s, 0:10 left" in capsys.readouterr().err


def test_quiet_has_neither(written: io.StringIO, capsys: pytest.CaptureFixture[str]) -> None:
    log = PeerLog(quiet=True)
    log.tell(HALF)
    log.tell(FileReceived("/large", 1, "AA"))
    assert take(written) == capsys.readouterr().err == ""


def test_connections_have_a_bounded_rate(capsys: pytest.CaptureFixture[str]) -> None:
    """A client that connects in a loop does not fill the disk with lines."""
    log = PeerLog()
    for _ in range(1000):
        for event in (PeerOpened("01", "joe"), Subscribed("/a", "01"), PeerClosed("01", "said KTHXBAI")):
            log.tell(event)
    log.close()
    assert capsys.readouterr().err.count("\n") == 3 * LINES
