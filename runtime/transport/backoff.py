"""Delays that double with each failure, and begin small again after a while without one."""

from __future__ import annotations


class Backoff:
    """When to try again; all times in seconds.

    Args:
        first_s: the first delay.
        longest_s: the delay does not grow beyond this.
        calm_s: after so long without a failure the next delay is the first again.
    """

    def __init__(self, *, first_s: float, longest_s: float, calm_s: float) -> None:
        self._first_s, self._longest_s, self._calm_s = first_s, longest_s, calm_s
        self._delay_s = first_s
        self._calm_from = 0.0

    def next_try(self, now: float) -> float:
        """Return the time of the next try after a failure at `now`."""
        if now - self._calm_from >= self._calm_s:
            self._delay_s = self._first_s
        at = now + self._delay_s
        self._delay_s = min(self._delay_s * 2, self._longest_s)
        self._calm_from = at
        return at
