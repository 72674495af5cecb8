"""How a scenario names brokers.

all            every rank
leaves         those without children
level 2        those two hops from rank 0
1%             that share of all ranks but 0, at random, and one at least
20 random      so many of all ranks but 0
0,7,16-31      these
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import ceil
from random import Random

from specwire.runtime.flux.topology import Tree

_LEVEL = re.compile(r"level (\d{1,9})")
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,6})?)%")
_RANDOM = re.compile(r"(\d{1,9}) random")
_RANGE = re.compile(r"(\d{1,10})(?:-(\d{1,10}))?")


def choose_ranks(text: str, tree: Tree, random: Random) -> Sequence[int]:
    """Return the ranks that `text` names, in order; raises ValueError."""
    if text == "all":
        return range(tree.size)
    if text == "leaves":
        return _leaves(tree)
    if found := _LEVEL.fullmatch(text):
        return _level(int(found[1]), tree)
    if found := _SHARE.fullmatch(text):
        share = float(found[1])
        if share > 100:
            raise ValueError(f"{text!r} is more than all")
        return _sample(ceil((tree.size - 1) * share / 100), tree, random)
    if found := _RANDOM.fullmatch(text):
        return _sample(int(found[1]), tree, random)
    return _listed(text, tree)


def _leaves(tree: Tree) -> range:
    first = 0 if tree.size == 1 else (tree.size - 2) // tree.arity + 1
    return range(first, tree.size)


def _level(level: int, tree: Tree) -> range:
    if level > tree.height:
        raise ValueError(f"there is no level {level}: the deepest is {tree.height}")
    first, last = 0, 0
    for _ in range(level):
        first, last = first * tree.arity + 1, (last + 1) * tree.arity
    return range(first, min(last + 1, tree.size))


def _sample(number: int, tree: Tree, random: Random) -> list[int]:
    if number > tree.size - 1:
        raise ValueError(f"there are only {tree.size - 1} ranks besides 0")
    return sorted(random.sample(range(1, tree.size), number))


def _listed(text: str, tree: Tree) -> list[int]:
    ranks: set[int] = set()
    for part in text.split(","):
        found = _RANGE.fullmatch(part.strip())
        if found is None:
            known = "all, leaves, level N, N%, N random, or numbers such as 0,7,16-31"
            raise ValueError(f"{text!r} names no ranks; write {known}")
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first or last >= tree.size:
            raise ValueError(f"{part.strip()} is not in a tree of the ranks 0 to {tree.size - 1}")
        ranks.update(range(first, last + 1))
    return sorted(ranks)
