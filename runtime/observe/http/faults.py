"""What the web server logs: its faults at a bounded rate, and nothing of what somebody asks wrongly."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from aiohttp.http_exceptions import HttpProcessingError

FAULTS = 3
PER_S = 60.0


class FaultsOnly(logging.Filter):
    """Lets `FAULTS` records through in each `PER_S` seconds.

    A request that is no HTTP is answered with 400, and is no fault of ours: whoever sends such by the thousand must not fill a disk.

    Args:
        clock: seconds that do not go backwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock, self._since, self._told = clock, clock(), 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is logged."""
        error = record.exc_info[1] if record.exc_info else None
        if record.levelno < logging.ERROR or isinstance(error, HttpProcessingError):
            return False
        now = self._clock()
        if now - self._since >= PER_S:
            self._since, self._told = now, 0
        self._told += 1
        return self._told <= FAULTS


def make_logger() -> logging.Logger:
    """Return the logger that a web server is given: one of ours, so that faults are lines of the server's log."""
    logger = logging.getLogger(__name__)
    logger.filters = [FaultsOnly()]
    return logger
