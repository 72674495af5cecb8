"""`overlapping` finds all overlapping patterns, in few comparisons; `in_order` finds a longest run."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from specwire.generator.compare.matching import in_order
from specwire.generator.passes.heads import fits
from specwire.generator.passes.overlaps import overlapping

patterns = st.lists(st.sampled_from(["00", "01", "??"]), max_size=5).map("".join)
rows = st.lists(st.lists(patterns, max_size=3), max_size=60)


def fit(one: list[str], other: list[str]) -> bool:
    return all(fits(a, b) for a, b in zip(one, other, strict=False))


@given(rows)
def test_every_pair_that_overlaps_is_yielded_once(rows: list[list[str]]) -> None:
    found = [(min(at, place), max(at, place)) for at, places in overlapping(rows) for place in places]
    assert len(set(found)) == len(found)
    assert {(n, m) for n, m in combinations(range(len(rows)), 2) if fit(rows[n], rows[m])} <= set(found)


@given(patterns, patterns)
def test_patterns_fit_where_no_constant_differs(one: str, other: str) -> None:
    octets = ([text[at : at + 2] for at in range(0, len(text), 2)] for text in (one, other))
    assert fits(one, other) is all(a == b or "??" in (a, b) for a, b in zip(*octets, strict=False))


def test_patterns_that_differ_in_their_first_octets_are_not_compared() -> None:
    rows = [[f"{number >> 8:02x}{number & 255:02x}"] for number in range(3_000)]
    assert sum(1 for _, places in overlapping(rows) for _ in places) < 3_000 * 8


@given(st.permutations(range(9)))
def test_the_longest_run_that_keeps_its_order(new: list[int]) -> None:
    found = in_order(range(9), new)
    assert [item for item in new if item in found] == sorted(found)
    longest = [1] * 9
    for here, item in enumerate(new):
        longest[here] += max((longest[there] for there in range(here) if new[there] < item), default=0)
    assert len(found) == max(longest)
