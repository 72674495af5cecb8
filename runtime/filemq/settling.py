"""How long to wait before a client's file is read again that could not be: ever longer, while nothing changes.

A file that is being written settles soon. A folder that is missing, or a process without descriptors, may take hours.
"""

from __future__ import annotations

from specwire.runtime.transport.backoff import Backoff

SETTLE_S = 0.05
LONGEST_S = 1.0
CALM_S = 5.0


class Settling:
    """The waits of all clients, each of which has one file under way."""

    def __init__(self) -> None:
        self._waits: dict[bytes, Backoff] = {}

    def delay_s(self, peer: bytes, now: float) -> float:
        """Return how long to wait now that the file is as before, and could not be read."""
        wait = self._waits.setdefault(peer, Backoff(first_s=SETTLE_S, longest_s=LONGEST_S, calm_s=CALM_S))
        return wait.next_try(now) - now

    def forget(self, peer: bytes) -> None:
        """The client is gone."""
        self._waits.pop(peer, None)
