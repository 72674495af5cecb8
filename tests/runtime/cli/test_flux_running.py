"""The log of a broker on standard error: stamped lines, whoever wrote them, and none that the wire has forged."""

from __future__ import annotations

import logging
import re
from contextlib import closing

import pytest

from specwire.runtime.cli.flux_running import BrokerLog
from specwire.runtime.flux.events import ChildJoined, ChildLeft, Dropped
from specwire.runtime.flux.narration import Level
from specwire.runtime.log.quota import LINES

UUID = "c5e78dd6-0000-4000-8000-000000000000"


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return what was written since, without the times."""
    written = capsys.readouterr().err.splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d ", line) for line in written)
    return [line[9:] for line in written]


def test_events_and_faults_of_our_own_are_lines_of_one_log(capsys: pytest.CaptureFixture[str]) -> None:
    """With the rank, since brokers share a terminal; what is not printable is escaped."""
    logger = logging.getLogger("specwire.runtime.flux.test")
    with closing(BrokerLog(3, Level.QUIET)) as log:
        log.tell(ChildJoined(7, UUID, "here"))
        log.tell(ChildLeft(7, UUID, "a\n12:00:00 [0] b", "it\x1b[2J", lost=True))
        logger.warning("bad\nline")
        log.note("listening")
    logger.debug("after the end")
    assert lines(capsys) == [
        r"[3] rank 7 (c5e78dd6, a\n12:00:00 [0] b) is lost: it\x1b[2J",
        r"[3] bad\nline",
    ]


def test_flood_does_not_fill_a_disk(capsys: pytest.CaptureFixture[str]) -> None:
    with closing(BrokerLog(0)) as log:
        for _ in range(10 * LINES):
            log.tell(Dropped("event", "client", "it has no topic"))
    assert lines(capsys) == ["[0] dropped an event of a client: it has no topic"] * LINES
