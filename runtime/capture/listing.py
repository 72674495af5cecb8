"""What a capture folder holds, tap by tap, as the footers of its segments say it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from specwire.runtime.capture.compact import Progress
from specwire.runtime.capture.errors import CaptureError
from specwire.runtime.capture.identity import tap_name
from specwire.runtime.capture.names import read_name
from specwire.runtime.capture.segments import Segment, Unsound, survey_segments
from specwire.runtime.capture.times import read_span


class SegmentLine(msgspec.Struct, frozen=True):
    """One file; times are microseconds since 1970, None without messages."""

    name: str
    tap: str
    protocol: str
    messages: int
    octets: int
    dropped: int
    payload: str
    compacted: bool
    first_us: int | None
    last_us: int | None


class TapLine(msgspec.Struct, frozen=True):
    """One tap.

    Attributes:
        tap: its id; empty for files that state none.
        name: the part of the id that is for people.
        segments: files.
        stands_for: segments that the tap wrote and that are in these files.
        missing: numbers between the first and the last segment that no file holds.
        dropped: messages that the tap had dropped by its last segment.
    """

    tap: str
    name: str
    protocol: str
    edition: str
    payload: str
    segments: int
    stands_for: int
    missing: int
    messages: int
    octets: int
    dropped: int
    first_us: int | None
    last_us: int | None


class Listing(msgspec.Struct, frozen=True):
    """A folder.

    Attributes:
        writing: files that are being written, or were when their writer died.
        replaced: segments that are not read any more, because a compacted one holds them.
    """

    folder: str
    taps: tuple[TapLine, ...]
    segments: tuple[SegmentLine, ...]
    bad: tuple[Unsound, ...]
    writing: int
    replaced: int

    @property
    def messages(self) -> int:
        """Messages of all taps."""
        return sum(tap.messages for tap in self.taps)

    @property
    def octets(self) -> int:
        """Octets of all segments."""
        return sum(tap.octets for tap in self.taps)


def list_capture(folder: Path, progress: Progress | None = None) -> Listing:
    """Return what a capture folder holds; CaptureError where it is missing, or holds no segment."""
    tell = partial(progress, "looking at segments") if progress else None
    survey = survey_segments(folder, tell)
    bad = list(survey.unsound)
    lines: list[tuple[Segment, SegmentLine]] = []
    for segment in survey.sound:
        try:
            with suppress(FileNotFoundError):
                lines.append((segment, _describe(segment)))
        except CaptureError as error:
            bad.append(Unsound(segment.path, str(error)))
    by_tap: dict[str, list[tuple[Segment, SegmentLine]]] = {}
    for segment, line in lines:
        by_tap.setdefault(line.tap, []).append((segment, line))
    taps = [_sum_up(tap, found) for tap, found in by_tap.items()]
    return Listing(
        folder=str(folder),
        taps=tuple(sorted(taps, key=lambda tap: (tap.first_us or 0, tap.tap))),
        segments=tuple(line for _, line in lines),
        bad=tuple(bad),
        writing=sum(1 for path in folder.glob(".*.tmp")),
        replaced=len(survey.replaced),
    )


def _describe(segment: Segment) -> SegmentLine:
    span = read_span(segment.path)
    source, name = segment.source, read_name(segment.path.name)
    return SegmentLine(
        name=segment.path.name,
        tap=source.tap if source else "",
        protocol=source.protocol if source else "",
        messages=segment.rows,
        octets=segment.path.stat().st_size,
        dropped=segment.dropped,
        payload=source.payload if source else "",
        compacted=name is not None and name.compacted,
        first_us=None if span is None else span.first_us,
        last_us=None if span is None else span.last_us,
    )


def _sum_up(tap: str, found: Sequence[tuple[Segment, SegmentLine]]) -> TapLine:
    lines = [line for _, line in found]
    source = found[-1][0].source
    spans = [
        (name.first, name.last)
        for line in lines
        if (name := read_name(line.name)) is not None and name.tap == tap
    ]
    held = _count(spans)
    return TapLine(
        tap=tap,
        name=tap_name(tap),
        protocol=source.protocol if source else "",
        edition=source.edition if source else "",
        payload=_only(line.payload for line in lines),
        segments=len(lines),
        stands_for=held + len(lines) - len(spans),
        missing=max(last for _, last in spans) + 1 - min(first for first, _ in spans) - held if spans else 0,
        messages=sum(line.messages for line in lines),
        octets=sum(line.octets for line in lines),
        dropped=max(line.dropped for line in lines),
        first_us=min((line.first_us for line in lines if line.first_us is not None), default=None),
        last_us=max((line.last_us for line in lines if line.last_us is not None), default=None),
    )


def _count(spans: Iterable[tuple[int, int]]) -> int:
    """How many numbers there are in spans that may overlap."""
    count, after = 0, 0
    for first, last in sorted(spans):
        count += max(0, last + 1 - max(first, after))
        after = max(after, last + 1)
    return count


def _only(words: Iterable[str]) -> str:
    """The words without repetition, in their order."""
    return ", ".join(dict.fromkeys(words))
