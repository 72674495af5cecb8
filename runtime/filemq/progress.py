"""How far the files under way are, and which of them have been so long under way that somebody should be told.

A service looks at its engine once every `LOOK_S`. What it finds at two looks in a row takes longer than that, and
is told; a file that comes and goes between two looks costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from specwire.runtime.filemq.events import Progress

LOOK_S = 1.0


class UnderWay(msgspec.Struct, frozen=True):
    """A file on its way: `octets` of its `size` (None where that is not known) have been sent, or have come."""

    path: str
    octets: int
    size: int | None
    peer: str = ""
    octets_per_s: float = 0.0


class ProgressLooks:
    """Compares each look with the one before."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], tuple[int, float]] = {}
        self._rates: dict[tuple[str, str], float] = {}

    def look(self, under_way: Iterable[UnderWay], now: float) -> list[Progress]:
        """Return what is to be told of the files that are under way now."""
        seen: dict[tuple[str, str], tuple[int, float]] = {}
        rates: dict[tuple[str, str], float] = {}
        events: list[Progress] = []
        for file in under_way:
            key = (file.peer, file.path)
            seen[key] = (file.octets, now)
            octets, at = self._seen.get(key, (file.octets, now))
            if file.octets > octets and now > at:
                rates[key] = (file.octets - octets) / (now - at)
                events.append(Progress(file.path, file.octets, file.size, rates[key], file.peer))
        self._seen, self._rates = seen, rates
        return events

    def rated(self, file: UnderWay) -> UnderWay:
        """Return `file` with the rate of the last look, 0 where nothing moved or there was none."""
        rate = self._rates.get((file.peer, file.path), 0.0)
        return msgspec.structs.replace(file, octets_per_s=rate)
