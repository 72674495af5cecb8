# Written by specwire from generator/support/marks.py. Do not edit; change that file and run `make generate`.
"""Assignment of a message's octets to its fields, for readable dumps.

The slow path of decoding walks over the frames, and each octet it reads is recorded for the current
field. So an invalid message is marked up to its fault.
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
    """Run of octets in frame `frame`, counted from 0, that belong to one field, its length included.

    `field` is the path as in errors; empty for octets that were not read.
    """

    frame: int
    offset: int
    octets: int
    field: str


def mark_fields(
    layout: ProtocolLayout, frames: Sequence[bytes], sender: str | None = None
) -> tuple[list[Mark], DecodeError | None]:
    """Return the marks of all octets in wire order, and the fault if there is one.

    `sender` is the role that sent the frames.
    """
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
    """Place that records every read. The last read of an octet wins, as it is the innermost field."""

    painted: list[list[str]] = field(default_factory=list)

    def open(self, field: Field | None, path: str) -> None:
        Place.open(self, field, path)
        # A word that fills its frame is compared as a whole, without a call of `take`.
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
        """Record octets, as far as the frame has them: a length may exceed it."""
        octets = min(octets, self.end - at)
        self.painted[self.index][at : at + octets] = [self.path] * octets


def _runs(painted: list[list[str]]) -> Iterator[Mark]:
    for number, paths in enumerate(painted):
        offset = 0
        for path, run in groupby(paths):
            octets = sum(1 for _ in run)
            yield Mark(number, offset, octets, path)
            offset += octets
