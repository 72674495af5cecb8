"""Sets of numbers as stretches, compared with plain sets."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.spark.pipeline.ledger import count, first_without, overlap, runs_of
from specwire.runtime.spark.reading.position import join

NUMBERS = st.sets(st.integers(0, 30))


def numbers(stretches: tuple[tuple[int, int], ...]) -> list[int]:
    """Return the numbers one by one."""
    return [number for first, last in stretches for number in range(first, last + 1)]


@given(NUMBERS)
def test_stretches_are_the_numbers(ours: set[int]) -> None:
    """Ascending, and none that touch."""
    found = runs_of(ours)
    assert numbers(found) == sorted(ours)
    assert count(found) == len(ours)
    assert all(last + 1 < begin for (_, last), (begin, _) in itertools.pairwise(found))


@given(NUMBERS, NUMBERS)
def test_two_sets_as_sets_have_it(ours: set[int], theirs: set[int]) -> None:
    """Joined, in both, and the least that only one has."""
    one, other = runs_of(ours), runs_of(theirs)
    assert numbers(join([*one, *other])) == sorted(ours | theirs)
    assert numbers(overlap(one, other)) == sorted(ours & theirs)
    assert first_without(one, other) == min(ours - theirs, default=None)
