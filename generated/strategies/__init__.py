# Written by specwire from generator/support/strategies/__init__.py. Do not edit; change that file and run `make generate`.
"""What the strategies of all packages are made of: hypothesis strategies for values, records and messages.

The ``strategies`` module of a package says what each field may be; here stands how such values are drawn. What is
drawn can be encoded, every value that can be encoded may come, those at a limit (a text of 255 octets where a
length of one octet counts it) often, and what fails shrinks to little: empty texts, small numbers, no optional
frames. Only these modules need hypothesis.
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
"""What a field can be given as: a value, a strategy of values, or ``...`` for any that fits."""


def integers(octets: int, likely: Iterable[int] = ()) -> SearchStrategy[int]:
    """Draw unsigned integers of so many octets; those of `likely`, which have a meaning of their own, often."""
    every = st.integers(0, 256**octets - 1)
    named = tuple(likely)
    return st.sampled_from((0, *named)) | every if named else every


def bits(octets: int, announcing: int) -> SearchStrategy[int]:
    """Draw flags without the bits that announce parts: those follow from the other fields."""
    return st.integers(0, 256**octets - 1).map(lambda value: value & ~announcing)


def one_value_of(values: Sequence[T]) -> SearchStrategy[T]:
    """Draw one of several values, the first when it shrinks."""
    return st.sampled_from(values)


def one_of(choices: Iterable[SearchStrategy[Any]]) -> SearchStrategy[Any]:
    """Draw from one of several strategies, from the first when it shrinks."""
    return st.one_of(list(choices))


def octets(least: int = 0, most: int | None = None, *, around: int | None = None) -> SearchStrategy[bytes]:
    """Draw opaque octets; now and then `most` of them, or nearly `around`, where a size needs more octets."""
    most = None if most is not None and most > LARGEST else most
    some = st.binary(min_size=least, max_size=most)
    if around is not None:
        near = st.tuples(some, st.integers(around - 40, around + 4))
        return now_and_then(near, lambda pair: (pair[0].ljust(pair[1], b"\xff"), 0)).map(lambda pair: pair[0])
    if most is None or most == least:
        return some
    return now_and_then(some, lambda value: value.ljust(most, b"\xff"), most)


def json_texts(least: int = 0, *, strict: bool = False) -> SearchStrategy[str]:
    """Draw JSON texts: objects under `strict`, else anything that stands in the place of one."""
    plain = st.none() | st.booleans() | st.integers() | _WORDS
    objects = st.dictionaries(_WORDS, plain | st.lists(plain, max_size=3), max_size=4).map(json.dumps)
    return objects if strict else objects | texts(least=least)


def lists(
    element: SearchStrategy[T], least: int = 0, most: int | None = None, *, full: bool = True
) -> SearchStrategy[tuple[T, ...]]:
    """Draw tuples of elements; with `full` as many as a count of one octet can say, now and then."""
    most = None if most is not None and most > LARGEST else most
    some = st.lists(element, min_size=least, max_size=most)
    if most is None or most > 255 or not full:
        return some.map(tuple)
    return now_and_then(some, lambda items: (items * most)[:most], most).map(tuple)


def pairs(
    names: SearchStrategy[N], values: SearchStrategy[V], least: int = 0, most: int | None = None
) -> SearchStrategy[tuple[tuple[N, V], ...]]:
    """Draw dictionaries as the wire has them: pairs in their order, a name twice now and then."""
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

    Args:
        make: their class.
        fields: for each, what the caller gave, and what is drawn where that is ``...``.
        readings: fields of which at most one is there: the others are None.
        tails: fields that can be left out from one of them on: it and those behind it are None.
        required: of these fields, those that must be there.
        forbidden: of these fields, those that must not.
        together: whether values that fit their fields can be too much together, or look as another message.

    What the caller gave stands as it is, and what is drawn makes room for it.
    """
    found = _instances(make, fields, readings, tails, required, forbidden)
    given = frozenset(name for name, (given, _) in fields.items() if given is not ...)
    return found.filter(lambda made: _fits(made, given)) if together else found


def _fits(made: Any, given: AbstractSet[str]) -> bool:
    """Whether a message can be encoded, or cannot because of what the caller gave."""
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
    """Of several readings of one frame, those that are not drawn."""
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
    """Of fields that can be left out at the end, those that are."""
    there = [n for n, name in enumerate(names) if found.get(name) is not None or name in required]
    gone = [n for n, name in enumerate(names) if found.get(name, ...) is None or name in forbidden]
    least = max(there, default=-1) + 1
    most = max(least, min(gone, default=len(names)))
    return st.integers(least, most).map(lambda count: [name for name in names[count:] if name not in found])
