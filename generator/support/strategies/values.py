"""Hypothesis strategies for the values of fields.

A text is drawn without constraints and then adapted. It is cut between two characters if it is too
long, padded if it is too short, and cut before its terminator. A text that fits is unchanged, so
every such text can be drawn and no draw is discarded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument
from hypothesis.strategies import SearchStrategy

T = TypeVar("T")
N = TypeVar("N")
V = TypeVar("V")

CHARACTERS = st.characters(exclude_categories=["Cs"])
"""Characters that UTF-8 can encode."""

LARGEST = 65_535
"""Largest limit that is tested; larger texts would need too much memory."""

_WORDS = st.text(CHARACTERS)
_BEYOND_ASCII = re.compile(rb"\\x[89a-f]")

Settle = Callable[[str], str]


def integers(octets: int, likely: Iterable[int] = ()) -> SearchStrategy[int]:
    """Draw unsigned integers of `octets` octets; draw the special values in `likely` often."""
    return between(0, 256**octets - 1, likely)


def between(least: int, most: int, likely: Iterable[int] = ()) -> SearchStrategy[int]:
    """Draw integers from `least` to `most`; draw the special values in `likely` often."""
    every = st.integers(least, most)
    named = tuple(likely)
    return st.sampled_from((0, *named)) | every if named else every


def bits(octets: int, announcing: int) -> SearchStrategy[int]:
    """Draw flags without the bits that announce parts: those follow from the other fields."""
    return st.integers(0, 256**octets - 1).map(lambda value: value & ~announcing)


def one_value_of(values: Sequence[T]) -> SearchStrategy[T]:
    """Draw one of several values; shrink to the first."""
    return st.sampled_from(values)


def one_of(choices: Iterable[SearchStrategy[Any]]) -> SearchStrategy[Any]:
    """Draw from one of several strategies; shrink to the first."""
    return st.one_of(list(choices))


def octets(least: int = 0, most: int | None = None, *, around: int | None = None) -> SearchStrategy[bytes]:
    """Draw opaque octets; sometimes `most` of them, or nearly `around`, where a size changes its form."""
    most = None if most is not None and most > LARGEST else most
    some = st.binary(min_size=least, max_size=most)
    if around is not None:
        near = st.tuples(some, st.integers(around - 40, around + 4))
        return now_and_then(near, lambda pair: (pair[0].ljust(pair[1], b"\xff"), 0)).map(lambda pair: pair[0])
    if most is None or most == least:
        return some
    return now_and_then(some, lambda value: value.ljust(most, b"\xff"), most)


def json_texts(least: int = 0, *, strict: bool = False) -> SearchStrategy[str]:
    """Draw JSON texts: objects under `strict`, else any text that the field accepts."""
    plain = st.none() | st.booleans() | st.integers() | _WORDS
    objects = st.dictionaries(_WORDS, plain | st.lists(plain, max_size=3), max_size=4).map(json.dumps)
    return objects if strict else objects | texts(least=least)


def lists(
    element: SearchStrategy[T], least: int = 0, most: int | None = None, *, full: bool = True
) -> SearchStrategy[tuple[T, ...]]:
    """Draw tuples of elements; with `full`, sometimes as many as a count of one octet allows."""
    most = None if most is not None and most > LARGEST else most
    some = st.lists(element, min_size=least, max_size=most)
    if most is None or most > 255 or not full:
        return some.map(tuple)
    return now_and_then(some, lambda items: (items * most)[:most], most).map(tuple)


def pairs(
    names: SearchStrategy[N], values: SearchStrategy[V], least: int = 0, most: int | None = None
) -> SearchStrategy[tuple[tuple[N, V], ...]]:
    """Draw dictionaries as pairs in wire order, sometimes with a repeated name."""
    some = lists(st.tuples(names, values), least, most)
    return now_and_then(
        some, lambda items: items[:-1] + tuple((items[0][0], value) for _, value in items[-1:])
    )


def texts(
    *,
    least: int = 0,
    most: int | None = None,
    exactly: int | None = None,
    padding: bytes = b"",
    until: bytes = b"",
    among: bytes = b"",
    terminated: bool = False,
    pattern: bytes | None = None,
    strict: bool = False,
) -> SearchStrategy[str]:
    """Draw texts. All sizes are in octets.

    Args:
        least: minimum size.
        most: maximum size.
        exactly: fixed size, including `padding`.
        padding: octet that fills the text up; the text does not end with it.
        until: terminator after the text, which the text does not contain.
        among: octets that the text may have; empty for all.
        terminated: whether NUL ends the text, which then contains none.
        pattern: what the grammar allows, for `strict`.
        strict: draw only what the grammar allows.
    """

    def settle(text: str) -> str:
        text = text.replace("\0", "") if terminated else text
        text = text if most is None else cut(text, most)
        text = text if exactly is None else filled(text, exactly, padding)
        text = only(text, among) if among else text
        return before(text, until) if until else text

    if strict and pattern is not None:
        found, sure = _lettered(pattern, settle, most), False
    elif among:
        found, sure = _of(among, least).map(settle), among.isascii()
    else:
        found, sure = _any(most, least).map(settle), not terminated and not until
    return found if sure or not least else found.filter(lambda text: len(text.encode()) >= least)


def divided(
    split: Literal["first", "last"],
    *,
    most: int | None = None,
    exactly: int | None = None,
    until: bytes = b"",
    among: bytes = b"",
    pattern: bytes | None = None,
    strict: bool = False,
) -> SearchStrategy[tuple[str, str]]:
    """Draw the two sides of a text that is split at its first or last ``=``; arguments as in `texts`."""

    def settle(entry: str) -> str:
        entry = entry if most is None else cut(entry, most)
        entry = entry if exactly is None else filled(entry, exactly)
        entry = only(entry, among) if among else entry
        return before(entry, until) if until else entry

    def divide(entry: str) -> tuple[str, str]:
        name, _, value = entry.partition("=") if split == "first" else entry.rpartition("=")
        return name, value

    if strict and pattern is not None:
        return _lettered(pattern, settle, most).filter(lambda entry: "=" in entry).map(divide)
    side = _of(among) if among else _any(most)
    sides = st.tuples(side, side)
    return sides.map(lambda pair: divide(_with_equals("=".join(pair), settle)))


def now_and_then(strategy: SearchStrategy[T], change: Callable[[T], T], size: int = 0) -> SearchStrategy[T]:
    """Draw from `strategy` and apply `change` to one value in ten, less often if `size` is large.

    If an example fails regardless of the change, it shrinks to the unchanged value.
    """
    most = 9 if size < 256 else 99
    return st.tuples(strategy, st.integers(0, most)).map(
        lambda drawn: change(drawn[0]) if drawn[1] == most else drawn[0]
    )


def cut(text: str, most: int) -> str:
    """Return as many characters of a text as fit in `most` octets of UTF-8."""
    return text if 4 * len(text) <= most else text.encode()[:most].decode(errors="ignore")


def filled(text: str, octets: int, padding: bytes = b"") -> str:
    """Return a text of `octets` octets; with `padding`, one that may be shorter and does not end with it."""
    text = cut(text, octets)
    if not padding:
        return text + "0" * (octets - len(text.encode()))
    while text.encode().endswith(padding):
        text = text[:-1]
    return text


def before(text: str, until: bytes) -> str:
    """Return a text cut before the first `until`, counting the one that follows the text."""
    while (at := (text.encode() + until).index(until)) < len(text.encode()):
        text = cut(text, at) if at else ""
    return text


def only(text: str, among: bytes) -> str:
    """Return a text without the characters that have other octets than those of `among`."""
    return "".join(character for character in text if not character.encode().translate(None, among))


def _of(among: bytes, least: int = 0) -> SearchStrategy[str]:
    """Draw texts with few other octets than those of `among`."""
    letters = [chr(octet) for octet in among if octet < 0x80]
    found = st.text(letters, min_size=least) if letters else st.nothing()
    return found if among.isascii() else found | st.text(CHARACTERS, min_size=least)


def _any(most: int | None, least: int = 0) -> SearchStrategy[str]:
    """Draw texts of any length, sometimes of `most` octets."""
    some = st.text(CHARACTERS, min_size=least)
    if most is None or most > LARGEST:
        return some
    return now_and_then(some, lambda text: _lengthened(text, most), most)


def _lengthened(text: str, most: int) -> str:
    """Return a text of `most` octets that repeats another one."""
    return filled((text or "0") * (most // (len(text.encode()) or 1) + 1), most)


def _with_equals(entry: str, settle: Settle) -> str:
    """Return a text that contains ``=`` after `settle`; the part before it is cut until there is room."""
    while "=" not in settle(entry):
        name = entry.partition("=")[0]
        if not name:
            return "="
        entry = name[:-1] + "="
    return settle(entry)


def _lettered(pattern: bytes, settle: Settle, most: int | None) -> SearchStrategy[str]:
    """Draw texts that match a pattern over octets, sometimes `most` octets; not only ASCII if allowed."""

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
    """Draw texts that match a pattern over octets: in ASCII if the pattern allows that, else any."""
    letters = re.compile(pattern.decode(), re.DOTALL)
    plain = st.from_regex(letters, fullmatch=True, alphabet=st.characters(codec="ascii"))
    try:
        plain.validate()
    except InvalidArgument:
        raw = st.from_regex(re.compile(pattern, re.DOTALL), fullmatch=True)
        return raw.map(lambda octets: octets.decode(errors="ignore"))
    return plain
