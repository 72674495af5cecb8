"""Sets of published names, one bit for each name.

What one client holds or lacks of 100,000 files is a set of names. As a set of strings it would take some
megabytes for each client; as bits beside the order that all clients share (`sortednames`) it takes kilobytes, and
nothing worth mentioning where it is empty. Names that come into the catalogue later are never in such a set.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, compress

from specwire.runtime.filemq.sortednames import Order, Place


class NameSet:
    """A set of names of one `Order`; empty, or all names that a subscription to `path` covers."""

    __slots__ = ("_masks", "_order", "_start")

    def __init__(self, order: Order, path: str | None = None) -> None:
        self._order = order
        self._masks = [0] * len(order.blocks)  # bit n of a mask stands for name n of the block
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
        """Put names in, as far as they are in the order; many at once take less time."""
        for number, mask in self._order.find_all(sorted(names)):
            self._masks[number] |= mask
        self._start = 0

    def discard(self, name: str) -> bool:
        """Take a name out; False where it is not in the set."""
        place = self._order.find(name)
        if place is None or not self._masks[place.block] >> place.position & 1:
            return False
        self._masks[place.block] &= ~(1 << place.position)
        return True

    def pop_first(self) -> str | None:
        """Take out the first name in order and return it, None where there is none."""
        if (place := self._first_place()) is None:
            return None
        self._masks[place.block] &= ~(1 << place.position)
        return self._order.blocks[place.block][place.position]

    def update(self, other: NameSet) -> None:
        """Put in the names of another set, of whatever order, as far as they are in this order."""
        for number, mask in self._aligned(other):
            self._masks[number] |= mask
        self._start = 0

    def difference_update(self, other: NameSet) -> None:
        """Take out the names of another set, of whatever order."""
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
        """Yield the other's masks for the blocks of this order: as they are, or found anew by the names."""
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
