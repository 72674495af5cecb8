"""How far a run has come, told to whoever listens."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Told before each step: what is being done, how many steps are done, how many there are."""


class Steps:
    """Counts the steps of a run, whose number is known when it begins."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def begin(self, step: str) -> None:
        """Tell that a step begins."""
        if self._progress:
            self._progress(step, self._done, self._total)
        self._done += 1
