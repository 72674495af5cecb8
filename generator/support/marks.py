"""Assignment of a message's octets to its fields, for readable dumps.

The slow path of decoding reads the frames, and each octet it reads is recorded for the current field. So an invalid
message is marked up to its fault.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec

from specwire.generated.errors import DecodeError
from specwire.generated.layout import ProtocolLayout
from specwire.generated.named_plan import NamedMessage, NamedPlan, named_plan
from specwire.generated.octets import as_frames
from specwire.generated.reader import Reader
from specwire.generated.refusal import check_message
from specwire.generated.selection import find_message


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
        plan = named_plan(layout)
        check_message(_Painter(plan, find_message(plan, octets, sender), octets, painted))
    except DecodeError as error:
        fault = error
    return list(_runs(painted)), fault


class _Painter(Reader):
    """Reader that records every read. The last read of an octet wins, as it is the innermost field."""

    def __init__(
        self, plan: NamedPlan, message: NamedMessage, frames: list[bytes], painted: list[list[str]]
    ) -> None:
        super().__init__(plan, message, frames, strict=False)
        self.painted = painted

    def take(self, octets: int) -> bytes:
        self._paint(octets)
        return super().take(octets)

    def peek(self, octets: int) -> bytes:
        self._paint(octets)
        return super().peek(octets)

    def _paint(self, octets: int) -> None:
        """Record octets, as far as the frame has them: a length may exceed it."""
        octets = min(octets, self.left)
        self.painted[self.index][self.at : self.at + octets] = [self.path] * octets


def _runs(painted: list[list[str]]) -> Iterator[Mark]:
    for number, paths in enumerate(painted):
        offset = 0
        for path, run in groupby(paths):
            octets = sum(1 for _ in run)
            yield Mark(number, offset, octets, path)
            offset += octets
