"""Encoded rows that could be read as another message: the column version of the checks in ``unfit.py``.

Where messages are told apart by how their frames begin, the octets of an open field can match
another message. Such a row is marked as doubtful; the row codec decides.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from specwire.generated.columns.pieces import Mask, Whole, starts_of
from specwire.generated.columns.writing import either
from specwire.generated.columns.writing_parts import Frames
from specwire.generated.layout import MessageLayout, ProtocolLayout, Shape
from specwire.generated.selection import pattern_octets


def doubtful_looks(layout: ProtocolLayout, entry: MessageLayout, frames: Frames) -> Mask | None:
    """Return the mask of rows that begin like another message; None if there is none."""
    if layout.shapes:
        own = [shape for name, shape in layout.shapes if name == entry.class_name]
        rivals = [shape for shape in _before(layout, entry.class_name) if not _apart(shape, own)]
        return either(*(_fits(shape, frames) for shape in rivals))
    if not entry.patterns:
        return None
    least = min(map(len, entry.patterns))
    other = {
        pattern
        for message in layout.messages
        if message is not entry
        for pattern in message.patterns
        if len(pattern) >= least
    }
    claims = [pattern for pattern in sorted(other) if any(_meet(pattern, own) for own in entry.patterns)]
    return either(*(_begins(pattern, False, frames, 0) for pattern in claims))


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
    return all(first is None or second is None or first == second for first, second in pairs)


def _fits(shape: Shape, frames: Frames) -> Mask:
    found = frames.counts >= shape.least
    if shape.most is not None:
        found &= frames.counts <= shape.most
    for index, (octets, whole) in enumerate(shape.frames):
        if not found.any():
            break
        found &= _begins(octets, whole, frames, index)
    return np.asarray(found, np.bool_)


def _begins(octets: str, whole: bool, frames: Frames, index: int) -> Mask:
    """Return the mask of rows whose frame `index` begins with `octets`, or equals them if `whole`."""
    fixed = pattern_octets(octets)
    places, sizes = _frame_places(frames, index)
    found = sizes == len(fixed) if whole else sizes >= len(fixed)
    for at, octet in enumerate(fixed):
        if octet is not None:
            found[found] = frames.rows.data[places[found] + at] == octet[0]
    return found


def _frame_places(frames: Frames, index: int) -> tuple[Whole, Whole]:
    """Return where frame `index` begins in each row's octets, and its size; -1 if the row has none."""
    first = starts_of(frames.counts)[:-1]
    begin = starts_of(frames.sizes) + int(frames.rows.offsets[0])
    there = frames.counts > index
    places, sizes = np.zeros(len(first), np.int64), np.full(len(first), -1, np.int64)
    places[there] = begin[first[there] + index]
    sizes[there] = frames.sizes[first[there] + index]
    return places, sizes
