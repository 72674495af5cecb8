"""The tree of brokers, computed from rank, size and fan-out; nobody keeps a table of it.

The tree is k-ary and filled level by level: the children of rank r are k·r + 1 … k·r + k, so its parent is
(r - 1) // k. A fan-out of 0 is the flat tree: every other rank is a child of rank 0. Ranks are 0 … size - 1,
and `size` is fixed when the instance starts (Flux v1, "Background").
"""

from __future__ import annotations

import msgspec

HIGHEST_RANK = 2**32 - 3
"""CMB1, "Rank Assignment": the two numbers above have a meaning of their own."""

NODEID_UPSTREAM = 2**32 - 2
"""No rank: interfaces of programs say so that a request goes upstream. No message may carry it any further."""


class Tree(msgspec.Struct, frozen=True):
    """The shape of an instance. Ranks that are given to its methods are in the tree, but for `next_hop`'s goal.

    Raises:
        ValueError: there is no such tree.
    """

    size: int
    fanout: int = 2

    def __post_init__(self) -> None:
        if not 1 <= self.size <= HIGHEST_RANK + 1:
            raise ValueError(f"a tree has 1 to {HIGHEST_RANK + 1} brokers, not {self.size}")
        if self.fanout < 0:
            raise ValueError(f"a fan-out is 0 (flat) or more, not {self.fanout}")

    @property
    def arity(self) -> int:
        """The most children of a broker."""
        return self.fanout or max(1, self.size - 1)

    def parent(self, rank: int) -> int | None:
        """Return the rank above; None at the root."""
        return None if rank == 0 else (rank - 1) // self.arity

    def children(self, rank: int) -> range:
        """Return the ranks below, in order."""
        first = min(rank * self.arity + 1, self.size)
        return range(first, min(first + self.arity, self.size))

    def level(self, rank: int) -> int:
        """Return the hops from rank 0."""
        arity = self.arity
        if arity == 1:
            return rank  # a chain, which may be long
        level = 0
        while rank:
            rank = (rank - 1) // arity
            level += 1
        return level

    @property
    def height(self) -> int:
        """Hops from rank 0 to the deepest rank; the last one is among them."""
        return self.level(self.size - 1)

    def next_hop(self, rank: int, goal: int) -> int | None:
        """Return the neighbour of `rank` on the way to `goal`, which is another rank; None where the way is up.

        A goal outside of the tree is looked for upwards: only rank 0 may say that there is none.
        """
        if goal >= self.size:
            return None
        arity = self.arity
        if arity == 1:
            return rank + 1 if goal > rank else None
        while goal > rank:
            above = (goal - 1) // arity
            if above == rank:
                return goal
            goal = above
        return None

    def is_below(self, rank: int, goal: int) -> bool:
        """Tell whether `goal` is `rank` itself or in its subtree."""
        return goal == rank or (goal < self.size and self.next_hop(rank, goal) is not None)

    def subtree_size(self, rank: int) -> int:
        """Return how many brokers `rank` and what is below it are: a sum over levels, not over ranks."""
        if self.arity == 1:
            return self.size - rank
        total, first, last = 0, rank, rank
        while first < self.size:
            total += min(last, self.size - 1) - first + 1
            first, last = first * self.arity + 1, last * self.arity + self.arity
        return total
