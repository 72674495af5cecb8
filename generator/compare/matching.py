"""Matching of the messages, parts and fields of two editions.

Pairs are formed in stages, the most certain first. Items that a stage has paired are not used in
later stages. Within a stage the best score comes first, then the order of the editions.

    messages   same rule or name; a tag in common; layouts at least `SIMILAR` alike
    parts      same kind and name; fields in common; same place and the same types
    fields     same name; same place in the same part and the same type

Stages that compare for equality (`Same`) use a lookup table; all other scores compare each item with each.

The similarity of two layouts is that of their value fields: the mean of the common share of names
and of types, in order. Constants do not count, because every message of a protocol begins with the
same ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Generic, TypeVar

from specwire.generator import ir
from specwire.generator.compare.structure import structure
from specwire.generator.ir.names import fold

SIMILAR = 0.8
"""Minimum similarity of two messages without a common name or tag that count as renamed."""

MAX_COMPARED = 2_000_000
"""Maximum pairs of fields compared to find renamed messages; later messages count as different."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pair(Generic[T]):
    """The same item in both editions; None in an edition without it."""

    old: T | None
    new: T | None

    @property
    def either(self) -> T:
        """The item of the old edition, else of the new one."""
        found = self.old if self.old is not None else self.new
        assert found is not None, "a pair has a side"
        return found


Score = Callable[[T, T], float]
"""Likelihood that two items are the same; 0 for none."""


Keys = Callable[[T], Iterable[Hashable]]


@dataclass(frozen=True, slots=True)
class Same(Generic[T]):
    """Stage that pairs items with a common key; of several, the first in the order of the editions."""

    of_old: Keys[T]
    of_new: Keys[T]


def same(key: Callable[[T], Hashable]) -> Same[T]:
    """Return the stage that pairs items with equal keys."""
    return Same(lambda item: (key(item),), lambda item: (key(item),))


def pair_up(old: Sequence[T], new: Sequence[T], *stages: Score[T] | Same[T]) -> tuple[Pair[T], ...]:
    """Return pairs of all items: in the order of `old`, then those that only `new` has."""
    found: dict[int, int] = {}
    for stage in stages:
        taken = set(found.values())
        left = [(i, item) for i, item in enumerate(old) if i not in found]
        right = [(j, item) for j, item in enumerate(new) if j not in taken]
        if isinstance(stage, Same):
            found.update(_equal(left, right, stage))
            continue
        scored = [(-value, i, j) for i, one in left for j, other in right if (value := stage(one, other)) > 0]
        for _, i, j in sorted(scored):
            if i not in found and j not in taken:
                found[i] = j
                taken.add(j)
    pairs = [Pair(item, new[found[i]] if i in found else None) for i, item in enumerate(old)]
    taken = set(found.values())
    return (*pairs, *(Pair(None, item) for j, item in enumerate(new) if j not in taken))


def _equal(
    left: Sequence[tuple[int, T]], right: Sequence[tuple[int, T]], stage: Same[T]
) -> Iterator[tuple[int, int]]:
    """Yield the position of each old item with that of the first remaining new item that shares a key."""
    places: dict[Hashable, list[int]] = {}
    for j, item in reversed(right):
        for key in stage.of_new(item):
            places.setdefault(key, []).append(j)
    taken: set[int] = set()
    for i, item in left:
        first: list[int] = []
        for key in stage.of_old(item):
            waiting = places.get(key, [])
            while waiting and waiting[-1] in taken:
                waiting.pop()
            first += waiting[-1:]
        if first:
            taken.add(min(first))
            yield i, min(first)


def match_messages(old: ir.Protocol, new: ir.Protocol) -> tuple[Pair[ir.Message], ...]:
    """Return the pairs of messages of `old` and `new`."""
    found_alike = old.selectors == new.selectors

    def tags(message: ir.Message) -> tuple[str, ...]:
        return message.tags if found_alike else ()

    layouts = _Layouts()
    by_rule: Same[ir.Message] = same(lambda message: fold(message.rule))
    by_name: Same[ir.Message] = same(lambda message: fold(message.name))
    return pair_up(old.messages, new.messages, by_rule, by_name, Same(tags, tags), layouts.similar)


class _Layouts:
    """Comparison of the layouts of messages. Each layout is converted once."""

    def __init__(self) -> None:
        self._left = MAX_COMPARED
        self._known: dict[int, tuple[ir.Message, tuple[list[str], list[str]]]] = {}
        """Names and types by the identity of a message; hashing it takes time in proportion to its size."""

    def similar(self, left: ir.Message, right: ir.Message) -> float:
        """Return the similarity of two layouts, as defined above; 0 if it is below `SIMILAR`."""
        (names, types), (other_names, other_types) = self._written(left), self._written(right)
        self._left -= 1 + len(names) * len(other_names)
        if not names or not other_names or self._left < 0:
            return 0.0
        value = (_common(names, other_names) + _common(types, other_types)) / 2
        return value if value >= SIMILAR else 0.0

    def _written(self, message: ir.Message) -> tuple[list[str], list[str]]:
        if id(message) not in self._known:
            fields = [field for field in message.fields if not field.constant]
            types = [repr(structure(field.type)) for field in fields]
            self._known[id(message)] = message, ([field.name for field in fields], types)
        return self._known[id(message)][1]


def _common(left: list[str], right: list[str]) -> float:
    return SequenceMatcher(None, left, right, autojunk=False).ratio()


@dataclass(frozen=True, slots=True)
class Place:
    """A field and its place: the number of its part, and its numbers from the part's start and end."""

    field: ir.Field
    part: int
    index: int
    from_end: int


@dataclass(frozen=True, slots=True)
class PartPlace:
    """A part and its numbers from the start and the end of its message."""

    part: ir.Part
    number: int
    from_end: int


@dataclass(frozen=True, slots=True)
class MessageMatch:
    """Two editions of one message, with their parts and fields paired."""

    old: ir.Message
    new: ir.Message
    parts: tuple[Pair[PartPlace], ...]
    fields: tuple[Pair[Place], ...]

    @property
    def same_parts(self) -> dict[int, int]:
        """The numbers of parts in the new edition, by their numbers in the old one."""
        return {pair.old.number: pair.new.number for pair in self.parts if pair.old and pair.new}

    @property
    def label(self) -> str:
        """The message's name, or both names if it was renamed."""
        return self.old.name if self.old.name == self.new.name else f"{self.old.name} -> {self.new.name}"


def fields_of(part: ir.Part) -> tuple[ir.Field, ...]:
    """Return the fields of any part."""
    return part.fields if isinstance(part, ir.Frame) else (part.field,)


def match_layouts(old: ir.Message, new: ir.Message) -> MessageMatch:
    """Return the pairs of parts and fields of `old` and `new`."""
    left, right = _places(old), _places(new)
    by_name: Same[Place] = same(lambda place: place.field.name)
    named = pair_up(left, right, by_name)
    common = {(pair.old.part, pair.new.part) for pair in named if pair.old and pair.new}
    common_of_old, common_of_new = _by_either(common)
    parts = pair_up(
        _part_places(old),
        _part_places(new),
        same(lambda place: (type(place.part), place.part.name)),
        Same(
            lambda place: common_of_old.get(place.number, ()),
            lambda place: common_of_new.get(place.number, ()),
        ),
        Same(_part_keys, _part_keys),
    )
    together = {pair.old.number: pair.new.number for pair in parts if pair.old and pair.new}

    def of_old(place: Place) -> Iterator[Hashable]:
        if place.part in together:
            yield from _place_keys(place, together[place.part])

    return MessageMatch(
        old,
        new,
        parts,
        pair_up(left, right, by_name, Same(of_old, lambda place: _place_keys(place, place.part))),
    )


def _by_either(
    pairs: Iterable[tuple[int, int]],
) -> tuple[dict[int, list[tuple[int, int]]], dict[int, list[tuple[int, int]]]]:
    """Return the pairs by their first numbers, and by their second numbers."""
    first: dict[int, list[tuple[int, int]]] = {}
    second: dict[int, list[tuple[int, int]]] = {}
    for pair in pairs:
        first.setdefault(pair[0], []).append(pair)
        second.setdefault(pair[1], []).append(pair)
    return first, second


def _place_keys(place: Place, part: int) -> Iterator[Hashable]:
    """Yield the keys of a field: its type and position in a part, from the front and from the end."""
    type = structure(place.field.type)
    yield part, "front", place.index, type
    yield part, "end", place.from_end, type


def _part_keys(place: PartPlace) -> Iterator[Hashable]:
    """Yield the keys of a part: its kind, its types and its position, from the front and from the end."""
    types = tuple(structure(field.type) for field in fields_of(place.part))
    yield type(place.part), "front", place.number, types
    yield type(place.part), "end", place.from_end, types


def _places(message: ir.Message) -> list[Place]:
    return [
        Place(field, number, index, len(fields_of(part)) - index)
        for number, part in enumerate(message.parts)
        for index, field in enumerate(fields_of(part))
    ]


def _part_places(message: ir.Message) -> list[PartPlace]:
    count = len(message.parts)
    return [PartPlace(part, number, count - number) for number, part in enumerate(message.parts)]


def in_order(old: Sequence[int], new: Sequence[int]) -> set[int]:
    """Return the longest subsequence with the same order in both sequences of the same items."""
    rank = {item: position for position, item in enumerate(new)}
    least: list[int] = []
    """For each length from 1, the least rank at which a subsequence of that length ends."""
    ends: list[int] = []
    """The items at these ranks."""
    before: dict[int, int | None] = {}
    for item in old:
        place = bisect_left(least, rank[item])
        before[item] = ends[place - 1] if place else None
        least[place : place + 1] = [rank[item]]
        ends[place : place + 1] = [item]
    found: set[int] = set()
    last = ends[-1] if ends else None
    while last is not None:
        found.add(last)
        last = before[last]
    return found
