"""Published names in order, and sets of them with one bit for each name.

A server with 100,000 files announces each of them to every client in order of name. That may take
hours, and files come and go meanwhile. `SortedNames` therefore keeps the names in blocks of some
hundred that never change and are only replaced. `Order` is all of them at one moment; a reader that
keeps an old one costs the blocks that were replaced since.

A `NameSet` is what one client holds or lacks. A set of strings would take megabytes for each
client; bits beside a shared order take kilobytes. Names that are published later are never in it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, compress
from typing import NamedTuple

BLOCK_NAMES = 512
"""A block is split when it has twice as many names."""

Block = tuple[str, ...]


class Place(NamedTuple):
    """Place of a name: number of the block, and position in it."""

    block: int
    position: int


class Order:
    """All names at one moment."""

    __slots__ = ("_firsts", "blocks")

    def __init__(self, blocks: tuple[Block, ...]) -> None:
        self.blocks = blocks
        self._firsts = [block[0] for block in blocks]

    def find(self, name: str) -> Place | None:
        """Return the place of `name`, None if it is not among the names."""
        place = self._place(name)
        block = self.blocks[place.block] if self.blocks else ()
        return place if place.position < len(block) and block[place.position] == name else None

    def find_all(self, names: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Yield the places of sorted names: block numbers, each with a bit for every position.

        Names that are not there are skipped. For many names this is faster than `find` for each.
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
        """Return the number of a block of another moment, None if it was replaced."""
        number = self._place(block[0]).block
        return number if self.blocks and self.blocks[number] is block else None

    def spans(self, path: str) -> Iterator[tuple[int, slice]]:
        """Yield the places that a subscription to `path` covers, in order: parts of blocks."""
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
        """Return the place that `name` has or would have."""
        number = max(bisect_right(self._firsts, name) - 1, 0)
        return Place(number, bisect_left(self.blocks[number], name) if self.blocks else 0)


class SortedNames:
    """Names that come and go. The caller knows which are present."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._firsts: list[str] = []
        self._order: Order | None = Order(())

    def order(self) -> Order:
        """Return all names of this moment."""
        if self._order is None:
            self._order = Order(tuple(self._blocks))
        return self._order

    def add(self, name: str) -> None:
        """Add a name that is not present."""
        number = max(bisect_right(self._firsts, name) - 1, 0)
        old = self._blocks[number] if self._blocks else ()
        position = bisect_left(old, name)
        block = (*old[:position], name, *old[position:])
        middle = len(block) if len(block) < 2 * BLOCK_NAMES else BLOCK_NAMES
        self._replace(number, [part for part in (block[:middle], block[middle:]) if part])

    def remove(self, name: str) -> None:
        """Remove a name that is present."""
        number = bisect_right(self._firsts, name) - 1
        old = self._blocks[number]
        position = bisect_left(old, name)
        block = old[:position] + old[position + 1 :]
        self._replace(number, [block] if block else [])

    def _replace(self, number: int, parts: list[Block]) -> None:
        self._blocks[number : number + 1] = parts
        self._firsts[number : number + 1] = [part[0] for part in parts]
        self._order = None


class NameSet:
    """Set of names of one `Order`: empty at first, or all that a subscription to `path` covers."""

    __slots__ = ("_masks", "_order", "_start")

    def __init__(self, order: Order, path: str | None = None) -> None:
        self._order = order
        self._masks = [0] * len(order.blocks)  # bit n of a mask means name n of the block
        self._start = 0  # no bit is set in the masks before this one
        if path is not None:
            for number, part in order.spans(path):
                self._masks[number] |= (1 << part.stop) - (1 << part.start)

    def __bool__(self) -> bool:
        return self._first_place() is not None

    def __len__(self) -> int:
        return sum(mask.bit_count() for mask in self._masks)

    def __contains__(self, name: str) -> bool:
        place = self._order.find(name)
        return place is not None and bool(self._masks[place.block] >> place.position & 1)

    def __iter__(self) -> Iterator[str]:
        for number, mask in enumerate(self._masks):
            yield from self._names(number, mask)

    def add(self, names: Iterable[str]) -> None:
        """Add the names that are in the order."""
        for number, mask in self._order.find_all(sorted(names)):
            self._masks[number] |= mask
        self._start = 0

    def discard(self, name: str) -> bool:
        """Remove a name; return False if it is not in the set."""
        place = self._order.find(name)
        if place is None or not self._masks[place.block] >> place.position & 1:
            return False
        self._masks[place.block] &= ~(1 << place.position)
        return True

    def pop_first(self) -> str | None:
        """Remove the first name in order and return it, None if the set is empty."""
        if (place := self._first_place()) is None:
            return None
        self._masks[place.block] &= ~(1 << place.position)
        return self._order.blocks[place.block][place.position]

    def update(self, other: NameSet) -> None:
        """Add the names of a set of any order that are in this order."""
        for number, mask in self._aligned(other):
            self._masks[number] |= mask
        self._start = 0

    def difference_update(self, other: NameSet) -> None:
        """Remove the names of a set of any order."""
        for number, mask in self._aligned(other):
            self._masks[number] &= ~mask

    def _first_place(self) -> Place | None:
        for number in range(self._start, len(self._masks)):
            self._start = number
            if mask := self._masks[number]:
                return Place(number, (mask & -mask).bit_length() - 1)
        return None

    def _names(self, number: int, mask: int) -> Iterator[str]:
        return compress(self._order.blocks[number], map("1".__eq__, reversed(f"{mask:b}")))

    def _aligned(self, other: NameSet) -> Iterator[tuple[int, int]]:
        """Yield the other set's masks for the blocks of this order; names of replaced blocks are searched."""
        replaced: list[Iterator[str]] = []
        for number, mask in enumerate(other._masks):
            if not mask:
                continue
            same = self._order.number_of(other._order.blocks[number])
            if same is not None:
                yield same, mask
            else:
                replaced.append(other._names(number, mask))
        yield from self._order.find_all([*chain.from_iterable(replaced)])
