"""Pieces of Spark's SQL: octets, integers and positions as expressions, and names for what is used more than once.

Spark has no function from octets to an integer. Octets are written in hexadecimal and read as a number of that base;
eight at a time, as a signed one, because that is what BIGINT holds. None of the expressions here fails, whatever the
octets are: what is missing is NULL or shorter, so that they can be computed before a message is known to be whole.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from specwire.generator.emit.tables import INTEGERS, Scalar

TYPES: dict[Scalar, str] = {
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "uint64": "DECIMAL(20, 0)",
}
WORD = 8
"""The most octets that are read together."""
NUL = "cast(X'00' AS STRING)"
_NAME = re.compile(r"\b_sql_\w+")
_LARGEST = 0x7FFFFFFF


class NotCovered(Exception):
    """A message has something that is not written in SQL."""


class Lets:
    """Names for expressions, each computed once a row; those of a level use names of lower levels only."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._levels: dict[str, int] = {}

    def let(self, hint: str, expression: str) -> str:
        """Return the name of an expression; the same expression has one name."""
        if expression not in self._names:
            stem = f"_sql_{hint}"
            count = sum(name == stem or name.startswith(f"{stem}_") for name in self._levels)
            name = f"{stem}_{count + 1}" if count else stem
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
        count = 1 + max((self._levels[name] for name in needed), default=-1)
        rows: list[list[tuple[str, str]]] = [[] for _ in range(count)]
        for name, expression in texts.items():
            if name in needed:
                rows[self._levels[name]].append((name, expression))
        return rows


class Sum(NamedTuple):
    """A position: a number known now, and expressions that are added to it."""

    fixed: int = 0
    terms: tuple[str, ...] = ()

    def plus(self, more: int | str) -> Sum:
        """Return the position so much further on."""
        if isinstance(more, int):
            return Sum(self.fixed + more, self.terms)
        return Sum(self.fixed, (*self.terms, more))

    def __str__(self) -> str:
        return " + ".join((*self.terms, *([str(self.fixed)] if self.fixed or not self.terms else [])))


def literal(octets: bytes) -> str:
    """Return octets as SQL writes them."""
    return f"X'{octets.hex()}'"


def quoted(text: str) -> str:
    """Return a name as a text; names have no quotes."""
    return f"'{text}'"


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


def integer(octets: str, start: Sum, size: int) -> str:
    """Return an unsigned integer in the type of its column."""
    return f"cast(conv(hex({cut(octets, start, size)}), 16, 10) AS {TYPES[INTEGERS[size]]})"


def word(octets: str, start: Sum, size: int) -> str:
    """Return up to eight octets as a BIGINT, whose first bit may be its sign."""
    return f"cast(conv(hex({cut(octets, start, size)}), 16, {-10 if size == WORD else 10}) AS BIGINT)"


def part_of_word(name: str, behind: int, size: int, whole: int) -> str:
    """Return an unsigned integer of `size` octets out of a word of `whole`, so many of them `behind` it."""
    found = f"shiftrightunsigned({name}, {8 * behind})" if behind else name
    if size + behind < whole:
        found = f"{found} & {256**size - 1}"
    type = TYPES[INTEGERS[size]]
    return found if type == "BIGINT" else f"cast({found} AS {type})"


def valid_text(octets: str) -> str:
    """Return the condition that octets are UTF-8."""
    return f"is_valid_utf8(cast({octets} AS STRING))"
