"""How fast running totals grow: looked at once in a while, and remembered for the last two minutes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import msgspec

from specwire.runtime.observe.view import Kind

LOOK_S = 1.0
"""How often whoever has a `Rates` looks."""

REMEMBERED = 120


class Counted(msgspec.Struct, frozen=True):
    """What a running total counts; `kind` says in what."""

    label: str
    kind: Kind = "count"


class Rate(msgspec.Struct, frozen=True):
    """How much of it there is a second: now, and at the looks before, the oldest first."""

    label: str
    kind: Kind
    per_s: float
    history: tuple[float, ...]


class Rates:
    """Rates of several totals.

    Args:
        counted: what they count, in the order of the totals given to `look`.
    """

    def __init__(self, counted: Sequence[Counted]) -> None:
        self._counted = tuple(counted)
        self._history: deque[tuple[float, ...]] = deque(maxlen=REMEMBERED)
        self._totals: tuple[float, ...] | None = None
        self._at = 0.0

    def look(self, totals: Sequence[float], now: float) -> None:
        """Take the totals of this moment, in seconds that do not go backwards.

        A total that is lower than before has begun anew, and counts from 0.
        """
        before, passed_s = self._totals, now - self._at
        if before is not None:
            if passed_s <= 0:
                return
            grown = (new - old if new >= old else new for new, old in zip(totals, before, strict=True))
            self._history.append(tuple(amount / passed_s for amount in grown))
        self._totals, self._at = tuple(totals), now

    def describe(self) -> tuple[Rate, ...]:
        """Return the rates as they were last seen; 0 before the second look."""
        return tuple(
            Rate(one.label, one.kind, history[-1] if history else 0.0, history)
            for place, one in enumerate(self._counted)
            for history in (tuple(round(rates[place], 3) for rates in self._history),)
        )
