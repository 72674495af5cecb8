"""Content of the page as values, with the same shape for every server.

Texts may come from the wire. They are cut here (`word`), and the page sets them as text and never
as markup. Numbers are passed with their kind, and the page writes them with units.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeVar

import msgspec

from specwire.runtime.log.text import show
from specwire.runtime.observe.families import Family

Kind = Literal["text", "count", "octets", "seconds", "share"]
Tone = Literal["good", "fair", "bad", ""]

MAX_ROWS = 200
"""Rows of a table; the page says how many there are in all."""

MAX_BRANCHES = 64
"""Nodes below one node of a tree; the others are counted."""

LONGEST_WORD = 160

Item = TypeVar("Item")


class Fact(msgspec.Struct, frozen=True):
    """A label and its value."""

    label: str
    value: str | float
    kind: Kind = "text"


class Health(msgspec.Struct, frozen=True):
    """Health of the server, in one word."""

    word: str
    tone: Tone


class Node(msgspec.Struct, frozen=True):
    """Node of the tree; `more` is the number of children that are not shown."""

    name: str
    note: str = ""
    tone: Tone = ""
    children: tuple[Node, ...] = ()
    more: int = 0


class Column(msgspec.Struct, frozen=True):
    """Head of a column, and the kind of its cells."""

    name: str
    kind: Kind = "text"


class Table(msgspec.Struct, frozen=True):
    """The rows that are shown, of `total`; `empty` is the text without rows. Cells may be None."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str | float | None, ...], ...]
    total: int
    empty: str


class Notice(msgspec.Struct, frozen=True):
    """Something that was not accepted; `at` is the time (ISO 8601, UTC)."""

    at: str
    text: str


class View(msgspec.Struct, frozen=True):
    """Content of the page of a server; `notices` is None for a server that keeps none."""

    title: str
    name: str
    health: Health
    facts: tuple[Fact, ...]
    gauges: tuple[Fact, ...]
    tree: Node | None
    tables: tuple[Table, ...]
    notices: tuple[Notice, ...] | None = None


def word(text: str) -> str:
    """Return a text as the page shows it: printable, and cut if it is very long."""
    cut = show(text[: LONGEST_WORD + 1])
    return cut if len(cut) <= LONGEST_WORD else cut[:LONGEST_WORD] + "…"


def tabulate(
    title: str,
    columns: Sequence[Column],
    items: Sequence[Item],
    row: Callable[[Item], tuple[str | float | None, ...]],
    *,
    empty: str,
) -> Table:
    """Return a table with a row for each of the first items."""
    rows = tuple(tuple(map(_tidy, row(item))) for item in items[:MAX_ROWS])
    return Table(title, tuple(columns), rows, len(items), empty)


def branch(
    name: str, items: Sequence[Item], node: Callable[[Item], Node], *, note: str = "", tone: Tone = ""
) -> Node:
    """Return a node with a node for each of the first items below it."""
    shown = tuple(node(item) for item in items[:MAX_BRANCHES])
    return Node(word(name), note, tone, shown, len(items) - len(shown))


def newest(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Return the notices, the newest first, as the page shows them."""
    return tuple(islice(reversed([*notices]), MAX_ROWS))


def _tidy(cell: str | float | None) -> str | float | None:
    return word(cell) if isinstance(cell, str) else cell


LOOK_S = 1.0
"""Time between two looks of `Rates`."""

REMEMBERED = 120


class Counted(msgspec.Struct, frozen=True):
    """Label and unit of a running total."""

    label: str
    kind: Kind = "count"


class Rate(msgspec.Struct, frozen=True):
    """Rate per second now, and at earlier looks, the oldest first."""

    label: str
    kind: Kind
    per_s: float
    history: tuple[float, ...]


class Rates:
    """Rates of several totals over the last two minutes.

    Args:
        counted: labels, in the order of the totals given to `look`.
    """

    def __init__(self, counted: Sequence[Counted]) -> None:
        self._counted = tuple(counted)
        self._history: deque[tuple[float, ...]] = deque(maxlen=REMEMBERED)
        self._totals: tuple[float, ...] | None = None
        self._at = 0.0

    def look(self, totals: Sequence[float], now: float) -> None:
        """Note the totals at the time `now`, in seconds that do not go backwards.

        A total that is lower than before has begun again, and counts from 0.
        """
        before, passed_s = self._totals, now - self._at
        if before is not None:
            if passed_s <= 0:
                return
            grown = (new - old if new >= old else new for new, old in zip(totals, before, strict=True))
            self._history.append(tuple(amount / passed_s for amount in grown))
        self._totals, self._at = tuple(totals), now

    def describe(self) -> tuple[Rate, ...]:
        """Return the rates at the last look; 0 before the second one."""
        return tuple(
            Rate(one.label, one.kind, history[-1] if history else 0.0, history)
            for place, one in enumerate(self._counted)
            for history in (tuple(round(rates[place], 3) for rates in self._history),)
        )


async def nothing_to_close() -> None:
    """Close nothing."""


@dataclass(frozen=True)
class Subject:
    """A running server, as page and metrics need it.

    Attributes:
        counted: labels of `totals`.
        totals: returns running totals; called once a second, so it must be cheap.
        measure: returns the metrics.
        view: returns the content of the page.
        health: returns the health, for probes.
        close: releases what was opened for the page.
    """

    counted: tuple[Counted, ...]
    totals: Callable[[], Sequence[float]]
    measure: Callable[[], list[Family]]
    view: Callable[[], View]
    health: Callable[[], Health]
    close: Callable[[], Awaitable[None]] = nothing_to_close
