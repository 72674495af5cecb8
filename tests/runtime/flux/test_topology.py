"""The tree's formulas against a table that is made the slow way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specwire.runtime.flux.topology import HIGHEST_RANK, Tree

TREES = st.builds(Tree, st.integers(1, 80), st.integers(0, 9))


def parents(tree: Tree) -> list[int | None]:
    """Fill the tree level by level: each rank goes below the first rank that has room."""
    room = tree.fanout or tree.size
    table: list[int | None] = [None]
    while len(table) < tree.size:
        table.append(next(rank for rank in range(tree.size) if table.count(rank) < room))
    return table


def ancestors(table: list[int | None], rank: int) -> list[int]:
    """Return the way from `rank` to the root, both among it."""
    way = [rank]
    while (above := table[way[-1]]) is not None:
        way.append(above)
    return way


@given(TREES)
def test_every_rank_has_its_place(tree: Tree) -> None:
    """Parent, children, level, size and height are what the table says."""
    table = parents(tree)
    for rank in range(tree.size):
        assert tree.parent(rank) == table[rank]
        assert [*tree.children(rank)] == [child for child, above in enumerate(table) if above == rank]
        assert tree.level(rank) == len(ancestors(table, rank)) - 1
        below = [goal for goal in range(tree.size) if rank in ancestors(table, goal)]
        assert tree.subtree_size(rank) == len(below)
        assert [goal for goal in range(tree.size) if tree.is_below(rank, goal)] == below
    assert tree.height == max(map(tree.level, range(tree.size)))


@given(TREES, st.integers(0, 79), st.integers(0, 100))
def test_next_hop_is_on_the_way(tree: Tree, rank: int, goal: int) -> None:
    """Down to the child above the goal; up for everything else, for what is not in the tree too."""
    rank %= tree.size
    if rank == goal:
        return
    way = ancestors(parents(tree), goal) if goal < tree.size else []
    expected = way[way.index(rank) - 1] if rank in way else None
    assert tree.next_hop(rank, goal) == expected


def test_large_trees_need_no_table() -> None:
    """Each question about a tree of the highest rank, and about a long chain, is answered by itself."""
    huge = Tree(HIGHEST_RANK + 1, 32)
    assert huge.parent(HIGHEST_RANK) == (HIGHEST_RANK - 1) // 32
    assert huge.next_hop(0, HIGHEST_RANK) in huge.children(0)
    assert huge.subtree_size(0) == HIGHEST_RANK + 1
    chain = Tree(HIGHEST_RANK + 1, 1)
    assert (chain.height, chain.level(1000), chain.subtree_size(1)) == (HIGHEST_RANK, 1000, HIGHEST_RANK)
    assert (chain.next_hop(3, HIGHEST_RANK), chain.next_hop(3, 2)) == (4, None)


@pytest.mark.parametrize(("size", "fanout"), [(0, 2), (-1, 2), (HIGHEST_RANK + 2, 2), (3, -1)])
def test_what_is_no_tree(size: int, fanout: int) -> None:
    """CMB1: the highest rank is 2^32 - 3."""
    with pytest.raises(ValueError, match=r"fan-out|brokers"):
        Tree(size, fanout)
