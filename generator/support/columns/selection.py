"""Message type of each row, for many rows together.

The counterpart of `specwire.generated.selection`, `patterns` and `shapes` for whole columns.
Messages are told apart by tags at the places of the selectors, by patterns of the first frame, or
by the shape of the whole message. A row that matches no message has the number -1.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from specwire.generated.columns.frames import Frames, Mask, Positions
from specwire.generated.columns.runs import differs, gather
from specwire.generated.layout import ProtocolLayout, Shape
from specwire.generated.selection import pattern_octets

Numbers = NDArray[np.int16]
"""Number of each row's message, -1 for none."""

Senders = NDArray[np.str_]
"""Letter of each row's sender, empty if unknown."""


class Choice(Protocol):
    """How messages are told apart."""

    def choose(self, frames: Frames, senders: Senders | None) -> Numbers:
        """Return the number of each row's message."""
        ...


def make_choice(layout: ProtocolLayout) -> Choice:
    """Return the way in which a protocol's messages are told apart."""
    if layout.shapes:
        return Shapes(layout)
    if any(message.patterns for message in layout.messages):
        return Patterns(layout)
    return Tags(layout)


def letters(senders: pa.Array[Any] | pa.ChunkedArray[Any] | None) -> Senders | None:
    """Return the letter of the sender of each message."""
    if senders is None:
        return None
    known = cast(Any, senders.cast(pa.string())).fill_null("")
    return np.asarray(
        known.to_numpy(zero_copy_only=False) if isinstance(known, pa.Array) else known.to_numpy()
    ).astype(str)


class Tags:
    """Selection by octets at certain places, one for each selector."""

    def __init__(self, layout: ProtocolLayout) -> None:
        self.selectors = layout.selectors
        self.tags = [(tag, number) for number, message in enumerate(layout.messages) for tag in message.tags]

    def choose(self, frames: Frames, senders: Senders | None) -> Numbers:
        """See `Choice`."""
        chosen = np.full(len(frames), -1, np.int16)
        heads = [_frame(frames, index) for index, _ in self.selectors]
        if not len(frames) or len(frames.bounds) < 2:
            return chosen
        found: dict[tuple[int, bytes], Mask] = {}
        for tag, number in self._likely(frames, heads):
            for place, piece in enumerate(tag):
                if (place, piece) not in found:
                    found[place, piece] = self._fits(frames, heads[place], place, piece)
            fits = found[0, tag[0]]
            for place, piece in enumerate(tag[1:], 1):
                fits = fits & found[place, piece]
            if fits.all():
                return np.full(len(frames), number, np.int16)
            chosen[fits & (chosen < 0)] = number
        return chosen

    def _likely(self, frames: Frames, heads: list[tuple[Positions, Mask | None]]) -> Any:
        """Return all tags, the first row's tag first: often all rows have it."""
        first = []
        for (_, octets), (numbers, _) in zip(self.selectors, heads, strict=True):
            begin, end = frames.bounds[numbers[0]], frames.bounds[numbers[0] + 1]
            first.append(frames.octets[begin:end][:octets].tobytes())
        return sorted(self.tags, key=lambda row: row[0] != tuple(first))

    def _fits(self, frames: Frames, head: tuple[Positions, Mask | None], place: int, piece: bytes) -> Mask:
        numbers, there = head
        begin, end, step = frames.extents(numbers, ascending=there is None)
        size = end - begin
        fits = size == len(piece) if self.selectors[place][1] is None else size >= len(piece)
        if there is not None:
            fits &= there
        if not fits.all():
            begin, step = np.where(fits, begin, 0), 0
        return fits & ~differs(gather(frames.octets, begin, len(piece), step), 0, piece)


def _frame(frames: Frames, index: int) -> tuple[Positions, Mask | None]:
    """Return the number of frame `index` in each row and the mask of rows that have it (None: all).

    Rows without that frame have number 0.
    """
    first, behind = frames.rows[:-1], frames.rows[1:]
    numbers = first + index if index >= 0 else behind + index
    there = numbers < behind if index >= 0 else numbers >= first
    return (numbers, None) if there.all() else (np.where(there, numbers, 0), there)


class Patterns:
    """Selection by how the first frame begins; the longest matching pattern wins."""

    def __init__(self, layout: ProtocolLayout) -> None:
        patterns = [(p, number) for number, message in enumerate(layout.messages) for p in message.patterns]
        patterns.sort(key=lambda row: -len(row[0]))
        self.patterns = [(len(p) // 2, _pieces(p), number) for p, number in patterns]

    def choose(self, frames: Frames, senders: Senders | None) -> Numbers:
        """See `Choice`."""
        chosen = np.full(len(frames), -1, np.int16)
        if len(frames.bounds) < 2:
            return chosen
        numbers, there = _frame(frames, 0)
        begin, end, _ = frames.extents(numbers, ascending=there is None)
        size = end - begin
        if there is not None:
            size = np.where(there, size, -1)
        for octets, pieces, number in self.patterns:
            rows = np.flatnonzero((chosen < 0) & (size >= octets))
            for offset, piece in pieces:
                rows = rows[~differs(gather(frames.octets, begin[rows] + offset, len(piece)), 0, piece)]
            chosen[rows] = number
        return chosen


def _pieces(pattern: str) -> list[tuple[int, bytes]]:
    """Return the octets that a pattern fixes as contiguous pieces, each with its offset; octet 0 is first."""
    pieces: list[tuple[int, bytes]] = []
    for offset, octet in enumerate(pattern_octets(pattern)):
        if octet is None:
            continue
        if len(pieces) > 1 and sum((pieces[-1][0], len(pieces[-1][1]))) == offset:
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + octet)
        else:
            pieces.append((offset, octet))
    return pieces


class Shapes:
    """Selection by the shape of the whole message and its sender; see `specwire.generated.shapes`."""

    def __init__(self, layout: ProtocolLayout) -> None:
        numbers = {message.class_name: number for number, message in enumerate(layout.messages)}
        self.shapes = [(numbers[name], shape) for name, shape in layout.shapes]
        self.roles = layout.roles

    def choose(self, frames: Frames, senders: Senders | None) -> Numbers:
        """See `Choice`."""
        chosen = np.full(len(frames), -1, np.int16)
        if len(frames.bounds) < 2:
            return chosen
        open_rows = np.ones(len(frames), bool)
        for number, shape in self.shapes:
            fits = open_rows & _looks_so(frames, shape)
            if shape.needs_sender:
                if senders is None:
                    open_rows &= ~fits
                    continue
                open_rows &= ~(fits & (senders == ""))
                fits &= open_rows & np.isin(senders, shape.senders)
            elif shape.senders and senders is not None:
                others = [role for role in self.roles if role not in shape.senders]
                fits &= ~np.isin(senders, others)
            chosen[fits] = number
            open_rows &= ~fits
        return chosen


def _looks_so(frames: Frames, shape: Shape) -> Mask:
    """Return the mask of rows that have the number of frames of `shape` and begin like it."""
    counts = np.diff(frames.rows)
    fits = counts >= max(shape.least, len(shape.frames))
    if shape.most is not None:
        fits &= counts <= shape.most
    for index, (pattern, whole) in enumerate(shape.frames):
        rows = np.flatnonzero(fits)
        numbers = frames.rows[rows] + index
        begin, octets = frames.bounds[numbers], len(pattern) // 2
        size = frames.bounds[numbers + 1] - begin
        good = size == octets if whole else size >= octets
        for offset, piece in _pieces(pattern):
            at = np.where(good, begin + offset, 0)
            good &= ~differs(gather(frames.octets, at, len(piece)), 0, piece)
        fits[rows] = good
    return fits
