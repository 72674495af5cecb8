"""Delays that double with each failure, and the policy of a client that connects again."""

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


class ReconnectPolicy:
    """When to connect again, and which failures to log.

    While nothing answers, only the failures 1, 2, 4, 8 and so on are logged, so that a server that is
    away for a night does not fill a log.
    """

    def __init__(self, *, first_s: float = 0.1, longest_s: float = 5.0, calm_s: float = 30.0) -> None:
        self._backoff = Backoff(first_s=first_s, longest_s=longest_s, calm_s=calm_s)
        self._tries = 0

    def fail(self, reason: str, now: float, *, answered: bool) -> tuple[float, str]:
        """Return the time of the next try, and what to log: "" for nothing.

        Args:
            answered: the other side had answered on the connection that has failed.
        """
        self._tries = 1 if answered else self._tries + 1
        at = self._backoff.next_try(now)
        if self._tries & (self._tries - 1):
            return at, ""
        return at, f"{reason}, try {self._tries}" if self._tries > 1 else reason
