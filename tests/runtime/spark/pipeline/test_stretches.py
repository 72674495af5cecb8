"""Sets of numbers as stretches, compared with plain sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.spark.pipeline.ledger import count, overlap
from specwire.runtime.spark.reading.position import Stretch, join, without

NUMBERS = st.sets(st.integers(0, 30))


def stretches_of(numbers: Iterable[int]) -> tuple[Stretch, ...]:
    """Return single numbers as stretches."""
    return join((number, number) for number in numbers)


def numbers(stretches: Iterable[Stretch]) -> list[int]:
    """Return the numbers one by one."""
    return [number for first, last in stretches for number in range(first, last + 1)]


@given(NUMBERS)
def test_stretches_are_the_numbers(ours: set[int]) -> None:
    """Ascending, and none that touch."""
    found = stretches_of(ours)
    assert numbers(found) == sorted(ours)
    assert count(found) == len(ours)
    assert all(last + 1 < begin for (_, last), (begin, _) in itertools.pairwise(found))


@given(NUMBERS, NUMBERS)
def test_two_sets_as_sets_have_it(ours: set[int], theirs: set[int]) -> None:
    """Joined, in both, and those that only one has."""
    one, other = stretches_of(ours), stretches_of(theirs)
    assert numbers(join([*one, *other])) == sorted(ours | theirs)
    assert numbers(overlap(one, other)) == sorted(ours & theirs)
    assert numbers(without(one, other)) == sorted(ours - theirs)
