"""Positions of many rows at once: a run of octets in each, and how far it has been read.

A row that does not fit is recorded in `ok` and continues as an empty run at octet 0, where reading is
safe. Values read from it afterwards have no meaning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from specwire.generated.columns.arrow import Mask, Octets, Positions
from specwire.generated.columns.frames import Frames
from specwire.generated.layout import Order

BEYOND = np.iinfo(np.int64).max // 2
"""Position behind all octets."""
NARROWEST, MOST_LOOKED = 32, 1 << 20
"""Least number of octets of each row, and largest number of all rows, to look at together."""
_LOWER = np.arange(256, dtype=np.uint8)
"""Each octet, an ASCII letter in lower case."""
_LOWER[ord("A") : ord("Z") + 1] += ord("a") - ord("A")


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

    def part(self, rows: Positions) -> Run:
        """Return a separate run over some rows; `join` merges it back."""
        return Run(self.frames, self.at[rows], self.end[rows], skim=self.skim)

    def join(self, rows: Positions, part: Run) -> None:
        """Continue in `rows` at the position of `part`."""
        at = self.at.copy()
        at[rows] = part.at
        self.at, self.step = at, 0
        if not part.ok.all():
            self.refuse_at(rows[~part.ok])

    def forward(self, octets: int) -> Positions:
        """Return where the next octets begin, and advance past them; refuse rows with fewer."""
        self.refuse(self.at + octets > self.end)
        start = self.at
        self.at = start + octets
        if self.parked:
            self.at = np.where(self.ok, self.at, 0)
        return start

    def take(self, size: Positions) -> tuple[Positions, Positions]:
        """Return the start and number of the next octets, and advance past them; see `within`."""
        start = self.at
        self.at = start + size
        self.step = 0
        return start, size

    def rest(self) -> tuple[Positions, Positions]:
        """Return where the octets left begin and their number, and advance to the end."""
        start, size = self.at, self.left
        self.at, self.step = self.end, 0
        return start, size

    def within(self, size: Positions) -> Positions:
        """Return numbers of octets; refuse rows where one is negative or exceeds the octets left."""
        self.refuse((size < 0) | (size > self.left))
        return np.where(self.ok, size, 0) if self.parked else size

    def until(self, octets: bytes) -> Positions:
        """Return the number of octets before `octets`; refuse rows without them."""
        found = self.frames.found.get(octets)
        if found is None:
            found = np.append(places(self.frames.octets, octets), BEYOND)
            self.frames.found[octets] = found
        next_one = found[np.searchsorted(found, self.at)]
        self.refuse(next_one + len(octets) > self.end)
        return np.where(self.ok, next_one - self.at, 0)

    def among(self, allowed: bytes, least: int) -> Positions:
        """Return the number of octets before the first that is not one of `allowed`; refuse rows with
        fewer than `least`."""
        table = np.zeros(256, bool)
        table[list(allowed)] = True
        sizes, rows, width = np.zeros(len(self), np.int64), np.flatnonzero(self.left > 0), NARROWEST
        while len(rows):
            places = (self.at[rows] + sizes[rows])[:, None] + np.arange(width)
            inside = places < self.end[rows][:, None]
            good = inside & table[self.frames.octets[np.where(inside, places, 0)]]
            whole = good.all(axis=1)
            sizes[rows] += np.where(whole, width, good.argmin(axis=1))
            rows = rows[whole]
            width = min(2 * width, max(NARROWEST, MOST_LOOKED // max(1, len(rows))))
        self.refuse(sizes < least)
        return np.where(self.ok, sizes, 0)

    def begins(self, octets: bytes, *, folded: bool = False) -> Mask:
        """Return the mask of rows whose next octets are `octets`; if `folded`, these are in lower case,
        and letters in either case fit."""
        size = len(octets)
        fits = self.left >= size
        if not size or not fits.any():
            return fits
        found = gather(self.frames.octets, np.where(fits, self.at, 0), size)
        return fits & ~differs(lowered(found) if folded else found, octets)


def lowered(octets: Octets) -> Octets:
    """Return octets with ASCII letters in lower case."""
    return _LOWER[octets]


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


def integers(octets: Octets, order: Order = "big", *, signed: bool = False) -> NDArray[Any]:
    """Return the integer that each row of a matrix of up to eight columns holds."""
    size = octets.shape[1]
    wide = next(width for width in (1, 2, 4, 8) if width >= size)
    kind = np.dtype(f"{'<' if order == 'little' else '>'}{'i' if signed else 'u'}{wide}")
    if size == wide:
        return octets.view(kind)[:, 0]
    padded = np.zeros((len(octets), wide), np.uint8)
    padded[:, slice(wide - size, None) if order == "little" else slice(size)] = octets
    shifted: NDArray[Any] = padded.view(kind)[:, 0] >> kind.type(8 * (wide - size))
    return shifted


def differs(rows: Octets, octets: bytes) -> Mask:
    """Return the mask of rows of a matrix that are not `octets`."""
    found = np.zeros(len(rows), bool)
    done = 0
    while done < len(octets):
        width = next(width for width in (8, 4, 2, 1) if width <= len(octets) - done)
        wanted = int.from_bytes(octets[done : done + width], "big")
        found |= integers(rows[:, done : done + width]) != wanted
        done += width
    return found


def places(octets: Octets, wanted: bytes) -> Positions:
    """Return every position of `wanted` in `octets`, overlaps included."""
    count = max(0, len(octets) - len(wanted) + 1)
    found = octets[:count] == wanted[0]
    for number, octet in enumerate(wanted[1:], 1):
        found &= octets[number : number + count] == octet
    return np.flatnonzero(found)
