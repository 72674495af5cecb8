"""Log and status: text, JSON and metrics come from one type each."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import Mapping

from specwire.runtime.kernel.log import EventLog, EventStreams, LogEvent
from specwire.runtime.log.form import LogForm
from specwire.runtime.log.quota import LINES, PER_S


class Opened(LogEvent, frozen=True):
    """A door was opened."""

    door: str
    times: int = 1
    by: Mapping[str, int] = {}
    text = "{0.door} opened {0.times} times"


class Knocked(LogEvent, frozen=True):
    """Somebody knocks, as often as it likes."""

    who: str
    level = "warning"
    limit = "more knocks were omitted"
    text = "{0.who} knocks"


def log_of(form: LogForm, clock: list[float]) -> tuple[EventLog, list[str]]:
    """Return a log and its lines."""
    lines: list[str] = []
    return EventLog(lines.append, "door", form, clock=lambda: clock[0]), lines


def test_text_and_json_of_one_event() -> None:
    """The text is the JSON's message, the fields are its data, and what a peer wrote is escaped."""
    for form in LogForm:
        log, lines = log_of(form, [0.0])
        try:
            log.emit(Opened("a\x1b[2J", 2, {"me": 2}))
        finally:
            log.close()
        (line,) = lines
        if form is LogForm.TEXT:
            assert line.endswith(" a\\x1b[2J opened 2 times")
        else:
            found = json.loads(line)
            assert (found["level"], found["role"], found["event"]) == ("info", "door", "Opened")
            assert found["data"] == {"door": "a\x1b[2J", "times": 2, "by": {"me": 2}}
            assert found["message"] == "a\x1b[2J opened 2 times"


def test_rate_of_events_of_outsiders() -> None:
    """Those beyond are counted, with the next one that is written; other events are not concerned."""
    clock = [0.0]
    log, lines = log_of(LogForm.TEXT, clock)
    try:
        for _ in range(LINES + 5):
            log.emit(Knocked("fox"))
        log.emit(Opened("front"))
        assert len(lines) == LINES + 1
        clock[0] = PER_S + 1
        log.emit(Knocked("fox"))
        assert [line.partition(" ")[2] for line in lines[-2:]] == [
            "5 more knocks were omitted in 11 s",
            "fox knocks",
        ]
    finally:
        log.close()


def test_unwanted_events() -> None:
    """A filter of the peer decides, not the event."""
    lines: list[str] = []
    log = EventLog(lines.append, "door", wanted=lambda event: not isinstance(event, Opened))
    log.emit(Opened("front"))
    log.close()
    assert lines == []


def test_streams() -> None:
    """Each reader gets all events since it began, and the iteration ends with the peer."""

    async def story() -> None:
        streams = EventStreams()
        streams.add(Opened("before"))
        first = streams.read()
        streams.add(Opened("a"))
        second = streams.read()
        streams.add(Opened("b"))
        streams.end()
        assert [event async for event in first] == [Opened("a"), Opened("b")]
        assert [event async for event in second] == [Opened("b")]
        assert [event async for event in streams.read()] == [], "they have ended"

    asyncio.run(story())


def test_dropped_streams_are_forgotten() -> None:
    """Whether they were iterated or not, they hold no events."""

    class Light(LogEvent, frozen=True, weakref=True):
        text = "light"

    async def story() -> None:
        streams, event = EventStreams(), Light()
        streams.read()
        begun = streams.read()
        streams.add(event)
        assert await anext(begun) is event
        streams.add(event)
        await begun.aclose()
        seen = weakref.ref(event)
        del begun, event
        gc.collect()
        assert seen() is None

    asyncio.run(story())
