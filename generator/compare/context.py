"""Context of a comparison: both editions, and their names for the same items."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from specwire.generator import ir
from specwire.generator.compare.comparison import Readings
from specwire.generator.compare.matching import MessageMatch, Pair, match_layouts, match_messages, pair_up
from specwire.generator.compare.presence import Side, finds
from specwire.generator.compare.values import Members, Vocabulary

COMMON_MEMBERS = 0.5
"""Minimum common share of the larger one's members for enumerations of different names to be the same."""


@dataclass(frozen=True)
class Context:
    """Two editions of a protocol."""

    old: ir.Protocol
    new: ir.Protocol

    @cached_property
    def messages(self) -> tuple[Pair[ir.Message], ...]:
        """The messages of both editions, paired."""
        return match_messages(self.old, self.new)

    @cached_property
    def layouts(self) -> tuple[MessageMatch, ...]:
        """The messages that both editions have, their parts and fields paired."""
        return tuple(match_layouts(pair.old, pair.new) for pair in self.messages if pair.old and pair.new)

    @cached_property
    def enums(self) -> tuple[Pair[ir.Enum], ...]:
        """The enumerations of both editions, paired by name, else by members in common."""
        return pair_up(self.old.enums, self.new.enums, _same_name, _common_members)

    @cached_property
    def words(self) -> Vocabulary:
        """The enumerations, with the new edition as writer and the old one as reader."""
        same = frozenset((pair.new.name, pair.old.name) for pair in self.enums if pair.old and pair.new)
        return Vocabulary(_members(self.new), _members(self.old), same)

    def class_of(self, old: str) -> str:
        """Return the new edition's name of the message class `old`."""
        return {match.old.class_name: match.new.class_name for match in self.layouts}.get(old, old)

    def name_of(self, old: str) -> str:
        """Return the new edition's name of the message that errors of the old edition call `old`."""
        return {match.old.name: match.new.name for match in self.layouts}.get(old, old)

    def part_names(self) -> dict[str, set[str]]:
        """The names of parts in the new edition, by their name in the old one."""
        names: dict[str, set[str]] = {}
        for match in self.layouts:
            for pair in match.parts:
                if pair.old and pair.new:
                    names.setdefault(pair.old.part.name, set()).add(pair.new.part.name)
        return names

    def presence(self, match: MessageMatch, old: ir.Part | None, new: ir.Part | None) -> Readings:
        """Return whether each edition finds the part where the other one writes it."""
        before, after = Side(match.old, self.old.flags), Side(match.new, self.new.flags)
        return finds(after, new, before, old), finds(before, old, after, new)


def _same_name(left: ir.Enum, right: ir.Enum) -> float:
    return float(left.name == right.name)


def _common_members(left: ir.Enum, right: ir.Enum) -> float:
    common = len(set(left.members) & set(right.members))
    share = common / max(len(left.members), len(right.members), 1)
    return share if share >= COMMON_MEMBERS else 0.0


def _members(protocol: ir.Protocol) -> Members:
    return {enum.name: tuple(value for _, value in enum.members) for enum in protocol.enums}
