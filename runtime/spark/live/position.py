"""How far a stream has read a capture folder: which segments were given, as little as says so.

A tap numbers its segments from 0 (`specwire.runtime.capture.segments.segment_name`), and a stream gives them in
that order, so that a tap's position is one stretch of numbers, with holes only where segments were lost or come
late. Files of other names (a capture that another tool rewrote) are kept by name. Both are forgotten when the
files have left the folder, so a position is as small as the capture is.

A file that was not whole when it was given may become so later. Such files are kept by name as well, with the time at
which each had been changed: one that was changed since, and is whole, is given again.

A position is a stream's offset: plain JSON, and the segments between two positions are those that the second
has and the first has not.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import msgspec

from specwire.runtime.capture.names import SUFFIX, segment_name

Stretch = tuple[int, int]
"""Numbers from the first to the last, both among them."""

NAME = re.compile(rf"(.+)-(\d{{6,}}){re.escape(SUFFIX)}")


def parse_name(name: str) -> tuple[str, int] | None:
    """Return the tap and the number in a segment's name; None where the name is not a tap's."""
    found = NAME.fullmatch(name)
    if found is None:
        return None
    tap, number = found.group(1), int(found.group(2))
    return (tap, number) if segment_name(tap, number) == name else None


class Position(msgspec.Struct, frozen=True):
    """Segments that were given.

    Attributes:
        taps: for each tap the numbers of its segments, as stretches that ascend and do not touch.
        others: names of files that no tap wrote, sorted.
        unwhole: for files that were not whole when they were first given, when each had been changed as it was last
            given, in seconds since 1970.
    """

    taps: dict[str, tuple[Stretch, ...]] = {}
    others: tuple[str, ...] = ()
    unwhole: dict[str, float] = {}

    @classmethod
    def from_json(cls, offset: object) -> Self:
        """Return the position that `to_json` wrote; msgspec.ValidationError for anything else."""
        return msgspec.convert(offset, cls)

    def to_json(self) -> dict[str, object]:
        """Return the position as JSON's types."""
        known: dict[str, object] = {
            "taps": {tap: [list(stretch) for stretch in found] for tap, found in self.taps.items()},
            "others": list(self.others),
        }
        return known | ({"unwhole": dict(self.unwhole)} if self.unwhole else {})

    def last(self, tap: str) -> int:
        """Return the highest number given of a tap, -1 for none."""
        stretches = self.taps.get(tap)
        return stretches[-1][1] if stretches else -1

    def has(self, name: str) -> bool:
        """Return whether the file of this name was given."""
        found = parse_name(name)
        if found is None:
            at = bisect_left(self.others, name)
            return self.others[at : at + 1] == (name,)
        tap, number = found
        return any(first <= number <= last for first, last in self.taps.get(tap, ()))

    def add(self, names: Iterable[str], unwhole: Mapping[str, float] | None = None) -> Position:
        """Return the position with these names given as well; `unwhole` are those of them for the field of that name."""
        numbers: dict[str, list[int]] = {}
        others = set(self.others)
        for name in names:
            found = parse_name(name)
            if found is None:
                others.add(name)
            else:
                numbers.setdefault(found[0], []).append(found[1])
        added = {
            tap: _join([*self.taps.get(tap, ()), *((one, one) for one in more)])
            for tap, more in numbers.items()
        }
        return Position({**self.taps, **added}, tuple(sorted(others)), {**self.unwhole, **(unwhole or {})})

    def forget_missing(self, present: Iterable[str]) -> Position:
        """Return the position without taps and names that have no file among `present` any more."""
        names = set(present)
        taps = {found[0] for found in map(parse_name, names) if found}
        return Position(
            {tap: stretches for tap, stretches in self.taps.items() if tap in taps},
            tuple(name for name in self.others if name in names),
            {name: changed_s for name, changed_s in self.unwhole.items() if name in names},
        )

    def names_since(self, earlier: Position) -> list[str]:
        """Return the names that were given since an earlier position: those given again, then each tap's in order."""
        names = sorted(
            name
            for name, changed_s in self.unwhole.items()
            if earlier.has(name) and earlier.unwhole.get(name) != changed_s
        )
        for tap, stretches in self.taps.items():
            for first, last in _without(stretches, earlier.taps.get(tap, ())):
                names += (segment_name(tap, number) for number in range(first, last + 1))
        known = set(earlier.others)
        return [*names, *(name for name in self.others if name not in known)]


def _join(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    joined: list[Stretch] = []
    for first, last in sorted(stretches):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def _without(stretches: Sequence[Stretch], known: Sequence[Stretch]) -> list[Stretch]:
    """The numbers of `stretches` that are not in `known`."""
    left: list[Stretch] = []
    for first, last in stretches:
        at = first
        for known_first, known_last in known:
            if known_last < at or known_first > last:
                continue
            if known_first > at:
                left.append((at, known_first - 1))
            at = known_last + 1
        if at <= last:
            left.append((at, last))
    return left
