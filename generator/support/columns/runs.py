"""Positions of many rows at once: a run of octets in each, and how far it has been read.

The counterpart of `specwire.generated.reader` for whole columns. A row that does not fit is recorded
in `ok` and continues as an empty run at octet 0, where reading is safe. Values read from it
afterwards have no meaning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from specwire.generated.columns.frames import Frames, Mask, Octets, Positions
from specwire.generated.layout import Span


class Run:
    """A run of octets in each of some rows, from `at` to `end`.

    `skim` is true if only the run's end is needed. `step` is the distance between rows if it is
    known and constant, else 0.
    """

    __slots__ = ("at", "end", "frames", "ok", "parked", "skim", "step")

    def __init__(
        self, frames: Frames, at: Positions, end: Positions, *, skim: bool = False, step: int = 0
    ) -> None:
        self.frames = frames
        self.at = at
        self.end = end
        self.skim = skim
        self.step = step
        self.ok: Mask = np.ones(len(at), bool)
        self.parked = False
        """At least one row does not fit."""

    def __len__(self) -> int:
        return len(self.at)

    @property
    def left(self) -> Positions:
        """Number of octets left in each row."""
        return self.end - self.at

    def refuse(self, mask: Mask) -> None:
        """Mark the rows of `mask` as not fitting."""
        if mask.any():
            self.ok = self.ok & ~mask
            self.at = np.where(mask, 0, self.at)
            self.end = np.where(mask, 0, self.end)
            self.parked = True
            self.step = 0

    def refuse_at(self, rows: Positions) -> None:
        """Mark `rows`, by number, as not fitting."""
        mask = np.zeros(len(self), bool)
        mask[rows] = True
        self.refuse(mask)

    def part(self, rows: Positions, *, skim: bool | None = None) -> Run:
        """Return a separate run over some rows; `join` merges it back."""
        return Run(self.frames, self.at[rows], self.end[rows], skim=self.skim if skim is None else skim)

    def join(self, rows: Positions, part: Run) -> None:
        """Continue in `rows` at the position of `part`."""
        at = self.at.copy()
        at[rows] = part.at
        self.at, self.step = at, 0
        if not part.ok.all():
            self.refuse_at(rows[~part.ok])

    def need(self, octets: int) -> None:
        """Refuse rows with fewer than `octets` octets left."""
        self.refuse(self.at + octets > self.end)

    def record(self, octets: int) -> Octets:
        """Return the next octets of each row as the rows of a matrix, and advance past them."""
        self.need(octets)
        found = gather(self.frames.octets, self.at, octets, self.step)
        self._pass(octets)
        return found

    def number(self, octets: int) -> NDArray[Any]:
        """Return the next unsigned big-endian integer and advance past it."""
        return integers(self.record(octets), 0, octets)

    def size(self, octets: int) -> Positions:
        """Return the next size; refuse rows where it exceeds the octets left after it."""
        found = self.number(octets)
        self.refuse(found > self.left.astype(np.uint64 if octets > 4 else np.int64))
        return np.where(self.ok, found, 0).astype(np.int64)

    def span(self, span: Span) -> tuple[Positions, Positions]:
        """Return the start and size of the next value and advance past it."""
        if span.kind == "prefix":
            size = self.size(span.octets)
        elif span.kind == "fixed":
            self.need(span.octets)
            size = np.where(self.ok, span.octets, 0)
        elif span.kind == "until":
            size = self._until(span.until)
        else:
            size = self.left
        start = self.at
        self._pass(size)
        return start, size

    def _pass(self, octets: int | Positions) -> None:
        """Advance past `octets` octets."""
        self.at = self.at + octets
        self.step = self.step if isinstance(octets, int) else 0
        if self.parked:
            self.at = np.where(self.ok, self.at, 0)

    def _until(self, octets: bytes) -> Positions:
        """Return the number of octets before `octets`; refuse rows without them."""
        found = places(self.frames.octets, octets)
        number = np.searchsorted(found, self.at)
        beyond = np.iinfo(np.int64).max - len(octets)
        next_one = np.append(found, beyond)[number]
        self.refuse(next_one + len(octets) > self.end)
        return np.where(self.ok, next_one - self.at, 0)

    def begins(self, octets: bytes) -> Mask:
        """Return the mask of rows whose next octets are `octets`."""
        size = len(octets)
        fits = self.left >= size
        if not size or not fits.any():
            return fits
        return fits & ~differs(gather(self.frames.octets, np.where(fits, self.at, 0), size), 0, octets)


def gather(octets: Octets, at: Positions, size: int, step: int = 0) -> Octets:
    """Return `size` octets from each of the positions `at`; zeros if the buffer is too short.

    Positions that are all `step` octets apart need no copy.
    """
    if len(octets) < size or not size:
        return np.zeros((len(at), size), np.uint8)
    if step and len(at):
        return np.ndarray((len(at), size), np.uint8, buffer=octets, offset=int(at[0]), strides=(step, 1))
    if size == 1:
        return octets[at][:, None]
    records = np.ndarray((len(octets) - size + 1,), f"V{size}", buffer=octets, strides=(1,))
    return records[at].view(np.uint8).reshape(len(at), size)


def integers(record: Octets, offset: int, octets: int) -> NDArray[Any]:
    """Return the unsigned big-endian integers at `offset` of each record."""
    if octets == 1:
        return record[:, offset]
    if octets in (2, 4, 8):
        return record[:, offset : offset + octets].view(f">u{octets}")[:, 0]
    wide = np.zeros((len(record), 4 if octets < 4 else 8), np.uint8)
    wide[:, wide.shape[1] - octets :] = record[:, offset : offset + octets]
    return wide.view(f">u{wide.shape[1]}")[:, 0]


def differs(record: Octets, offset: int, octets: bytes) -> Mask:
    """Return the mask of records that do not have `octets` at `offset`."""
    found = np.zeros(len(record), bool)
    done = 0
    while done < len(octets):
        width = next(width for width in (8, 4, 2, 1) if width <= len(octets) - done)
        wanted = int.from_bytes(octets[done : done + width], "big")
        found |= integers(record, offset + done, width) != wanted
        done += width
    return found


def places(octets: Octets, wanted: bytes) -> Positions:
    """Return every position of `wanted` in `octets`, overlaps included."""
    count = max(0, len(octets) - len(wanted) + 1)
    found = octets[:count] == wanted[0]
    for number, octet in enumerate(wanted[1:], 1):
        found &= octets[number : number + count] == octet
    return np.flatnonzero(found)
