"""Offset of a stream over a capture folder: a compact record of the segments it has read.

A tap numbers its segments from 0, and a stream reads them in that order. So a tap's position is one
range of numbers, with gaps only for segments that were lost or come late. A compacted segment
(``TAP-000042_000099.parquet``) replaces the segments with the numbers in its name. If all of these
were read, it counts as read. If only the first of them were read, it is read from the following
`seq`. Files with other names (a capture that another tool rewrote) are recorded by name. The entry
of a file is removed when the file is removed, so an offset grows only with the capture.

A file that was incomplete when it was read is recorded by name, with the time of its last change.
If it has changed since then and is complete, it is read again.

An offset is plain JSON. The segments between two offsets are those in the second but not in the
first.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import Self

import msgspec

from specwire.runtime.capture.names import read_name, segment_name

Stretch = tuple[int, int]
"""Range of numbers: the first and the last, both included."""


class Position(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Segments that a stream has read.

    Attributes:
        taps: for each tap the numbers of its segments, as ascending ranges that do not touch.
        others: names of other files and of compacted segments, sorted.
        incomplete: for files that were incomplete when they were first read, the time of their
            last change when they were last read, in seconds since 1970.
        seqs: for each tap the greatest `seq` in its segments.
    """

    taps: dict[str, tuple[Stretch, ...]] = {}
    others: tuple[str, ...] = ()
    incomplete: dict[str, float] = msgspec.field(default_factory=dict, name="unwhole")  # as 0.1 wrote
    seqs: dict[str, int] = {}

    @classmethod
    def from_json(cls, offset: object) -> Self:
        """Return the position that `to_json` returned, else raise msgspec.ValidationError."""
        return msgspec.convert(offset, cls)

    def to_json(self) -> dict[str, object]:
        """Return the position in the types of JSON."""
        found: dict[str, object] = msgspec.to_builtins(self)
        return found

    def last(self, tap: str) -> int:
        """Return the highest segment number read of a tap, -1 if there is none."""
        stretches = self.taps.get(tap)
        return stretches[-1][1] if stretches else -1

    def has(self, name: str) -> bool:
        """Return whether this file, or every segment that it replaces, was read."""
        at = bisect_left(self.others, name)
        if self.others[at : at + 1] == (name,):
            return True
        read = read_name(name)
        return read is not None and not without([(read.first, read.last)], self.taps.get(read.tap, ()))

    def seq_before(self, name: str) -> int | None:
        """Return the greatest `seq` in a compacted segment that was read from other segments.

        -1 if none was read. None if it is unknown, because the segments that were read are not the
        first ones that this one replaces.
        """
        read = read_name(name)
        if read is None or not read.compacted:
            return -1
        whole = (read.first, read.last)
        left = without([whole], self.taps.get(read.tap, ()))
        if left == [whole]:
            return -1
        return self.seqs.get(read.tap) if len(left) == 1 and left[0][1] == read.last else None

    def add(
        self,
        names: Iterable[str],
        incomplete: Mapping[str, float] | None = None,
        seqs: Mapping[str, int] | None = None,
    ) -> Position:
        """Return the position after these files.

        `incomplete` and `seqs` are the entries that the files add to these fields.
        """
        numbers: dict[str, list[Stretch]] = {}
        others = set(self.others)
        for name in names:
            read = read_name(name)
            if read is not None:
                numbers.setdefault(read.tap, []).append((read.first, read.last))
            if read is None or read.compacted:
                others.add(name)
        added = {tap: join([*self.taps.get(tap, ()), *more]) for tap, more in numbers.items()}
        greatest = {tap: max(seq, self.seqs.get(tap, -1)) for tap, seq in (seqs or {}).items()}
        return Position(
            {**self.taps, **added},
            tuple(sorted(others)),
            {**self.incomplete, **(incomplete or {})},
            {**self.seqs, **greatest},
        )

    def forget_missing(self, present: Iterable[str]) -> Position:
        """Return the position without taps and names that have no file in `present`."""
        names = set(present)
        taps = {read.tap for read in map(read_name, names) if read}
        return Position(
            {tap: stretches for tap, stretches in self.taps.items() if tap in taps},
            tuple(name for name in self.others if name in names),
            {name: changed_s for name, changed_s in self.incomplete.items() if name in names},
            {tap: seq for tap, seq in self.seqs.items() if tap in taps},
        )

    def names_since(self, earlier: Position) -> list[str]:
        """Return the names read since an earlier position.

        Files read again come first, then segments by tap, then other files.
        """
        names = sorted(
            name
            for name, changed_s in self.incomplete.items()
            if earlier.has(name) and earlier.incomplete.get(name) != changed_s
        )
        known = set(earlier.others)
        others = [name for name in self.others if name not in known]
        compacted: dict[str, list[Stretch]] = {}
        for read in map(read_name, others):
            if read is not None:
                compacted.setdefault(read.tap, []).append((read.first, read.last))
        for tap, stretches in self.taps.items():
            elsewhere = join([*earlier.taps.get(tap, ()), *compacted.get(tap, ())])
            for first, last in without(stretches, elsewhere):
                names += (segment_name(tap, number) for number in range(first, last + 1))
        return [*names, *others]


def join(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """Return the same numbers as ascending stretches that do not touch."""
    joined: list[Stretch] = []
    for first, last in sorted(stretches):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def without(stretches: Sequence[Stretch], known: Sequence[Stretch]) -> list[Stretch]:
    """Return the numbers of `stretches` that are not in `known`, both in ascending order."""
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
