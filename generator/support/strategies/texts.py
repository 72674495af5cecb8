"""Texts for the strategies of all packages: any that the place they stand in has room for.

A text is drawn without regard to that place and then settled in it: cut between two characters where it is too
long, filled up where it is too short, ended where the octets stand that would end it. What fits is left as it is,
so every text that fits can come, and none is drawn for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, TypeVar

from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")

CHARACTERS = st.characters(exclude_categories=["Cs"])
"""What UTF-8 can write."""

LARGEST = 65_535
"""Limits above this are left to those who have the memory."""

_BEYOND_ASCII = re.compile(rb"\\x[89a-f]")

Settle = Callable[[str], str]


def texts(
    *,
    least: int = 0,
    most: int | None = None,
    exactly: int | None = None,
    padding: bytes = b"",
    until: bytes = b"",
    terminated: bool = False,
    pattern: bytes | None = None,
    strict: bool = False,
) -> SearchStrategy[str]:
    """Draw texts; sizes are in octets.

    Args:
        least: how many there are at least, 0 or 1.
        most: how many there are at most.
        exactly: how many there are, `padding` included where there is some.
        padding: the octet that fills the text up; the text does not end with it.
        until: what stands behind the text, and so not in it.
        terminated: whether NUL ends the text, and so is not in it.
        pattern: what the grammar allows, for `strict`.
        strict: draw only what the grammar allows.
    """

    def settle(text: str) -> str:
        text = text.replace("\0", "") if terminated else text
        text = text if most is None else cut(text, most)
        text = text if exactly is None else filled(text, exactly, padding)
        return before(text, until) if until else text

    if strict and pattern is not None:
        found = _lettered(pattern, settle, most)
        return found.filter(lambda text: text != "") if least else found
    found = _any(most, least).map(settle)
    return found.filter(lambda text: text != "") if least and (terminated or until) else found


def divided(
    split: Literal["first", "last"],
    *,
    most: int | None = None,
    exactly: int | None = None,
    until: bytes = b"",
    pattern: bytes | None = None,
    strict: bool = False,
) -> SearchStrategy[tuple[str, str]]:
    """Draw the two sides of a text that is divided at its first or last ``=``; the rest as `texts` has it."""

    def settle(entry: str) -> str:
        entry = entry if most is None else cut(entry, most)
        entry = entry if exactly is None else filled(entry, exactly)
        return before(entry, until) if until else entry

    def divide(entry: str) -> tuple[str, str]:
        name, _, value = entry.partition("=") if split == "first" else entry.rpartition("=")
        return name, value

    if strict and pattern is not None:
        return _lettered(pattern, settle, most).filter(lambda entry: "=" in entry).map(divide)
    sides = st.tuples(_any(most), _any(most))
    return sides.map(lambda pair: divide(_with_equals("=".join(pair), settle)))


def now_and_then(strategy: SearchStrategy[T], change: Callable[[T], T], size: int = 0) -> SearchStrategy[T]:
    """Draw from `strategy`; one value in ten is changed, fewer where that makes `size` of it, and that is much.

    What fails because of the value, not of the change, shrinks to the value.
    """
    most = 9 if size < 256 else 99
    return st.tuples(strategy, st.integers(0, most)).map(
        lambda drawn: change(drawn[0]) if drawn[1] == most else drawn[0]
    )


def cut(text: str, most: int) -> str:
    """Return so much of a text as `most` octets of UTF-8 have room for."""
    return text if 4 * len(text) <= most else text.encode()[:most].decode(errors="ignore")


def filled(text: str, octets: int, padding: bytes = b"") -> str:
    """Return a text of so many octets; with `padding` one that does not end with it, and can be shorter."""
    text = cut(text, octets)
    if not padding:
        return text + "0" * (octets - len(text.encode()))
    while text.encode().endswith(padding):
        text = text[:-1]
    return text


def before(text: str, until: bytes) -> str:
    """Return a text up to where the octets `until` would stand first if they stood behind it."""
    while (at := (text.encode() + until).index(until)) < len(text.encode()):
        text = cut(text, at) if at else ""
    return text


def _any(most: int | None, least: int = 0) -> SearchStrategy[str]:
    """Texts of any length, now and then of `most` octets."""
    some = st.text(CHARACTERS, min_size=least)
    if most is None or most > LARGEST:
        return some
    return now_and_then(some, lambda text: _lengthened(text, most), most)


def _lengthened(text: str, most: int) -> str:
    """A text of `most` octets that repeats another one."""
    return filled((text or "0") * (most // (len(text.encode()) or 1) + 1), most)


def _with_equals(entry: str, settle: Settle) -> str:
    """A text that settles with a ``=`` in it: what stands before that one is cut until there is room."""
    while "=" not in settle(entry):
        name = entry.partition("=")[0]
        if not name:
            return "="
        entry = name[:-1] + "="
    return settle(entry)


def _lettered(pattern: bytes, settle: Settle, most: int | None) -> SearchStrategy[str]:
    """Texts whose octets a pattern allows, now and then `most` of them; characters beyond ASCII where it can."""

    def allowed(text: str) -> bool:
        return settle(text) == text and re.fullmatch(pattern, text.encode(), re.DOTALL) is not None

    def lengthen(text: str) -> str:
        longer = _lengthened(text, most or 0)
        return longer if allowed(longer) else text

    found = _matching(pattern).map(settle)
    if _BEYOND_ASCII.search(pattern):
        other = _any(None).map(settle)
        found = st.tuples(found, other).map(lambda row: row[1] if allowed(row[1]) else row[0])
    found = found.filter(allowed)
    return found if most is None or most > LARGEST else now_and_then(found, lengthen, most)


def _matching(pattern: bytes) -> SearchStrategy[str]:
    """Texts that a pattern over octets allows: in ASCII, or where it has nothing there, any."""
    letters = re.compile(pattern.decode(), re.DOTALL)
    plain = st.from_regex(letters, fullmatch=True, alphabet=st.characters(codec="ascii"))
    try:
        plain.validate()
    except InvalidArgument:
        raw = st.from_regex(re.compile(pattern, re.DOTALL), fullmatch=True)
        return raw.map(lambda octets: octets.decode(errors="ignore"))
    return plain
