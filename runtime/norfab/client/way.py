"""The client's way to a broker: which endpoint of the list, when it is tried again, when the next one is.

Every attempt is a connection with a number of its own. A broker that cannot be reached is tried again after a moment, then
ever more seldom; where there are several, the next is tried when one could not be reached for a while.
"""

from __future__ import annotations

from collections.abc import Sequence

from specwire.runtime.norfab.client.limits import ClientSettings
from specwire.runtime.transport.backoff import Backoff


class Way:
    """Which connection there is.

    Attributes:
        number: of the connection, or of the last one; 0 before the first.
        up: whether there is a connection (it may not have come about yet).
        heard_at: when the broker last spoke on it, 0 where it has not.
        made_at: when the connection was made.
        spoken: whether this client has sent something on it.
        loss: why the last one was lost.
    """

    __slots__ = (
        "_backoff",
        "_endpoints",
        "_failing_since",
        "_place",
        "_retry_at",
        "_settings",
        "heard_at",
        "loss",
        "made_at",
        "number",
        "spoken",
        "up",
    )

    def __init__(self, endpoints: Sequence[str], settings: ClientSettings) -> None:
        if not endpoints:
            raise ValueError("a client needs the endpoint of a broker")
        self._endpoints, self._settings = tuple(endpoints), settings
        self._place = self.number = 0
        self.up = self.spoken = False
        self.heard_at = self.made_at = 0.0
        self.loss = ""
        self._failing_since: float | None = None
        self._retry_at: float | None = None
        self._backoff = self._fresh()

    def _fresh(self) -> Backoff:
        settings = self._settings
        longest = settings.longest_reconnect_s
        return Backoff(first_s=settings.first_reconnect_s, longest_s=longest, calm_s=5 * longest)

    @property
    def endpoint(self) -> str:
        """The broker that is connected, or is tried next."""
        return self._endpoints[self._place]

    def make(self, now: float) -> str:
        """Begin a connection; return whereto."""
        self.number += 1
        self.up, self.heard_at, self.made_at, self._retry_at = True, 0.0, now, None
        self.spoken = False
        return self.endpoint

    def heard(self, now: float) -> bool:
        """The broker has spoken; return whether it is the first time on this connection."""
        first = not self.heard_at
        self.heard_at, self._failing_since = now, None
        return first

    def lose(self, reason: str, now: float) -> None:
        """The connection is gone: plan the next one."""
        self.up, self.loss = False, reason
        if self._failing_since is None:
            self._failing_since = now
        elif now - self._failing_since >= self._settings.move_on_s and len(self._endpoints) > 1:
            self._place = (self._place + 1) % len(self._endpoints)
            self._failing_since, self._backoff = None, self._fresh()
        self._retry_at = self._backoff.next_try(now)

    def is_due(self, now: float) -> bool:
        """Whether the next connection is to be made."""
        return not self.up and self._retry_at is not None and now >= self._retry_at

    def close(self) -> None:
        """Make no further connection."""
        self.up, self._retry_at = False, None
