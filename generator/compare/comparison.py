"""What a comparison of two editions says: changes, each with its judgements, and the verdict of the whole.

Two peers of different editions meet in two directions, and each change is judged in both: an *old reader
of new data* (a peer or a program that was not regenerated), and a *new reader of old data* (one that was,
and reads an old peer or a capture). `Verdict` says how far it reads what the other edition writes as it
was meant. A third judgement is for rows that were written to tables before: `Effect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, Literal, TypeVar

import msgspec

from specwire.generator import ir

FORMAT_VERSION = 1
"""Raised whenever a reader of the JSON form would have to change."""


class Verdict(StrEnum):
    """Whether a reader of one edition reads what the other writes as it was meant.

    `DEPENDS`: where the condition that the sentence names holds; what does not meet it is refused or misread.
    `NO`: there is no condition that a writer of that edition could keep to.
    """

    YES = "yes"
    DEPENDS = "depends"
    NO = "no"


class Effect(StrEnum):
    """What a change asks of a table that holds rows of the old edition.

    `APPEND`: new rows go in as they are. `COLUMN`: the table needs a column more (Parquet's and Delta's
    merging of schemas adds it). `REWRITE`: a column has another type, or its values another meaning.
    """

    APPEND = "safe to append"
    COLUMN = "needs a new column"
    REWRITE = "needs a rewrite"


Overall = Literal["same", "compatible", "conditional", "breaking"]
Subject = Literal[
    "message", "part", "field", "flag", "enumeration", "constant", "selector",
    "role", "dialog", "timer", "answer", "stream",
]  # fmt: skip
Kind = Literal[
    "added", "removed", "renamed", "moved", "resized", "retyped", "value", "tag", "meaning", "characters",
    "presence", "default", "letter", "sentinels", "unit", "socket", "framing", "key", "order",
]  # fmt: skip


class Judgement(msgspec.Struct, frozen=True):
    """A verdict on one direction, and why."""

    verdict: Verdict
    why: str


T = TypeVar("T")

Texts = tuple[str | None, str | None]
"""What was and what is, in words."""

Readings = tuple[Judgement, Judgement]
"""How the old reader reads new data, and how the new reader reads old data."""


class TableJudgement(msgspec.Struct, frozen=True):
    """An effect on existing tables, and why."""

    effect: Effect
    why: str


class Change(msgspec.Struct, frozen=True):
    """One difference between the editions.

    `group` is what the change belongs to: a message as ``keepalive`` or, renamed, ``keepalive -> control``;
    ``flags``, ``enumeration operation``, ``dialog rpc`` and so on otherwise. `name` is the thing inside it
    that changed, spelled as in the old edition unless it is new. `old` and `new` say what was and what is,
    None where there is nothing.
    """

    group: str
    subject: Subject
    kind: Kind
    name: str
    old: str | None
    new: str | None
    old_reads_new: Judgement
    new_reads_old: Judgement
    tables: TableJudgement


class Edition(msgspec.Struct, frozen=True):
    """Which specification one side of a comparison is."""

    name: str
    edition: str
    source: str
    digest: str


class Comparison(msgspec.Struct, frozen=True):
    """All that differs between two editions, messages first, in the order of the old edition."""

    old: Edition
    new: Edition
    changes: tuple[Change, ...]

    @property
    def old_reads_new(self) -> Verdict:
        """How far an old reader reads new data: the worst of all changes."""
        return worst(change.old_reads_new.verdict for change in self.changes)

    @property
    def new_reads_old(self) -> Verdict:
        """How far a new reader reads old data: the worst of all changes."""
        return worst(change.new_reads_old.verdict for change in self.changes)

    @property
    def tables(self) -> Effect:
        """The most that any change asks of existing tables."""
        order = list(Effect)
        return max((change.tables.effect for change in self.changes), key=order.index, default=Effect.APPEND)

    @property
    def verdict(self) -> Overall:
        """The whole in one word; ``conditional`` where nothing is ``no`` and something ``depends``."""
        if not self.changes:
            return "same"
        by_verdict: dict[Verdict, Overall] = {
            Verdict.YES: "compatible",
            Verdict.DEPENDS: "conditional",
            Verdict.NO: "breaking",
        }
        return by_verdict[worst((self.old_reads_new, self.new_reads_old))]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison for programs: the summary first, then every change."""
        return {
            "format_version": FORMAT_VERSION,
            "old": msgspec.to_builtins(self.old),
            "new": msgspec.to_builtins(self.new),
            "verdict": self.verdict,
            "old_reads_new": str(self.old_reads_new),
            "new_reads_old": str(self.new_reads_old),
            "tables": str(self.tables),
            "changes": msgspec.to_builtins(self.changes),
        }


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst of `verdicts`, ``yes`` where there is none."""
    return max(verdicts, key=list(Verdict).index, default=Verdict.YES)


def edition_of(protocol: ir.Protocol) -> Edition:
    """Return what names `protocol` in a comparison."""
    return Edition(protocol.name, protocol.edition, protocol.source, protocol.digest)


def yes(why: str) -> Judgement:
    """Return a judgement without conditions."""
    return Judgement(Verdict.YES, why)


def depends(why: str) -> Judgement:
    """Return a judgement that names its condition."""
    return Judgement(Verdict.DEPENDS, why)


def no(why: str) -> Judgement:
    """Return a judgement that nothing mends."""
    return Judgement(Verdict.NO, why)


NOT_STORED = TableJudgement(Effect.APPEND, "no column holds it")
ALIKE = yes("the octets are the same")
NAME_ONLY = yes("a name is not on the wire")


def change(
    group: str, subject: Subject, name: str, texts: Texts, readings: Readings,
    tables: TableJudgement = NOT_STORED, kind: Kind | None = None,
) -> Change:  # fmt: skip
    """Return a change; without `kind`, None in one edition is its coming or going, else its value changed."""
    old, new = texts
    kind = kind or ("added" if old is None else "removed" if new is None else "value")
    return Change(group, subject, kind, name, old, new, *readings, tables)


def each(describe: Callable[[T], str], old: T | None, new: T | None) -> Texts:
    """Return both editions of a thing in words, None where there is none."""
    return None if old is None else describe(old), None if new is None else describe(new)
