"""A server's log for programs: one object a line, with the event that a line tells of, and no other."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from specwire.runtime.log.form import LogForm
from specwire.runtime.log.quota import LINES, Quota
from specwire.runtime.log.serverlog import ServerLog
from specwire.runtime.log.stamp import LONGEST, MOST, Stamp, fields_of


class Refused(msgspec.Struct, frozen=True):
    """An event as servers have them."""

    peer: bytes
    reason: str
    at: tuple[str, ...] = ()
    size: int | None = None


@contextmanager
def log_of(form: LogForm) -> Iterator[tuple[ServerLog, list[str]]]:
    """Open a log, and show what it writes."""
    lines: list[str] = []
    log = ServerLog(lines.append, Stamp("some-server", form, mark="[3] ", about={"rank": 3}), form)
    try:
        yield log, lines
    finally:
        log.close()


def test_a_line_is_an_object_with_its_event() -> None:
    with log_of(LogForm.JSON) as (log, lines):
        log.line("listening")
        log.tell(Refused(b"\x00p", "no", ("a",)), lambda event: log.narrated("refused p: no"), "warning")
    first, second = map(json.loads, lines)
    assert {name: first[name] for name in ("level", "role", "rank", "message")} == {
        "level": "info",
        "role": "some-server",
        "rank": 3,
        "message": "listening",
    }
    assert first["time"].endswith("Z") and "event" not in first
    assert (second["level"], second["event"]) == ("warning", "Refused")
    assert second["data"] == {"peer": "\x00p", "reason": "no", "at": ["a"], "size": None}


def test_for_people_a_line_is_as_it_was() -> None:
    with log_of(LogForm.TEXT) as (log, lines):
        log.tell(Refused(b"p", "no"), lambda event: log.narrated("refused p: no"), "warning")
        log.line("two\nlines \x1b[2J\u202e")
    assert [line[8:] for line in lines] == [" [3] refused p: no", r" [3] two\nlines \x1b[2J\u202e"]


def test_what_was_left_out_is_no_event() -> None:
    """The count stands before the line that brings it, and tells of other events."""
    now = 0.0
    with log_of(LogForm.JSON) as (log, lines):
        quota = Quota(log.narrated, lambda: now, "more were refused")
        for number in range(LINES + 5):
            log.tell(Refused(b"", str(number)), lambda event: quota.write(event.reason))
        now = 11.0
        log.tell(Refused(b"", "last"), lambda event: quota.write(event.reason))
    told = [(line["message"], line.get("data", {}).get("reason")) for line in map(json.loads, lines)]
    assert told == [
        *((str(number), str(number)) for number in range(LINES)),
        ("5 more were refused in 11 s", None),
        ("last", "last"),
    ]


def test_lines_of_several_events_have_the_data_of_none() -> None:
    with log_of(LogForm.JSON) as (log, lines):
        log.tell(Refused(b"", "x"), lambda event: log.narrated("three files"), with_data=False)
    assert "data" not in json.loads(lines[0])


def test_a_narrator_that_fails_leaves_the_log_in_order() -> None:
    with log_of(LogForm.JSON) as (log, lines):

        def fail(event: Refused) -> None:
            log.narrated("first")
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            log.tell(Refused(b"", "x"), fail)
        log.line("after")
    assert [json.loads(line)["message"] for line in lines] == ["first", "after"]


def test_what_our_modules_log_is_one_object_with_its_traceback() -> None:
    logger = logging.getLogger("specwire.runtime.test")
    with log_of(LogForm.JSON) as (_, lines):
        logger.warning("bad\nline")
        try:
            raise KeyError("a\x1b[2J")
        except KeyError:
            logger.exception("it failed")
        logger.info("not told")
    logger.error("after the end")
    first, second = map(json.loads, lines)
    assert (first["message"], first["level"], first["logger"]) == (
        r"bad\nline",
        "warning",
        "specwire.runtime.test",
    )
    assert second["level"] == "error" and second["traceback"].splitlines()[-1].startswith("KeyError")
    assert all(line.isascii() and "\x1b" not in line and "\n" not in line for line in lines)


def test_data_from_the_wire_is_bounded_and_harmless() -> None:
    data = fields_of(Refused(b"\xff" * 1_000_000, "\ud800" + "x" * 1_000_000, ("y",) * 1000))
    assert len(data["at"]) == MOST
    assert len(data["peer"]) <= LONGEST + 1 and len(data["reason"]) == LONGEST + 1
    with log_of(LogForm.JSON) as (log, lines):
        log.tell(Refused(b"\xff\n", "\ud800\u202e\n"), lambda event: log.narrated("refused"))
    assert lines[0].isascii() and json.loads(lines[0])["data"]["reason"] == "\ud800\u202e\n"
