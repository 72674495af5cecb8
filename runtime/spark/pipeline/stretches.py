"""Sets of whole numbers as stretches: which messages of a tap are known.

A tap counts its messages without gaps, so what is known of one is a stretch or two however many messages it has.
"""

from __future__ import annotations

from collections.abc import Iterable

Stretch = tuple[int, int]
"""The first and the last number, both among them."""


def join(stretches: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """Return the same numbers as stretches that ascend and do not touch."""
    joined: list[Stretch] = []
    for first, last in sorted(stretches):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def overlap(ours: Iterable[Stretch], theirs: Iterable[Stretch]) -> tuple[Stretch, ...]:
    """Return the numbers that both have; each side ascends and does not touch."""
    found: list[Stretch] = []
    others = list(theirs)
    for first, last in ours:
        found += (
            (max(first, begin), min(last, end)) for begin, end in others if begin <= last and first <= end
        )
    return tuple(found)


def first_without(ours: Iterable[Stretch], theirs: Iterable[Stretch]) -> int | None:
    """Return the least number of ours that is not among theirs; None where there is none."""
    others = list(theirs)
    for first, last in ours:
        for begin, end in others:
            if begin <= first <= end:
                first = end + 1
        if first <= last:
            return first
    return None


def count(stretches: Iterable[Stretch]) -> int:
    """Return how many numbers there are in stretches that do not overlap."""
    return sum(last - first + 1 for first, last in stretches)


def runs_of(numbers: Iterable[int]) -> tuple[Stretch, ...]:
    """Return single numbers as stretches."""
    return join((number, number) for number in numbers)
