"""Building blocks of Spark SQL: octets and positions as expressions, and names for shared expressions.

No expression here fails, whatever the octets are: missing octets give NULL or a shorter value. So
expressions can be evaluated before it is known whether a message is complete.

Frames are accessed by `try_element_at`, not by `get`. Spark considers `get` so cheap that it
repeats the expression wherever its name occurs, and each repetition copies the octets of the frame.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

NUL = "cast(X'00' AS STRING)"
BREAK = "cast(X'ff' AS STRING)"
"""Separator that no text contains: the octet is not used in UTF-8."""
_NAME = re.compile(r"\b_sql_\w+")
_LARGEST = 0x7FFFFFFF
MAX_TERMS = 32
"""Largest number of sizes in the sum for one position: each later position repeats all of them."""


class NotCovered(Exception):
    """A message has something that SQL cannot express."""


class Lets:
    """Names for expressions, each evaluated once for each row; a level uses names of lower levels only."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._levels: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        """For each hint, the number that is tried for the next name."""

    def let(self, hint: str, expression: str) -> str:
        """Return the name of an expression; equal expressions share one name."""
        if expression not in self._names:
            stem = f"_sql_{hint}"
            numbers = count(self._numbers.get(hint, 1))
            names = ((n, stem if n == 1 else f"{stem}_{n}") for n in numbers)
            number, name = next((n, name) for n, name in names if name not in self._levels)
            self._numbers[hint] = number + 1
            used = (self._levels[other] for other in _NAME.findall(expression))
            self._names[expression], self._levels[name] = name, 1 + max(used, default=-1)
        return self._names[expression]

    def levels(self, wanted: str) -> list[list[tuple[str, str]]]:
        """Return name and expression of everything that the text `wanted` needs, level by level."""
        texts = {name: expression for expression, name in self._names.items()}
        needed: set[str] = set()
        new = set(_NAME.findall(wanted))
        while new:
            needed |= new
            new = {name for one in new for name in _NAME.findall(texts[one])} - needed
        height = 1 + max((self._levels[name] for name in needed), default=-1)
        rows: list[list[tuple[str, str]]] = [[] for _ in range(height)]
        for name, expression in texts.items():
            if name in needed:
                rows[self._levels[name]].append((name, expression))
        return rows

    @staticmethod
    def owned(text: str, owners: Mapping[str, str]) -> str:
        """Return a text in which each name is prefixed with its owner's name."""
        return _NAME.sub(lambda found: f"{owners[found[0]]}.{found[0]}", text)


class Sum(NamedTuple):
    """Position: a known number plus the expressions that are added to it."""

    fixed: int = 0
    terms: tuple[str, ...] = ()

    def plus(self, more: int | str) -> Sum:
        """Return the position advanced by `more`; raise NotCovered if the sum has too many terms."""
        if isinstance(more, int):
            return Sum(self.fixed + more, self.terms)
        if len(self.terms) >= MAX_TERMS:
            raise NotCovered
        return Sum(self.fixed, (*self.terms, more))

    def __str__(self) -> str:
        return " + ".join((*self.terms, *([str(self.fixed)] if self.fixed or not self.terms else [])))


def literal(octets: bytes) -> str:
    """Return octets as a SQL literal."""
    return f"X'{octets.hex()}'"


def quoted(text: str) -> str:
    """Return a text as a SQL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def frame_at(place: Sum | int) -> str:
    """Return the frame at an index from 0, or from the end if negative; NULL if there is none."""
    return f"try_element_at(_frames, {place.plus(1) if isinstance(place, Sum) else place + (place >= 0)})"


def cut(octets: str, start: Sum, size: int | str | None) -> str:
    """Return `size` of the octets from `start` on; all remaining ones if it is None."""
    if size is None and not start.terms:
        return f"substring({octets}, {start.fixed + 1})" if start.fixed else octets
    begin = str(start.plus(1))
    begin = begin if not start.terms else _as_int(begin)
    if size is None:
        return f"substring({octets}, {begin})"
    return f"substring({octets}, {begin}, {size if isinstance(size, int) else _as_int(size)})"


def _as_int(number: str) -> str:
    """Convert a peer's number to INT; a number larger than any position locates no octets."""
    return f"cast(least({number}, {_LARGEST}) AS INT)"


def valid_text(octets: str) -> str:
    """Return the condition that octets are UTF-8."""
    return f"is_valid_utf8(cast({octets} AS STRING))"
