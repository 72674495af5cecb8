"""What our modules log, as lines of a peer's own log: with its time, and nothing in them that forges another."""

from __future__ import annotations

import logging
from collections.abc import Callable

from specwire.runtime.log.text import show

OURS = logging.getLogger("specwire")


class LineHandler(logging.Handler):
    """Writes each record of our loggers as a line, a traceback as a line for each of its own.

    Args:
        write: takes one line.
    """

    def __init__(self, write: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._write_line = write

    def emit(self, record: logging.LogRecord) -> None:
        """Write what was logged."""
        self._write_line(show(record.getMessage()))
        if record.exc_info:
            for line in (self.formatter or logging.Formatter()).formatException(record.exc_info).splitlines():
                self._write_line(show(line))


def take_over(write: Callable[[str], None]) -> LineHandler:
    """Have our loggers write to `write`; ended by ``OURS.removeHandler``."""
    handler = LineHandler(write)
    OURS.addHandler(handler)
    return handler
