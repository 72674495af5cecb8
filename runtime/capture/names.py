"""What the files of a capture are called, and what a name says.

A tap numbers its segments from 0: ``TAP-000042.parquet``. A compacted segment holds what several in a row held and
says so: ``TAP-000042_000099.parquet`` stands for the segments 42 to 99 of that tap, all of them. Where it is, readers pass
over those, so that there is no moment at which a message is in the folder twice, or not at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

SUFFIX = ".parquet"

_NUMBERED = re.compile(rf"(.+)-(\d{{6,}})(?:_(\d{{6,}}))?{re.escape(SUFFIX)}", re.ASCII)
_MADE = re.compile(r".+-\d+-[0-9a-f]{12,}")


class SegmentName(NamedTuple):
    """The tap, and the numbers of the first and the last segment that a file holds."""

    tap: str
    first: int
    last: int
    compacted: bool

    @property
    def is_a_taps(self) -> bool:
        """Whether the tap is called as taps are (`specwire.runtime.capture.identity`), so that the file is surely ours."""
        return _MADE.fullmatch(self.tap) is not None


def segment_name(tap: str, number: int) -> str:
    """Return the file name of a tap's segment; sorts in the order of writing."""
    return f"{tap}-{number:06d}{SUFFIX}"


def compacted_name(tap: str, first: int, last: int) -> str:
    """Return the file name of what stands for the segments from `first` to `last`."""
    return f"{tap}-{first:06d}_{last:06d}{SUFFIX}"


def read_name(name: str) -> SegmentName | None:
    """Return what a file name says; None where it is not as `segment_name` or `compacted_name` write it."""
    found = _NUMBERED.fullmatch(name)
    if found is None:
        return None
    tap, first = found[1], int(found[2])
    last = first if found[3] is None else int(found[3])
    again = segment_name(tap, first) if found[3] is None else compacted_name(tap, first, last)
    return SegmentName(tap, first, last, found[3] is not None) if again == name and first <= last else None


def is_compacted(name: str) -> bool:
    """Whether a file of this name stands for others."""
    read = read_name(name)
    return read is not None and read.compacted


def is_visible(name: str) -> bool:
    """Whether a file name is that of a segment that is finished; Spark and Arrow pass over the others as well."""
    return name.endswith(SUFFIX) and name[0] not in "._"


def find_replaced(names: Iterable[str]) -> frozenset[str]:
    """Return those of the names whose segments are in a compacted one among them."""
    plain: list[tuple[str, SegmentName]] = []
    spans: dict[str, list[tuple[int, int]]] = {}
    for name in names:
        read = read_name(name)
        if read is None:
            continue
        plain.append((name, read))
        if read.compacted:
            spans.setdefault(read.tap, []).append((read.first, read.last))
    return frozenset(
        name
        for name, read in plain
        for first, last in spans.get(read.tap, ())
        if first <= read.first and read.last <= last and (read.first, read.last) != (first, last)
    )
