"""Pieces of Spark's SQL: octets and positions as expressions, and names for what is used more than once.

None of the expressions here fails, whatever the octets are: what is missing is NULL or shorter, so that they can be
computed before a message is known to be whole.

Frames are pointed at by `try_element_at`, not by `get`: Spark takes `get` for something so cheap that it writes it
out again wherever its name stands, and each time the frame's octets are copied.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import NamedTuple

NUL = "cast(X'00' AS STRING)"
BREAK = "cast(X'ff' AS STRING)"
"""What no text has in it: the octet is no part of UTF-8."""
_NAME = re.compile(r"\b_sql_\w+")
_LARGEST = 0x7FFFFFFF
MAX_TERMS = 32
"""Most sizes in the sum of a position; each later position would repeat them all."""


class NotCovered(Exception):
    """A message has something that is not written in SQL."""


class Lets:
    """Names for expressions, each computed once a row; those of a level use names of lower levels only."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._levels: dict[str, int] = {}
        self._numbers: dict[str, int] = {}
        """For each hint, the first number to try for the next name."""

    def let(self, hint: str, expression: str) -> str:
        """Return the name of an expression; the same expression has one name."""
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
        """Return name and expression of all that the text `wanted` needs, level by level."""
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
        """Return a text in which each name stands behind its owner's."""
        return _NAME.sub(lambda found: f"{owners[found[0]]}.{found[0]}", text)


class Sum(NamedTuple):
    """A position: a number known now, and expressions that are added to it."""

    fixed: int = 0
    terms: tuple[str, ...] = ()

    def plus(self, more: int | str) -> Sum:
        """Return the position plus `more`; raise `NotCovered` for a sum of more than `MAX_TERMS` sizes."""
        if isinstance(more, int):
            return Sum(self.fixed + more, self.terms)
        if len(self.terms) >= MAX_TERMS:
            raise NotCovered
        return Sum(self.fixed, (*self.terms, more))

    def __str__(self) -> str:
        return " + ".join((*self.terms, *([str(self.fixed)] if self.fixed or not self.terms else [])))


def literal(octets: bytes) -> str:
    """Return octets as SQL writes them."""
    return f"X'{octets.hex()}'"


def quoted(text: str) -> str:
    """Return a text as SQL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def frame_at(place: Sum | int) -> str:
    """Return the frame at a position from 0, or so many from the end; NULL where there is none."""
    return f"try_element_at(_frames, {place.plus(1) if isinstance(place, Sum) else place + (place >= 0)})"


def cut(octets: str, start: Sum, size: int | str | None) -> str:
    """Return `size` of the octets from `start` on, all that are left where it is None."""
    if size is None and not start.terms:
        return f"substring({octets}, {start.fixed + 1})" if start.fixed else octets
    begin = str(start.plus(1))
    begin = begin if not start.terms else _as_int(begin)
    if size is None:
        return f"substring({octets}, {begin})"
    return f"substring({octets}, {begin}, {size if isinstance(size, int) else _as_int(size)})"


def _as_int(number: str) -> str:
    """A number of a peer may be larger than any position: no octets are there."""
    return f"cast(least({number}, {_LARGEST}) AS INT)"


def valid_text(octets: str) -> str:
    """Return the condition that octets are UTF-8."""
    return f"is_valid_utf8(cast({octets} AS STRING))"
