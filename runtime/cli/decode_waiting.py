"""Waiting for more of a source, which a signal ends where it does no harm: never in the middle of a line."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Waiting:
    """Lets SIGINT and SIGTERM end the reading; a second one ends the command at once."""

    def __init__(self) -> None:
        self._requested = False
        self._waits = False

    def take_signals(self) -> None:
        """From now on the signals are taken."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._request)

    def _request(self, number: int, frame: Any) -> None:
        again, self._requested = self._requested, True
        if again or self._waits:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise KeyboardInterrupt where a signal has come."""
        if self._requested:
            raise KeyboardInterrupt

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While this lasts, a signal raises KeyboardInterrupt; so does one that came before."""
        self._waits = True
        try:
            self.check()
            yield
        finally:
            self._waits = False
