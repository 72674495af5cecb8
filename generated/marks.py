# Written by specwire from generator/support/marks.py. Do not edit; change that file and run `make generate`.
"""Which octets of a message are which field: for dumps that people read.

The frames are walked as the slow path of decoding walks them, and what it looks at for a field is noted as the
field's. So a message that is faulty is marked up to its fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import msgspec
from specwire.generated.errors import DecodeError
from specwire.generated.layout import Constant, Field, Keyword, ProtocolLayout
from specwire.generated.octets import as_frames
from specwire.generated.place import Place
from specwire.generated.selection import find_message
from specwire.generated.walk import Walk


class Mark(msgspec.Struct, frozen=True):
    """A run of octets in frame `frame`, numbered from 0, that are one field with its length.

    `field` is the path as errors name it; empty for octets that were not looked at.
    """

    frame: int
    offset: int
    octets: int
    field: str


def mark_fields(
    layout: ProtocolLayout, frames: Sequence[bytes], sender: str | None = None
) -> tuple[list[Mark], DecodeError | None]:
    """Return the marks of all octets in wire order, and the fault where there is one; `sender` is who sent the frames."""
    octets = as_frames(frames)
    painted = [[""] * len(frame) for frame in octets]
    fault = None
    try:
        walk = Walk(layout, find_message(layout, octets, sender), octets, False)
        walk.place = _Painting(layout, walk.place.message, octets, False, painted=painted)
        walk.message()
    except DecodeError as error:
        fault = error
    return list(_runs(painted)), fault


@dataclass(slots=True)
class _Painting(Place):
    """A place that notes what is looked at; what is looked at last counts, because it is the innermost."""

    painted: list[list[str]] = field(default_factory=list)

    def open(self, field: Field | None, path: str) -> None:
        Place.open(self, field, path)
        # A word that fills its frame is compared as a whole, and not taken.
        match field:
            case Field(type=Keyword()):
                self._paint(0, self.end)
            case Field(type=Constant(octets=octets)):
                self._paint(0, len(octets))

    def take(self, at: int, octets: int) -> bytes:
        self._paint(at, octets)
        return Place.take(self, at, octets)

    def peek(self, at: int, octets: int) -> bytes:
        self._paint(at, octets)
        return Place.peek(self, at, octets)

    def _paint(self, at: int, octets: int) -> None:
        """Note octets, as far as the frame has them: a length may say more."""
        octets = min(octets, self.end - at)
        self.painted[self.index][at : at + octets] = [self.path] * octets


def _runs(painted: list[list[str]]) -> Iterator[Mark]:
    for number, paths in enumerate(painted):
        offset = 0
        for path, run in groupby(paths):
            octets = sum(1 for _ in run)
            yield Mark(number, offset, octets, path)
            offset += octets
