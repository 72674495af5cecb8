"""When a client opens a connection again, and which of its losses are told.

The delay doubles with each loss (`Backoff`). While there is no answer at all, only the tries 1, 2, 4, 8... are told
of, so that a server that is away for a night does not fill a log. After RTFM a fresh connection is opened once, and
once more only when that one was of use (FILEMQ v2, "The RTFM Command": the client must not repeat itself).
"""

from __future__ import annotations

from specwire.runtime.transport.backoff import Backoff

LONGEST_DELAY_S = 5.0


class Reconnecting:
    """The losses of one client's connections; times in seconds.

    Args:
        first_s: the first delay.
        calm_s: after so long without a loss the next delay is the first again.

    Attributes:
        at: when to open the next connection.
    """

    def __init__(self, *, first_s: float, calm_s: float) -> None:
        self.at = 0.0
        self._backoff = Backoff(first_s=first_s, longest_s=LONGEST_DELAY_S, calm_s=calm_s)
        self._rtfm_spent = False
        self._tries = 0

    def was_of_use(self) -> None:
        """The server accepted a command of this connection."""
        self._rtfm_spent = False

    def may_follow_rtfm(self) -> bool:
        """Tell whether a fresh connection may follow the RTFM that has come."""
        spent, self._rtfm_spent = self._rtfm_spent, True
        return not spent

    def lose(self, reason: str, now: float, *, answered: bool) -> str | None:
        """A connection is lost: set `at`, and return what to tell of it, None for nothing.

        Args:
            answered: the server had answered OHAI.
        """
        self._tries = 1 if answered else self._tries + 1
        self.at = self._backoff.next_try(now)
        if self._tries & (self._tries - 1):
            return None
        return f"{reason}, try {self._tries}" if self._tries > 1 else reason
