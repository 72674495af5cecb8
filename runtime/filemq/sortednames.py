"""The names of a catalogue in order, at any moment, for as many readers as there are.

A server with 100,000 files tells each client of them in order of name, which may take hours, and files come and go
meanwhile. So the order is kept in blocks of some hundred names that are never changed, only replaced: `order`
returns all of them as they are now, and what a reader holds on to costs the blocks that were replaced since.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

BLOCK_NAMES = 512
"""A block is cut in two when it has twice as many."""

Block = tuple[str, ...]


class Place(NamedTuple):
    """Where a name is: number of the block, and position in it."""

    block: int
    position: int


class Order:
    """All names at one moment."""

    __slots__ = ("_firsts", "blocks")

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self.blocks = blocks
        self._firsts = [block[0] for block in blocks]

    def find(self, name: str) -> Place | None:
        """Return the place of `name`, None where it is not among the names."""
        place = self._place(name)
        block = self.blocks[place.block] if self.blocks else ()
        return place if place.position < len(block) and block[place.position] == name else None

    def find_all(self, names: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield where these names are, which come in order: numbers of blocks, and a bit for each position.

        Those that are not there are passed over. For many names this takes less time than `find` for each.
        """
        start = 0
        while self.blocks and start < len(names):
            number = self._place(names[start]).block
            last = number + 1 == len(self.blocks)
            stop = len(names) if last else bisect_left(names, self._firsts[number + 1], start)
            wanted = set(names[start:stop])
            digits = ["1" if name in wanted else "0" for name in reversed(self.blocks[number])]
            yield number, int("".join(digits), 2)
            start = stop

    def number_of(self, block: Block) -> int | None:
        """Return the number of a block of another moment, None where it was replaced."""
        number = self._place(block[0]).block
        return number if self.blocks and self.blocks[number] is block else None

    def spans(self, path: str) -> Iterator[tuple[int, slice]]:
        """Yield, in order, where the names are that a subscription to `path` covers: blocks and parts of them."""
        if path == "/":
            yield from ((number, slice(0, len(block))) for number, block in enumerate(self.blocks))
            return
        if (own := self.find(path)) is not None:
            yield own.block, slice(own.position, own.position + 1)
        start, end = self._place(f"{path}/"), f"{path}0"  # the digit 0 follows the slash in Unicode
        for number in range(start.block, len(self.blocks)):
            block = self.blocks[number]
            first = start.position if number == start.block else 0
            stop = bisect_left(block, end)
            if first < stop:
                yield number, slice(first, stop)
            if stop < len(block):
                return

    def under(self, path: str) -> Iterator[str]:
        """Yield the names that a subscription to `path` covers, in order."""
        return chain.from_iterable(self.blocks[number][part] for number, part in self.spans(path))

    def _place(self, name: str) -> Place:
        """Return where `name` is, or would be."""
        number = max(bisect_right(self._firsts, name) - 1, 0)
        return Place(number, bisect_left(self.blocks[number], name) if self.blocks else 0)


class SortedNames:
    """Names that come and go; the caller knows which are there."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._firsts: list[str] = []
        self._order: Order | None = Order(())

    def order(self) -> Order:
        """Return all names as they are now."""
        if self._order is None:
            self._order = Order(tuple(self._blocks))
        return self._order

    def add(self, name: str) -> None:
        """Take in a name that is not there."""
        number = max(bisect_right(self._firsts, name) - 1, 0)
        old = self._blocks[number] if self._blocks else ()
        position = bisect_left(old, name)
        block = (*old[:position], name, *old[position:])
        middle = len(block) if len(block) < 2 * BLOCK_NAMES else BLOCK_NAMES
        self._replace(number, [part for part in (block[:middle], block[middle:]) if part])

    def remove(self, name: str) -> None:
        """Take out a name that is there."""
        number = bisect_right(self._firsts, name) - 1
        old = self._blocks[number]
        position = bisect_left(old, name)
        block = old[:position] + old[position + 1 :]
        self._replace(number, [block] if block else [])

    def _replace(self, number: int, parts: list[Block]) -> None:
        self._blocks[number : number + 1] = parts
        self._firsts[number : number + 1] = [part[0] for part in parts]
        self._order = None
