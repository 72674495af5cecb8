"""The compiled functions of `kernels`, where they are there; without them numpy does the same.

A compiled module of another version, which an older specwire left behind, is not used; ``SPECWIRE_PURE=1`` asks
for numpy.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import numpy as np

from specwire.generated.builds import PURE
from specwire.generated.columns.arrow import allocated
from specwire.generated.columns.frames import Mask, Octets, Positions

VERSION = 1


def load() -> Any:
    """Return the compiled module, None where it is not there or not wanted."""
    if os.environ.get(PURE) == "1":
        return None
    try:
        found = import_module("specwire.generated.columns.kernels")
    except ImportError:
        return None
    return found if getattr(found, "VERSION", 0) == VERSION else None


KERNELS = load()


def copied(octets: Octets, start: Positions, size: Positions) -> tuple[Any, Octets, bool]:
    """Return slices behind each other: their offsets, their octets, and whether these are all ASCII."""
    offsets, data = allocated(len(start) + 1, np.int32), allocated(int(size.sum()), np.uint8)
    plain = KERNELS.copy_slices(octets, _straight(start), _straight(size), offsets, data)
    return offsets, data, bool(plain)


def walked(
    octets: Octets, at: Positions, end: Positions, counts: Positions | None, widths: tuple[int, int]
) -> tuple[Positions, Positions, Mask]:
    """Go over the entries of each row: return where they end, how many there are, and whether they fit."""
    behind = np.array(at, np.int64)
    taken, ok = np.empty(len(at), np.int64), np.empty(len(at), np.uint8)
    wanted = np.full(len(at), -1) if counts is None else _straight(counts)
    KERNELS.walk_entries(octets, behind, _straight(end), wanted, *widths, taken, ok)
    return behind, taken, ok.view(bool)


def filled(octets: Octets, at: Positions, taken: Positions, widths: tuple[int, int]) -> tuple[Positions, ...]:
    """Return where the sides of all entries begin, and how many octets they have."""
    total = int(taken.sum())
    found = tuple(np.empty(total if width else 0, np.int64) for width in widths for _ in range(2))
    KERNELS.fill_entries(octets, _straight(at), taken, *widths, *found)
    return found if widths[1] else found[:2]


def divided(octets: Octets, start: Positions, size: Positions, octet: int, *, last: bool) -> Positions:
    """Return where an octet stands first, or last, in each slice; -1 where it does not."""
    found = np.empty(len(start), np.int64)
    KERNELS.divide(octets, _straight(start), _straight(size), octet, last, found)
    return found


def _straight(positions: Positions) -> Positions:
    return np.ascontiguousarray(positions, np.int64)
