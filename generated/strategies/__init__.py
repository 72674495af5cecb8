# Written by specwire from generator/support/strategies/__init__.py. Do not edit; change that file and run `make generate`.
"""Hypothesis strategies for values, records and messages, shared by the packages.

The ``strategies`` module of a package says which values each field allows; this module draws them.
Every value that is drawn can be encoded, and every value that can be encoded may be drawn. Values
at a limit are drawn often, such as a text of 255 octets after a length of one octet. Failing
examples shrink to empty texts, small numbers and no optional frames. Only these modules need
hypothesis.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import EllipsisType
from typing import Any, TypeAlias, TypeVar

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ModuleNotFoundError as error:
    if error.name != "hypothesis":
        raise
    raise ModuleNotFoundError(
        "the strategies of generated packages need hypothesis: pip install 'specwire[testing]'",
        name="hypothesis",
    ) from None

from specwire.generated.errors import EncodeError
from specwire.generated.strategies.frames import encoded, malformed, mutated
from specwire.generated.strategies.texts import (
    CHARACTERS,
    LARGEST,
    divided,
    now_and_then,
    texts,
)

__all__ = (
    "Given", "SearchStrategy", "bits", "divided", "encoded", "instances", "integers", "json_texts", "lists",
    "malformed", "mutated", "octets", "one_of", "one_value_of", "pairs", "texts",
)  # fmt: skip

T = TypeVar("T")
N = TypeVar("N")
V = TypeVar("V")

_WORDS = st.text(CHARACTERS)

Given: TypeAlias = T | SearchStrategy[T] | EllipsisType
"""Argument for a field: a value, a strategy of values, or ``...`` for any value that fits."""


def integers(octets: int, likely: Iterable[int] = ()) -> SearchStrategy[int]:
    """Draw unsigned integers of `octets` octets; draw the special values in `likely` often."""
    every = st.integers(0, 256**octets - 1)
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


def instances(
    make: Callable[..., T],
    fields: Mapping[str, tuple[object, SearchStrategy[Any]]],
    *,
    readings: Sequence[Sequence[str]] = (),
    tails: Sequence[Sequence[str]] = (),
    required: Sequence[str] = (),
    forbidden: Sequence[str] = (),
    together: bool = False,
) -> SearchStrategy[T]:
    """Draw records or messages.

    What the caller passed is used unchanged, and the drawn values adapt to it.

    Args:
        make: class to instantiate.
        fields: for each field, the caller's argument, and the strategy used if that is ``...``.
        readings: groups of fields of which at most one is present; the others are None.
        tails: groups of fields that may be omitted from any of them on: that field and all later
            ones are None.
        required: those of these fields that must be present.
        forbidden: those of these fields that must be absent.
        together: whether values that fit their fields can be too long together, or match another
            message.
    """
    found = _instances(make, fields, readings, tails, required, forbidden)
    given = frozenset(name for name, (given, _) in fields.items() if given is not ...)
    return found.filter(lambda made: _fits(made, given)) if together else found


def _fits(made: Any, given: AbstractSet[str]) -> bool:
    """Return whether a message can be encoded, or fails only because of what the caller passed."""
    try:
        made.encode()
    except EncodeError as error:
        name = re.split(r"[.\[]", error.field or "", maxsplit=1)[0]
        return bool({name, f"{name}_"} & given)
    return True


@st.composite
def _instances(
    draw: st.DrawFn,
    make: Callable[..., T],
    fields: Mapping[str, tuple[object, SearchStrategy[Any]]],
    readings: Sequence[Sequence[str]],
    tails: Sequence[Sequence[str]],
    required: Sequence[str],
    forbidden: Sequence[str],
) -> T:
    found = {
        name: draw(given) if isinstance(given, SearchStrategy) else given
        for name, (given, _) in fields.items()
        if given is not ...
    }
    for names in readings:
        found |= dict.fromkeys(draw(_left_out(names, found, required, forbidden)))
    for names in tails:
        found |= dict.fromkeys(draw(_cut_off(names, found, required, forbidden)))
    return make(**{name: found[name] if name in found else draw(fit) for name, (_, fit) in fields.items()})


def _left_out(
    names: Sequence[str], found: Mapping[str, object], required: Sequence[str], forbidden: Sequence[str]
) -> SearchStrategy[list[str]]:
    """Draw, of several readings of one frame, those that are absent."""
    open_ = [name for name in names if name not in found]
    if any(found.get(name) is not None for name in names):
        return st.just(open_)
    choices: list[str | None] = [name for name in open_ if name not in forbidden]
    if not choices or not set(names) & set(required):
        choices.insert(0, None)
    return st.sampled_from(choices).map(lambda chosen: [name for name in open_ if name != chosen])


def _cut_off(
    names: Sequence[str], found: Mapping[str, object], required: Sequence[str], forbidden: Sequence[str]
) -> SearchStrategy[list[str]]:
    """Draw, of the fields that may be omitted at the end, those that are absent."""
    there = [n for n, name in enumerate(names) if found.get(name) is not None or name in required]
    gone = [n for n, name in enumerate(names) if found.get(name, ...) is None or name in forbidden]
    least = max(there, default=-1) + 1
    most = max(least, min(gone, default=len(names)))
    return st.integers(least, most).map(lambda count: [name for name in names[count:] if name not in found])
