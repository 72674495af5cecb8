"""The log of a server: what it says, what its narrator makes of events, and what its modules log, in one form."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec

from specwire.runtime.log.form import LogForm
from specwire.runtime.log.lines import OURS, take_over
from specwire.runtime.log.stamp import Level, Stamp
from specwire.runtime.log.text import show

Event = TypeVar("Event", bound=msgspec.Struct)


class ServerLog:
    """Writes lines.

    Args:
        write: takes one line as it is to be written, without its end.
        stamp: makes it.
        form: of `stamp`.
    """

    def __init__(self, write: Callable[[str], None], stamp: Stamp, form: LogForm) -> None:
        self._write, self._stamp = write, stamp
        self._told: list[str] | None = None
        if form is LogForm.TEXT:
            self._handler: logging.Handler = take_over(self.line)
        else:
            self._handler = _RecordHandler(write, stamp)
            OURS.addHandler(self._handler)

    def line(self, text: str, level: Level = "info") -> None:
        """Write a line of its own."""
        self._write(self._stamp.line(text, level))

    def narrated(self, text: str) -> None:
        """Take a line of a narrator, within `tell`."""
        assert self._told is not None, "a narrator is only called by tell"
        self._told.append(text)

    def tell(
        self, event: Event, narrate: Callable[[Event], None], level: Level = "info", *, with_data: bool = True
    ) -> None:
        """Write the lines that `narrate` makes of an event, which it gives to `narrated`.

        The last one tells of the event; those before it say what was left out, or tell of events before.

        Args:
            with_data: the last line tells of this event alone.
        """
        told: list[str] = []
        self._told = told
        try:
            narrate(event)
        finally:
            self._told = None
            for text in told[:-1]:
                self._write(self._stamp.line(text, level))
            for text in told[-1:]:
                self._write(self._stamp.line(text, level, event if with_data else None))

    def close(self) -> None:
        """Leave our loggers as they were."""
        OURS.removeHandler(self._handler)


class _RecordHandler(logging.Handler):
    """Writes each record of our loggers as one object, a traceback in it."""

    def __init__(self, write: Callable[[str], None], stamp: Stamp) -> None:
        super().__init__(logging.WARNING)
        self._write, self._stamp = write, stamp

    def emit(self, record: logging.LogRecord) -> None:
        """Write what was logged."""
        trace = ""
        if record.exc_info:
            trace = (self.formatter or logging.Formatter()).formatException(record.exc_info)
        self._write(self._stamp.record(record, show(record.getMessage()), trace))
