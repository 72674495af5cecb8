"""Result of a comparison of two editions: the changes with their judgements, and the overall verdict.

Each change is judged in two directions. An *old reader of new data* is a peer or a program that was
not regenerated; a *new reader of old data* was regenerated and reads an old peer or a capture.
`Verdict` states whether the reader reads data of the other edition correctly. `Effect` is the
judgement for rows already written to tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, Literal, TypeVar

import msgspec

from specwire.generator import ir

FORMAT_VERSION = 1
"""Increased whenever readers of the JSON form must change."""


class Verdict(StrEnum):
    """Whether a reader of one edition reads data of the other one correctly.

    `DEPENDS`: only if the condition in the sentence holds; other data is rejected or misread. `NO`:
    there is no condition under which it does.
    """

    YES = "yes"
    DEPENDS = "depends"
    NO = "no"


class Effect(StrEnum):
    """Effect of a change on a table with rows of the old edition.

    `APPEND`: new rows are appended unchanged. `COLUMN`: the table needs another column (schema
    merging of Parquet and Delta adds it). `REWRITE`: a column has another type, or its values have
    another meaning.
    """

    APPEND = "safe to append"
    COLUMN = "needs a new column"
    REWRITE = "needs a rewrite"


Overall = Literal["same", "compatible", "conditional", "breaking"]
Subject = Literal[
    "message",
    "part",
    "field",
    "flag",
    "enumeration",
    "constant",
    "selector",
    "limit",
    "role",
    "dialog",
    "timer",
    "answer",
    "stream",
    "payload",
    "key",
]
Kind = Literal[
    "added",
    "removed",
    "renamed",
    "moved",
    "resized",
    "retyped",
    "value",
    "tag",
    "meaning",
    "characters",
    "presence",
    "default",
    "letter",
    "sentinels",
    "unit",
    "socket",
    "framing",
    "key",
    "order",
]


class Judgement(msgspec.Struct, frozen=True):
    """A verdict on one direction, with the reason."""

    verdict: Verdict
    why: str


T = TypeVar("T")

Texts = tuple[str | None, str | None]
"""The old and the new state, in words."""

Readings = tuple[Judgement, Judgement]
"""Verdicts of an old reader on new data, and of a new reader on old data."""


class TableJudgement(msgspec.Struct, frozen=True):
    """An effect on existing tables, with the reason."""

    effect: Effect
    why: str


class Change(msgspec.Struct, frozen=True):
    """One difference between the editions.

    `group` is the item to which the change belongs: a message as ``keepalive`` or, if renamed,
    ``keepalive -> control``; or ``flags``, ``enumeration operation``, ``dialog rpc`` and so on.
    `name` is the changed element, spelled as in the old edition unless it is new. `old` and `new`
    describe it in both editions; None if it is absent.
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
    """The specification of one side of a comparison."""

    name: str
    edition: str
    source: str
    digest: str


class Comparison(msgspec.Struct, frozen=True):
    """All differences between two editions, messages first, in the order of the old edition."""

    old: Edition
    new: Edition
    changes: tuple[Change, ...]

    @property
    def old_reads_new(self) -> Verdict:
        """Whether an old reader reads new data: the worst verdict of all changes."""
        return worst(change.old_reads_new.verdict for change in self.changes)

    @property
    def new_reads_old(self) -> Verdict:
        """Whether a new reader reads old data: the worst verdict of all changes."""
        return worst(change.new_reads_old.verdict for change in self.changes)

    @property
    def tables(self) -> Effect:
        """The greatest effect of any change on existing tables."""
        order = list(Effect)
        return max((change.tables.effect for change in self.changes), key=order.index, default=Effect.APPEND)

    @property
    def verdict(self) -> Overall:
        """The overall verdict in one word; ``conditional`` if some change ``depends`` and none is ``no``."""
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
    """Return the worst of `verdicts`; ``yes`` if there is none."""
    return max(verdicts, key=list(Verdict).index, default=Verdict.YES)


def edition_of(protocol: ir.Protocol) -> Edition:
    """Return the edition of `protocol`."""
    return Edition(protocol.name, protocol.edition, protocol.source, protocol.digest)


def yes(why: str) -> Judgement:
    """Return a judgement without conditions."""
    return Judgement(Verdict.YES, why)


def depends(why: str) -> Judgement:
    """Return a judgement that names its condition."""
    return Judgement(Verdict.DEPENDS, why)


def no(why: str) -> Judgement:
    """Return a judgement that no condition changes."""
    return Judgement(Verdict.NO, why)


NOT_STORED = TableJudgement(Effect.APPEND, "no column holds it")
ALIKE = yes("the octets are the same")
NAME_ONLY = yes("a name is not on the wire")


def change(
    group: str,
    subject: Subject,
    name: str,
    texts: Texts,
    readings: Readings,
    tables: TableJudgement = NOT_STORED,
    kind: Kind | None = None,
) -> Change:
    """Return a change; without `kind` it is added or removed if one edition is None, else changed."""
    old, new = texts
    kind = kind or ("added" if old is None else "removed" if new is None else "value")
    return Change(group, subject, kind, name, old, new, *readings, tables)


def each(describe: Callable[[T], str], old: T | None, new: T | None) -> Texts:
    """Return both editions of an item in words; None if it is absent."""
    return None if old is None else describe(old), None if new is None else describe(new)
