"""A bounded rate for lines that an outsider can cause: a hostile peer must not fill a disk with them."""

from __future__ import annotations

from collections.abc import Callable

LINES = 20
PER_S = 10.0


class Quota:
    """Lets `LINES` through in each `PER_S` seconds, counts the rest, and tells their count with the next line.

    Args:
        write: takes one line.
        clock: seconds that do not go backwards.
        left_out: what the lines left out are called after their number, such as ``more were refused``.
    """

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float], left_out: str) -> None:
        self._write, self._clock, self._words = write, clock, left_out
        self._since = clock()
        self._told = self._left_out = 0

    def write(self, line: str) -> None:
        """Write the line, unless it is one too many."""
        now = self._clock()
        if now - self._since >= PER_S:
            if self._left_out:
                self._write(f"{self._left_out:,} {self._words} in {now - self._since:.0f} s")
            self._since, self._told, self._left_out = now, 0, 0
        self._told += 1
        if self._told <= LINES:
            self._write(line)
        else:
            self._left_out += 1
