"""Detection of invalid texts among many: octets that are not UTF-8, or a NUL inside.

Texts are contiguous in one buffer, with an offset for each. All are checked together; they are
examined one by one only if that check fails.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from specwire.generated.columns.frames import Mask, Octets

Offsets = NDArray[Any]


def not_utf8(octets: Octets, offsets: Offsets) -> Mask | None:
    """Return the mask of texts that are not UTF-8, None if all are."""
    if not len(octets) or int(octets.max()) < 0x80:
        return None
    doubt = _begin_within(octets, offsets)
    at, end = int(offsets[0]), int(offsets[-1])
    view = octets.data
    while at < end:
        try:
            str(view[at:end], "utf-8")
            break
        except UnicodeDecodeError as error:
            slot = int(np.searchsorted(offsets, at + error.start, "right")) - 1
            doubt[slot] = True
            at = int(offsets[slot + 1])
    for slot in np.flatnonzero(doubt).tolist():
        doubt[slot] = not _is_utf8(view[int(offsets[slot]) : int(offsets[slot + 1])])
    return doubt if doubt.any() else None


def _is_utf8(octets: memoryview) -> bool:
    try:
        str(octets, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _begin_within(octets: Octets, offsets: Offsets) -> Mask:
    """Return the texts that begin within a character of the joined octets, and those before them."""
    doubt = np.zeros(len(offsets) - 1, bool)
    starts = offsets[:-1]
    some = np.flatnonzero(starts < offsets[1:])
    inside = np.flatnonzero((octets[starts[some]] & 0xC0) == 0x80)
    doubt[some[inside]] = True
    doubt[some[np.maximum(inside - 1, 0)]] = True
    return doubt


def holds_nul(octets: Octets, offsets: Offsets) -> Mask | None:
    """Return the mask of texts that contain NUL, None if there is none."""
    if not len(octets) or int(octets.min()):
        return None
    found = np.zeros(len(offsets) - 1, bool)
    found[np.searchsorted(offsets, np.flatnonzero(octets == 0), "right") - 1] = True
    return found
