"""Items of many rows at once: where they begin, and how many each row has.

An item's position is known only after the previous one was read. So all rows advance in step, and
rows that are finished drop out. Items of fixed size need no such walk, and compiled code scans those
that are octets behind their number.

With a few rows of very many items, each step would read few items. Those rows are left to the row
codec.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from specwire.generated.columns import native
from specwire.generated.columns.arrow import Mask, Positions, buffer_of, ranges, starts_of
from specwire.generated.columns.building import Slices, copied
from specwire.generated.columns.runs import Run
from specwire.generated.layout import Integer
from specwire.generated.plan import Body, Extent, Number, TakeOctets, TakeText, operations

PATIENCE = 64
"""Number of items that rows read in step, however few rows remain."""
FEW = 32
"""Number of rows below which reading in step stops after `PATIENCE` items."""
EQUALS = ord("=")


def is_few(run: Run) -> bool:
    """Return whether a run has too few rows to read values of any number in step."""
    return len(run) < FEW


def evenly(run: Run, counts: Positions | None, octets: int) -> tuple[Positions, Positions]:
    """Advance past items of fixed size; return their number in each row, and where each begins.

    Without `counts`, here and in the other functions, items extend to the end of the run.
    """
    room = run.left // octets
    if counts is None:
        run.refuse(run.left % octets != 0)
        counts = room
    else:
        run.refuse(counts > room)
    counts = np.where(run.ok, counts, 0)
    begin, _ = run.take(counts * octets)
    if run.skim:
        return counts, np.zeros(0, np.int64)
    return counts, np.repeat(begin, counts) + octets * ranges(np.zeros(len(run), np.int64), counts)


def walk(
    run: Run, counts: Positions | None, skip: Callable[[Run], object], until: bytes = b""
) -> tuple[Positions, Positions]:
    """Advance past the items of each row, one per call of `skip`; return the same as `evenly`.

    Without `counts`, items extend up to the octets `until`, if they are given.
    """
    active = np.flatnonzero(_more(run, until) if counts is None else counts)
    part = run.part(active)
    part.skim = True
    taken = np.zeros(len(run), np.int64)
    at, lost = run.at.copy(), np.zeros(len(run), bool)
    starts: list[Positions] = []
    owners: list[Positions] = []
    while len(active):
        if len(starts) >= PATIENCE and len(active) < FEW:
            lost[active] = True
            break
        starts.append(part.at)
        owners.append(active)
        skip(part)
        going: Mask = _more(part, until) if counts is None else counts[active] > len(starts)
        going = going & part.ok
        if not going.all():
            done = active[~going]
            at[done], taken[done], lost[done] = part.at[~going], len(starts), ~part.ok[~going]
            active, part = active[going], part.part(np.flatnonzero(going))
    taken[active] = len(starts)
    run.at, run.step = at, 0
    run.refuse(lost)
    return taken, _in_rows(taken, owners, starts)


def _more(run: Run, until: bytes) -> Mask:
    """Return the mask of rows in which another item begins."""
    left = run.at < run.end
    return left & ~run.begins(until) if until else left


def _in_rows(taken: Positions, owners: list[Positions], starts: list[Positions]) -> Positions:
    """Return the starts of the first items, the second ones and so on, in row order."""
    if len(starts) == 1:
        return starts[0]
    first = starts_of(taken)
    ordered = np.empty(int(first[-1]), np.int64)
    for number, (owner, piece) in enumerate(zip(owners, starts, strict=True)):
        ordered[first[owner] + number] = piece
    return ordered


def plain_entries(body: Body) -> list[tuple[int, TakeText | TakeOctets]]:
    """Return the values of an item, each with the width of the number before it.

    Nothing is returned if the item has other values, or values that are checked or trimmed.
    """
    ops = list(operations(body))
    found: list[tuple[int, TakeText | TakeOctets]] = []
    for number, value in zip(ops[::2], ops[1::2], strict=False):
        match number, value:
            case (
                Number(slot=slot, coding=Integer(octets=octets, order="big", signed=False, members=())),
                TakeText(extent=Extent(kind="slot", slot=counted, plus=0), terminated=False)
                | TakeOctets(extent=Extent(kind="slot", slot=counted, plus=0), minimum=0, maximum=None),
            ) if slot == counted:
                found.append((octets, value))
    return found if len(ops) == 2 * len(found) <= 4 else []


def scan(
    run: Run, counts: Positions | None, widths: Sequence[int]
) -> tuple[Positions, list[tuple[Positions, Positions]]]:
    """Advance past items of one or two values; return their number, and each value's start and size.

    A value follows its size, an integer of one of the `widths`.
    """
    octets, begin, both = run.frames.octets, run.at, (widths[0], widths[1] if len(widths) > 1 else 0)
    run.at, taken, ok = native.walked(octets, begin, run.end, counts, both)
    run.step = 0
    run.refuse(~ok)
    taken = np.where(ok, taken, 0)
    if run.skim:
        return taken, []
    found = native.filled(octets, begin, taken, both)
    return taken, list(zip(found[::2], found[1::2], strict=True))


def divided(texts: Slices, at: Literal["first", "last"]) -> tuple[list[Slices], Mask]:
    """Return what is before and after ``=`` in each text, and the mask of texts without one."""
    if native.KERNELS is not None:
        octets, buffer, begin, end = texts.octets, texts.buffer, texts.start, texts.start + texts.size
        equals = native.divided(octets, begin, texts.size, EQUALS, last=at == "last")
        undivided = equals < 0
    else:
        ends, octets, _ = copied(texts.octets, texts.buffer, texts.start, texts.size)
        buffer, begin, end = buffer_of(octets), ends[:-1].astype(np.int64), ends[1:].astype(np.int64)
        equals, undivided = _search(np.flatnonzero(octets == EQUALS), begin, end, first=at == "first")
    name = Slices(octets, buffer, begin, equals - begin, texts.ended)
    return [name, Slices(octets, buffer, equals + 1, end - equals - 1, texts.ended)], undivided


def _search(equals: Positions, begin: Positions, end: Positions, *, first: bool) -> tuple[Positions, Mask]:
    """Return where each text is divided, and the mask of texts without one of the `equals`."""
    if not len(equals):
        return begin, np.ones(len(begin), bool)
    number = np.searchsorted(equals, begin) if first else np.searchsorted(equals, end) - 1
    at = equals[np.clip(number, 0, len(equals) - 1)]
    return at, (at < begin) | (at >= end)
