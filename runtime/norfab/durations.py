"""How long jobs take, in few numbers: how many of them took at most so long, for a row of limits."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate

import msgspec

LIMITS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0, 7200.0)

MAX_NAMES = 200
"""Services or tasks that are told apart; the others are counted under no name."""


class Durations(msgspec.Struct):
    """Durations under one name.

    Attributes:
        counts: how many were above the limit before and not above this one; the last ones are above all.
        total_s: all of them together.
    """

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(LIMITS_S) + 1))
    total_s: float = 0.0

    def note(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(LIMITS_S, seconds)] += 1
        self.total_s += seconds

    def at_most(self) -> list[int]:
        """Return how many took at most each limit, and how many there are in all."""
        return [*accumulate(self.counts)]


def note_duration(known: dict[str, Durations], name: str, seconds: float) -> None:
    """Count a duration under a name, which may come from the wire."""
    durations = known.get(name)
    if durations is None:
        key = name if len(known) < MAX_NAMES else ""
        durations = known.setdefault(key, Durations())
    durations.note(max(0.0, seconds))


def copy_durations(known: dict[str, Durations]) -> dict[str, Durations]:
    """Return the durations of this moment."""
    return {name: Durations([*one.counts], one.total_s) for name, one in known.items()}
