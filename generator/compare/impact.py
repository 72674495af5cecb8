"""Consequences of a comparison: who must act, and which tables change.

A change belongs to a message, or to everything that peers exchange (flags, dialogs, sockets). The
roles that send a message, in the edition of the writer, are its writers; the other roles of the
dialog are its readers. Changes that the reader reads in any case need no action.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from specwire.generator import ir
from specwire.generator.compare import compare
from specwire.generator.compare.comparison import (
    NOT_STORED,
    Change,
    Comparison,
    Effect,
    Judgement,
    Verdict,
    worst,
)
from specwire.generator.compare.context import Context
from specwire.generator.compare.tables import SAME_COLUMN

Age = Literal["old", "new"]
PEER = "peer"
"""Name of the sides of a change that concerns all roles, or a protocol without roles."""


class Action(msgspec.Struct, frozen=True):
    """A reader that must be updated, because it cannot read all data of the other edition.

    The verdict is that it reads `subjects` only under a condition, or not at all. These are messages, or
    parts of the protocol such as ``flags``; `why` are the reasons.
    """

    reader: str
    reader_edition: Age
    writer: str
    writer_edition: Age
    verdict: Verdict
    subjects: tuple[str, ...]
    why: tuple[str, ...]


class TableChange(msgspec.Struct, frozen=True):
    """An effect on a table; `table` is a message class, or the part of the protocol that columns hold."""

    table: str
    effect: Effect
    why: str


class Impact(msgspec.Struct, frozen=True):
    """Peers that must act after a change, and tables that change."""

    actions: tuple[Action, ...]
    tables: tuple[TableChange, ...]

    @property
    def must_act(self) -> bool:
        """Whether anybody must act: a reader, or the owner of a table that needs a rewrite."""
        return bool(self.actions) or any(table.effect is Effect.REWRITE for table in self.tables)


@dataclass(frozen=True, slots=True)
class EditionChange:
    """Two editions of a protocol, with their comparison and its consequences."""

    old: ir.Protocol
    new: ir.Protocol
    comparison: Comparison
    impact: Impact


@dataclass(frozen=True, slots=True)
class ProtocolChange:
    """A protocol that differs from a commit; `change` is None if it was added or removed."""

    name: str
    status: Literal["changed", "added", "removed"]
    change: EditionChange | None = None


def compare_editions(old: ir.Protocol, new: ir.Protocol) -> EditionChange:
    """Return what changed between two editions, and what follows from it."""
    comparison, messages = compare(old, new), _Messages(Context(old, new))
    impact = Impact(tuple(_actions(comparison, messages)), tuple(_tables(comparison, messages)))
    return EditionChange(old, new, comparison, impact)


class _Messages:
    """The messages of both editions by the groups of their changes."""

    def __init__(self, context: Context) -> None:
        self.old, self.new = context.old, context.new
        self._pairs: dict[str, list[tuple[ir.Message | None, ir.Message | None]]] = {}
        labels = iter(match.label for match in context.layouts)
        for pair in context.messages:
            label = next(labels) if pair.old and pair.new else pair.either.name
            self._pairs.setdefault(label, []).append((pair.old, pair.new))

    def directions(self, group: str, writer: Age) -> Iterator[tuple[str, str]]:
        """Yield the roles that write and read what belongs to `group`, by name."""
        protocol, side = (self.old, 0) if writer == "old" else (self.new, 1)
        names = {role.letter: role.name or role.letter for role in protocol.roles}
        messages = [pair[side] for pair in self._pairs.get(group, ())]
        found = {
            (names.get(sender, sender), names.get(reader, reader)): None
            for message in messages
            if message
            for sender in message.senders
            for reader in _other_roles(message, sender, protocol)
        }
        yield from found or [(PEER, PEER)]

    def tables(self, group: str) -> list[str]:
        """Return the classes of the messages of `group`, or the group itself."""
        pairs = self._pairs.get(group, ())
        return [message.class_name for old, new in pairs if (message := new or old)] or [group]


def _other_roles(message: ir.Message, sender: str, protocol: ir.Protocol) -> list[str]:
    """Return the other roles of the dialogs in which `sender` sends the message."""
    label = f"{sender}:{message.class_name}"
    roles = (role for dialog in protocol.dialogs if label in dialog.labels for role in dialog.roles)
    return [role for role in dict.fromkeys(roles) if role != sender]


def _actions(comparison: Comparison, messages: _Messages) -> Iterator[Action]:
    ages: tuple[tuple[Age, Age], ...] = (("old", "new"), ("new", "old"))
    for reader, writer in ages:
        sides: dict[tuple[str, str], dict[str, list[Change]]] = {}
        for change in comparison.changes:
            if _judgement(change, reader).verdict is not Verdict.YES:
                for names in messages.directions(change.group, writer):
                    sides.setdefault(names, {}).setdefault(change.group, []).append(change)
        for (sender, receiver), groups in sides.items():
            for verdict, subjects, why in _by_verdict(groups, reader):
                yield Action(receiver, reader, sender, writer, verdict, subjects, why)


def _by_verdict(
    groups: Mapping[str, Iterable[Change]], reader: Age
) -> Iterator[tuple[Verdict, tuple[str, ...], tuple[str, ...]]]:
    """Yield the groups that are never read with the reasons, then those that are read under conditions."""
    judged = {group: [_judgement(change, reader) for change in found] for group, found in groups.items()}
    overall = {group: worst(one.verdict for one in found) for group, found in judged.items()}
    for verdict in (Verdict.NO, Verdict.DEPENDS):
        subjects = tuple(group for group in judged if overall[group] is verdict)
        why = dict.fromkeys(one.why for group in subjects for one in judged[group] if one.verdict is verdict)
        if subjects:
            yield verdict, subjects, tuple(why)


def _judgement(change: Change, reader: Age) -> Judgement:
    return change.old_reads_new if reader == "old" else change.new_reads_old


def _tables(comparison: Comparison, messages: _Messages) -> Iterator[TableChange]:
    unchanged = (NOT_STORED.why, SAME_COLUMN.why)
    found = {
        TableChange(table, change.tables.effect, change.tables.why): None
        for change in comparison.changes
        if change.tables.why not in unchanged
        for table in messages.tables(change.group)
    }
    yield from found
