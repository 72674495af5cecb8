"""Which segments of a folder a stream gives next.

Answers are worked out by carrying state from one segment of a tap to the next, so a tap's segments are given
in the order of their numbers. A capture that is copied from another machine does not always grow in that
order, and a file that is copied in place stands there before it is whole. So a segment is held back

- while an earlier one of its tap is missing, for `gap_s` after it appeared itself: then it is given, and the
  earlier one is late should it ever come;
- while it is not whole (Parquet keeps its index at the end), for `settle_s` after it was last changed: then it
  is given, and who reads it sets it aside as damaged. Should it become whole after that, it is given again.

Nothing is ever passed over for its age. Late segments are given when they come.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.names import find_replaced, is_visible
from specwire.runtime.spark.live.position import Position, parse_name

MAGIC = b"PAR1"
"""How a whole Parquet file ends, after the length of its footer."""


class Arrival(msgspec.Struct, frozen=True):
    """A file of the folder that was not given yet; `changed_s` is when it came or changed here, in seconds since 1970."""

    name: str
    changed_s: float
    octets: int
    whole: bool


class Patience(msgspec.Struct, frozen=True):
    """How long segments are held back, and how much is given at once.

    Attributes:
        gap_s: time to wait for an earlier segment of a tap, in seconds.
        settle_s: time in which a file that is not whole may still become so, in seconds.
        segments: files given at once, at most.
        octets: size of the files given at once, at most, but for one file that is larger by itself.
    """

    gap_s: float = 10.0
    settle_s: float = 5.0
    segments: int = 256
    octets: int = 256 << 20


def list_names(folder: Path) -> list[str]:
    """Return the names of all segments in a folder, sorted; CaptureError where it cannot be read.

    Those that a compacted segment stands for are passed over.
    """
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if is_visible(entry.name) and entry.is_file())
    except OSError as error:
        raise CaptureError(f"{folder}: the capture cannot be read: {error.strerror}") from error
    replaced = find_replaced(names)
    return [name for name in names if name not in replaced]


def look_at(folder: Path, names: Iterable[str]) -> list[Arrival]:
    """Return what is known of files of a folder, but for those that have gone in the meantime."""
    return [arrival for name in names if (arrival := _look_at(folder / name)) is not None]


def _look_at(path: Path) -> Arrival | None:
    """What is known of a file without reading it; None where it has gone in the meantime."""
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            file.seek(-min(8, found.st_size), os.SEEK_END)
            tail = file.read()
    except FileNotFoundError:
        return None
    except OSError:
        return Arrival(path.name, 0.0, 0, whole=True)  # who reads it says what is wrong
    footer = int.from_bytes(tail[:4], "little")
    whole = len(tail) == 8 and tail[4:] == MAGIC and footer + 12 <= found.st_size
    return Arrival(path.name, found.st_ctime, found.st_size, whole)


def come_whole(arrivals: Iterable[Arrival], given: Position) -> list[Arrival]:
    """Return, of files that were not whole when they were given, those that have been changed since and are whole."""
    return [found for found in arrivals if found.whole and given.unwhole[found.name] != found.changed_s]


def note_unwhole(arrivals: Iterable[Arrival], names: Collection[str], given: Position) -> dict[str, float]:
    """Return what `Position.add` is told of names that are given now: of which it will be seen whether they change."""
    return {
        found.name: found.changed_s
        for found in arrivals
        if found.name in names and (not found.whole or found.name in given.unwhole)
    }


def choose(arrivals: Sequence[Arrival], given: Position, patience: Patience, now_s: float) -> list[str]:
    """Return the names to give now, each tap's in order; `now_s` is in seconds since 1970."""
    chosen: list[str] = []
    octets = 0
    for arrival in _by_age(list(ready(arrivals, given, patience, now_s))):
        if len(chosen) == patience.segments or (chosen and octets + arrival.octets > patience.octets):
            break
        chosen.append(arrival.name)
        octets += arrival.octets
    return chosen


def ready(
    arrivals: Sequence[Arrival], given: Position, patience: Patience, now_s: float
) -> Iterator[Arrival]:
    """Yield the files that are not held back, each tap's in order."""
    taps: dict[str, list[tuple[int, Arrival]]] = {}
    for arrival in arrivals:
        named = parse_name(arrival.name)
        if named is not None:
            taps.setdefault(named[0], []).append((named[1], arrival))
        elif not _is_unsettled(arrival, patience, now_s):
            yield arrival
    for tap, numbered in taps.items():
        last = given.last(tap)
        for number, arrival in sorted(numbered, key=lambda item: item[0]):
            missing = number > last + 1 and now_s - arrival.changed_s < patience.gap_s
            if missing or _is_unsettled(arrival, patience, now_s):
                break
            last = max(last, number)
            yield arrival


def _is_unsettled(arrival: Arrival, patience: Patience, now_s: float) -> bool:
    return not arrival.whole and now_s - arrival.changed_s < patience.settle_s


def _by_age(arrivals: Sequence[Arrival]) -> list[Arrival]:
    """The oldest first, so that no tap waits for another; a tap's segments stay in their order."""
    reached: dict[str, float] = {}
    aged: list[tuple[float, int, Arrival]] = []
    for at, arrival in enumerate(arrivals):
        named = parse_name(arrival.name)
        tap = named[0] if named else arrival.name
        reached[tap] = max(reached.get(tap, 0.0), arrival.changed_s)
        aged.append((reached[tap], at, arrival))
    return [arrival for _, _, arrival in sorted(aged, key=lambda item: item[:2])]
