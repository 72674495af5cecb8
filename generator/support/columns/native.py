"""Compiled functions of `kernels`, if available; otherwise numpy does the same work.

A compiled module of another version, left by an older specwire, is not used. ``SPECWIRE_PURE=1``
selects numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from specwire.generated.builds import find_native
from specwire.generated.columns.arrow import Mask, Octets, Positions, Whole, allocated

BUILD = "2"
KERNELS: Any = find_native("specwire.generated.columns.kernels", BUILD)


def copied(octets: Octets, start: Positions, size: Positions) -> tuple[Any, Octets, bool]:
    """Return slices joined together: offsets, octets, and whether all octets are ASCII."""
    offsets, data = allocated(len(start) + 1, np.int32), allocated(int(size.sum()), np.uint8)
    plain = KERNELS.copy_slices(octets, _straight(start), _straight(size), offsets, data)
    return offsets, data, bool(plain)


def walked(
    octets: Octets, at: Positions, end: Positions, counts: Positions | None, widths: tuple[int, int]
) -> tuple[Positions, Positions, Mask]:
    """Scan the entries of each row; return where they end, their number, and whether they fit."""
    behind = np.array(at, np.int64)
    taken, ok = np.empty(len(at), np.int64), np.empty(len(at), np.uint8)
    wanted = np.full(len(at), -1) if counts is None else _straight(counts)
    KERNELS.walk_entries(octets, behind, _straight(end), wanted, *widths, taken, ok)
    return behind, taken, ok.view(bool)


def filled(octets: Octets, at: Positions, taken: Positions, widths: tuple[int, int]) -> tuple[Positions, ...]:
    """Return the start and size of each side of all entries."""
    total = int(taken.sum())
    found = tuple(np.empty(total if width else 0, np.int64) for width in widths for _ in range(2))
    KERNELS.fill_entries(octets, _straight(at), taken, *widths, *found)
    return found if widths[1] else found[:2]


def divided(octets: Octets, start: Positions, size: Positions, octet: int, *, last: bool) -> Positions:
    """Return the position of the first, or last, `octet` in each slice; -1 if there is none."""
    found = np.empty(len(start), np.int64)
    KERNELS.divide(octets, _straight(start), _straight(size), octet, last, found)
    return found


def joined(
    offsets: Sequence[Whole], octets: Sequence[Octets], count: int, total: int
) -> tuple[Whole, Octets]:
    """Return the ends and octets of rows: the first element of each source, then the second."""
    ends, data = np.empty(count + 1, np.int32), np.empty(total, np.uint8)
    KERNELS.join(list(offsets), list(octets), ends, data)
    return ends, data


def _straight(positions: Positions) -> Positions:
    return np.ascontiguousarray(positions, np.int64)
