"""Which message, part and field of one edition is which of the other.

Pairs are made in stages, the surest first; what a stage has paired is out of the later ones, and within a
stage the best score goes first, then the order of the editions.

    messages   same rule or name; a tag in common; layouts at least `SIMILAR` alike
    parts      same kind and name; fields in common; same place and the same types
    fields     same name; same place in the same part and the same type

Two layouts are as alike as their value fields: the mean of how much of the names and how much of the types
is common, in order. Constants do not count, since every message of a protocol begins with the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Generic, TypeVar

from specwire.generator import ir
from specwire.generator.compare.structure import structure
from specwire.generator.names import fold

SIMILAR = 0.8
"""From this score on, a message without its like in name and tag is taken for the other one renamed."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Pair(Generic[T]):
    """The same thing in both editions; None where one of them lacks it."""

    old: T | None
    new: T | None

    @property
    def either(self) -> T:
        """The thing as the old edition has it, else as the new one."""
        found = self.old if self.old is not None else self.new
        assert found is not None, "a pair has a side"
        return found


Score = Callable[[T, T], float]
"""How surely two things are the same, 0 for not at all."""


def pair_up(old: Sequence[T], new: Sequence[T], *stages: Score[T]) -> tuple[Pair[T], ...]:
    """Return pairs of everything in `old` and `new`: in the order of `old`, then what only `new` has."""
    found: dict[int, int] = {}
    for score in stages:
        taken = set(found.values())
        scored = [
            (-value, i, j)
            for i, left in enumerate(old)
            if i not in found
            for j, right in enumerate(new)
            if j not in taken and (value := score(left, right)) > 0
        ]
        for _, i, j in sorted(scored):
            if i not in found and j not in taken:
                found[i] = j
                taken.add(j)
    pairs = [Pair(item, new[found[i]] if i in found else None) for i, item in enumerate(old)]
    taken = set(found.values())
    return (*pairs, *(Pair(None, item) for j, item in enumerate(new) if j not in taken))


def match_messages(old: ir.Protocol, new: ir.Protocol) -> tuple[Pair[ir.Message], ...]:
    """Return which message of `old` is which of `new`."""
    found_alike = old.selectors == new.selectors

    def same_tag(left: ir.Message, right: ir.Message) -> float:
        return float(found_alike and bool(set(left.tags) & set(right.tags)))

    def similar(left: ir.Message, right: ir.Message) -> float:
        value = similarity(left, right)
        return value if value >= SIMILAR else 0.0

    return pair_up(old.messages, new.messages, _same_rule, _same_name, same_tag, similar)


def _same_rule(left: ir.Message, right: ir.Message) -> float:
    return float(fold(left.rule) == fold(right.rule))


def _same_name(left: ir.Message, right: ir.Message) -> float:
    return float(fold(left.name) == fold(right.name))


def similarity(left: ir.Message, right: ir.Message) -> float:
    """Return how much two layouts have in common, from 0 to 1; see the module's text."""
    values = [[field for field in message.fields if not field.constant] for message in (left, right)]
    if not all(values):
        return 0.0
    names, types = ([[key(f) for f in fields] for fields in values] for key in (_name, _shape))
    return (_common(*names) + _common(*types)) / 2


def _name(field: ir.Field) -> str:
    return field.name


def _shape(field: ir.Field) -> str:
    return repr(structure(field.type))


def _common(left: list[str], right: list[str]) -> float:
    return SequenceMatcher(None, left, right, autojunk=False).ratio()


@dataclass(frozen=True, slots=True)
class Place:
    """A field and where it stands: number of its part, its number in the part, and from the part's end."""

    field: ir.Field
    part: int
    index: int
    from_end: int


@dataclass(frozen=True, slots=True)
class PartPlace:
    """A part and where it stands, from the front and from the end of its message."""

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
        """For the number of a part of the old edition, that of the new one."""
        return {pair.old.number: pair.new.number for pair in self.parts if pair.old and pair.new}

    @property
    def label(self) -> str:
        """The message's name, both where it was renamed."""
        return self.old.name if self.old.name == self.new.name else f"{self.old.name} -> {self.new.name}"


def fields_of(part: ir.Part) -> tuple[ir.Field, ...]:
    """Return the fields of any part."""
    return part.fields if isinstance(part, ir.Frame) else (part.field,)


def match_layouts(old: ir.Message, new: ir.Message) -> MessageMatch:
    """Return which part and field of `old` is which of `new`."""
    left, right = _places(old), _places(new)
    named = pair_up(left, right, _same_field_name)
    common = {(pair.old.part, pair.new.part) for pair in named if pair.old and pair.new}

    def same_part(one: PartPlace, other: PartPlace) -> float:
        return float(type(one.part) is type(other.part) and one.part.name == other.part.name)

    def common_fields(one: PartPlace, other: PartPlace) -> float:
        return float((one.number, other.number) in common)

    parts = pair_up(_part_places(old), _part_places(new), same_part, common_fields, _same_place)
    together = {(pair.old.number, pair.new.number) for pair in parts if pair.old and pair.new}

    def renamed(one: Place, other: Place) -> float:
        here = (one.part, other.part) in together
        same_place = one.index == other.index or one.from_end == other.from_end
        return float(here and same_place and structure(one.field.type) == structure(other.field.type))

    return MessageMatch(old, new, parts, pair_up(left, right, _same_field_name, renamed))


def _same_field_name(left: Place, right: Place) -> float:
    return float(left.field.name == right.field.name)


def _same_place(left: PartPlace, right: PartPlace) -> float:
    types = [[structure(field.type) for field in fields_of(place.part)] for place in (left, right)]
    place = left.number == right.number or left.from_end == right.from_end
    return float(type(left.part) is type(right.part) and place and types[0] == types[1])


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
    """Return the longest run of items that stand in the same order in both sequences of the same items."""
    rank = {item: position for position, item in enumerate(new)}
    runs: list[list[int]] = [[]]
    for item in old:
        before = [run for run in runs if not run or rank[run[-1]] < rank[item]]
        runs.append([*_longest(before), item])
    return set(_longest(runs))


def _longest(runs: list[list[int]]) -> list[int]:
    return max(runs, key=lambda run: len(run))
