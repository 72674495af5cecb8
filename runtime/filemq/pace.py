"""When a folder is to be walked through: from time to time, and soon after notifications that may not be all.

The system's queue of notifications is bounded, and `watchfiles` does not pass on that it overflowed: what came last in
a burst may be missing. So every burst is followed by one walk when it is over. A walk through a large tree takes a
while, so it waits the longer for further notifications, and takes no more than a tenth of the time.
"""

from __future__ import annotations

QUIET_S = 0.3
PATIENCE = 10.0
MISSING_S = 1.0


class Pace:
    """The pace for one folder; all times in seconds.

    Args:
        rescan_s: the longest time between two walks.
    """

    def __init__(self, rescan_s: float) -> None:
        self._rescan_s = rescan_s
        self._walked_at = 0.0
        self._took_s = 0.0
        self._heard_at: float | None = None
        self._missing = False

    def heard(self, now: float) -> None:
        """Something was notified."""
        self._heard_at = now

    def walked(self, begun: float, ended: float, *, missing: bool) -> None:
        """The folder was walked through; `missing` where it was not there. What was heard meanwhile still counts."""
        self._walked_at, self._took_s, self._missing = ended, ended - begun, missing
        if self._heard_at is not None and self._heard_at < begun:
            self._heard_at = None

    def due(self) -> float:
        """Return when it is to be walked through next."""
        due = self._walked_at + self._rescan_s
        if self._missing:
            due = min(due, self._walked_at + MISSING_S)
        if self._heard_at is not None:
            due = min(due, self._heard_at + QUIET_S + PATIENCE * self._took_s)
        return due
