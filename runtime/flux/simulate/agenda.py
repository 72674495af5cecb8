"""The virtual clock: what is to happen, by time; of things at one time, those that were planned first."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Agenda:
    """Attributes: `now`, in seconds from the beginning."""

    __slots__ = ("_entries", "_planned", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._entries: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._planned = 0

    def at(self, time: float, do: Callable[..., None], *arguments: Any) -> None:
        """Call `do` at `time`, which is not in the past."""
        self._planned += 1
        heappush(self._entries, (time, self._planned, do, arguments))

    def run(self, until: float) -> None:
        """Let everything up to `until` happen; the clock stands there afterwards."""
        entries = self._entries
        while entries and entries[0][0] <= until:
            self.now, _, do, arguments = heappop(entries)
            do(*arguments)
        self.now = until
