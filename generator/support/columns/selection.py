"""Message type of each row, for many rows together; rows that could be read as another message.

Messages are told apart by tags at the places of the selectors, by patterns of the first frame, or
by the shape of the whole message. All of these are looks here: how some frames begin, and how many
there are. The first that fits is chosen. A row that matches no message has the number -1.

Where messages are told apart by how their frames begin, the octets of an open field can match another
message. `doubtful_looks` finds such rows when they are encoded.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from specwire.generated.columns.arrow import Mask, Positions, either
from specwire.generated.columns.frames import Frames
from specwire.generated.columns.runs import differs, gather, lowered
from specwire.generated.layout import ProtocolLayout, Shape
from specwire.generated.octets import OCTETS, pattern_octets

Numbers = NDArray[np.int16]
"""Number of each row's message, -1 for none."""

Senders = NDArray[np.str_]
"""Letter of each row's sender, empty if unknown."""


ANY = Shape((), 0, None)


class Head(NamedTuple):
    """How a frame begins, in hexadecimal with ``?`` for any half octet; `whole` if that is all of it."""

    frame: int
    octets: str
    whole: bool


@dataclass(frozen=True, slots=True)
class Look:
    """Heads of a message's frames, their number, and the roles that send it; see `layout.Shape`."""

    heads: tuple[Head, ...]
    number: int = -1
    """Number of the message."""
    shape: Shape = ANY


def _look(shape: Shape, number: int = -1) -> Look:
    return Look(tuple(Head(index, *head) for index, head in enumerate(shape.frames)), number, shape)


def letters(senders: pa.Array[Any] | pa.ChunkedArray[Any] | None) -> Senders | None:
    """Return the letter of the sender of each message."""
    if senders is None:
        return None
    known = cast(Any, senders.cast(pa.string())).fill_null("")
    return np.asarray(
        known.to_numpy(zero_copy_only=False) if isinstance(known, pa.Array) else known.to_numpy()
    ).astype(str)


class Choice:
    """How the messages of a protocol are told apart."""

    def __init__(self, layout: ProtocolLayout) -> None:
        self.layout = layout
        messages = list(enumerate(layout.messages))
        numbers = {message.class_name: number for number, message in messages}
        patterns = [(pattern, number) for number, message in messages for pattern in message.patterns]
        patterns.sort(key=lambda row: -len(row[0]))
        self.tagged: dict[tuple[bytes, ...], Look] = {}
        if layout.shapes:
            self.looks = [_look(shape, numbers[name]) for name, shape in layout.shapes]
        elif patterns:
            self.looks = [Look((Head(0, pattern, False),), number) for pattern, number in patterns]
        else:
            self.tagged = {tag: self._look(tag, number) for number, entry in messages for tag in entry.tags}
            self.looks = list(self.tagged.values())

    def _look(self, tag: tuple[bytes, ...], number: int) -> Look:
        places = zip(self.layout.selectors, tag, strict=True)
        return Look(tuple(Head(at, piece.hex(), octets is None) for (at, octets), piece in places), number)

    def choose(self, frames: Frames, senders: Senders | None) -> Numbers:
        """Return the number of each row's message."""
        chosen = np.full(len(frames), -1, np.int16)
        if not len(frames) or len(frames.bounds) < 2:
            return chosen
        heads, left = _Heads(frames, folded=self.layout.folded), np.ones(len(frames), bool)
        for look in self._likely(frames):
            fits, shape = left & heads.fit(look), look.shape
            if shape.needs_sender:
                known = np.zeros(len(frames), bool) if senders is None else senders != ""
                left &= known | ~fits
                fits &= known if senders is None else known & np.isin(senders, shape.senders)
            elif shape.senders and senders is not None:
                others = [role for role in self.layout.roles if role not in shape.senders]
                fits &= ~np.isin(senders, others)
            chosen[fits] = look.number
            left &= ~fits
            if not left.any():
                break
        return chosen

    def _likely(self, frames: Frames) -> list[Look]:
        """Return the looks; of tags, that of the first row is first: often all rows have it."""
        tag: list[bytes] = []
        for index, octets in self.layout.selectors if self.tagged else ():
            number = min(max(int(frames.rows[int(index < 0)]) + index, 0), len(frames.bounds) - 2)
            begin, end = frames.bounds[number], frames.bounds[number + 1]
            octets_there = frames.octets[begin:end][:octets].tobytes()
            tag.append(octets_there.lower() if self.layout.folded else octets_there)
        first = self.tagged.get(tuple(tag))
        return self.looks if first is None else sorted(self.looks, key=lambda look: look is not first)


class _Heads:
    """Which rows have which heads, each looked up once."""

    def __init__(self, frames: Frames, *, folded: bool) -> None:
        self.frames = frames
        self.octets = lowered(frames.octets) if folded else frames.octets
        self.masks: dict[Head, Mask] = {}
        self.places: dict[int, tuple[Positions, Positions, int]] = {}

    def fit(self, look: Look) -> Mask:
        """Return the mask of rows whose frames begin, and are as many, as `look` says."""
        fits: Mask | None = None
        for head in look.heads:
            if head not in self.masks:
                self.masks[head] = self._begin(head)
            fits = self.masks[head] if fits is None else fits & self.masks[head]
        least, most = look.shape.least, look.shape.most
        counts = np.diff(self.frames.rows) if least or most is not None or fits is None else np.zeros(0)
        if least or fits is None:
            fits = counts >= least if fits is None else fits & (counts >= least)
        return fits if most is None else fits & (counts <= most)

    def _begin(self, head: Head) -> Mask:
        begin, size, step = self._frame(head.frame)
        octets = len(head.octets) // 2
        fits: Mask = size == octets if head.whole else size >= octets
        if not fits.all():
            begin, step = np.where(fits, begin, 0), 0
        for offset, piece in _pieces(head.octets):
            if not fits.any():
                break
            at = begin + offset if offset else begin
            fits &= ~differs(gather(self.octets, at, len(piece), step), piece)
        for offset, (octet, mask) in enumerate(pattern_octets(head.octets)):
            if 0 < mask < 0xFF and fits.any():
                fits &= gather(self.octets, begin + offset, 1, step)[:, 0] & mask == octet
        return fits

    def _frame(self, index: int) -> tuple[Positions, Positions, int]:
        """Return the start and size of frame `index` of each row (-1 if it has none), and their distance."""
        if index not in self.places:
            first, behind = self.frames.rows[:-1], self.frames.rows[1:]
            numbers = first + index if index >= 0 else behind + index
            there = numbers < behind if index >= 0 else numbers >= first
            sure = bool(there.all())
            numbers = numbers if sure else np.where(there, numbers, 0)
            begin, end, step = self.frames.extents(numbers, ascending=sure)
            size = end - begin if sure else np.where(there, end - begin, -1)
            self.places[index] = begin, size, step
        return self.places[index]


def _pieces(pattern: str) -> list[tuple[int, bytes]]:
    """Return the whole octets that a pattern fixes as pieces, each with its offset; octet 0 is the first.

    Most rows that do not have a pattern differ in octet 0.
    """
    pieces: list[tuple[int, bytes]] = []
    for offset, (number, mask) in enumerate(pattern_octets(pattern)):
        if mask != 0xFF:
            continue
        octet = OCTETS[number]
        if len(pieces) > 1 and pieces[-1][0] + len(pieces[-1][1]) == offset:
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + octet)
        else:
            pieces.append((offset, octet))
    return pieces


def doubtful_looks(layout: ProtocolLayout, class_name: str, frames: Frames) -> Mask | None:
    """Return the mask of encoded rows that begin like another message; None if there is none."""
    heads = _Heads(frames, folded=layout.folded)
    return either(*(heads.fit(_look(shape)) for shape in _rivals(layout, class_name)))


@lru_cache(maxsize=1024)
def _rivals(layout: ProtocolLayout, class_name: str) -> tuple[Shape, ...]:
    """Return the shapes that other messages have and frames of this message can match."""
    if layout.shapes:
        own = [shape for name, shape in layout.shapes if name == class_name]
        return tuple(shape for shape in _before(layout, class_name) if not _apart(shape, own))
    patterns = next(message.patterns for message in layout.messages if message.class_name == class_name)
    other = {p for message in layout.messages if message.class_name != class_name for p in message.patterns}
    return tuple(
        Shape(((pattern, False),), 1, None)
        for pattern in sorted(other)
        if len(pattern) >= min(map(len, patterns)) and any(_meet(pattern, own) for own in patterns)
    )


def _before(layout: ProtocolLayout, class_name: str) -> list[Shape]:
    """Return the shapes that are tried before the last shape of a class and share a sender with it."""
    names = [name for name, _ in layout.shapes]
    last = len(names) - names[::-1].index(class_name)
    senders = {one for name, shape in layout.shapes if name == class_name for one in shape.senders}
    return [
        shape
        for name, shape in layout.shapes[:last]
        if name != class_name and (not shape.senders or not senders or senders & set(shape.senders))
    ]


def _apart(shape: Shape, own: Sequence[Shape]) -> bool:
    """Return whether frames that match one of `own` can never match `shape`."""
    return all(
        (shape.most is not None and shape.most < mine.least)
        or (mine.most is not None and mine.most < shape.least)
        or any(
            not _meet(theirs, ours) for (theirs, _), (ours, _) in zip(shape.frames, mine.frames, strict=False)
        )
        for mine in own
    )


def _meet(one: str, other: str) -> bool:
    """Return whether octets can begin in both ways."""
    pairs = zip(pattern_octets(one), pattern_octets(other), strict=False)
    return all(not (first ^ second) & mask & other for (first, mask), (second, other) in pairs)
