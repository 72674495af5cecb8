"""Regular expressions over characters, compiled from rules that describe text.

The functions below build expressions and keep them small. Alternatives of one character become one
class, and a counted repetition of a class stays one `Run` with two numbers, so that
``999999999OCTET`` costs as much as ``OCTET``. Repetitions of longer elements are expanded later.
Each expression knows the number of runs after expansion (`size`), so an expression that is too
large is found before it is built.

Expressions share their parts (a rule used twice is one object), so they are compared by identity and
must not be walked without a bound: the walk is as long as `size` says.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

SATURATED = 1 << 40
"""A size that says no more than: beyond every bound."""
_BEYOND_UNICODE = 0x110000


@dataclass(frozen=True, slots=True, eq=False)
class Characters:
    """A class of characters: its code points as ranges, ends included, sorted and apart from each other.

    `names` is how the grammar writes the class, for people: ``DIGIT``, ``"a"``, ``%x80-FF``.
    """

    ranges: tuple[tuple[int, int], ...]
    names: tuple[str, ...]

    def holds(self, code: int) -> bool:
        """Return whether the character of this code point belongs to the class."""
        place = bisect_right(self.ranges, (code, _BEYOND_UNICODE))
        return place > 0 and code <= self.ranges[place - 1][1]


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """`minimum` (at least 1) to `maximum` (None: no bound) characters of one class."""

    characters: Characters
    minimum: int = 1
    maximum: int | None = 1
    size: int = 1
    nullable: bool = False

    @property
    def is_single(self) -> bool:
        """Whether it is one character."""
        return self.minimum == self.maximum == 1


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A rule that contains itself, by its name: what it comes to is written down once."""

    rule: str
    size: int = 1
    nullable: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """The items one after another; of no items, the empty text."""

    items: tuple[Expression, ...]
    size: int
    nullable: bool


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """One of the items."""

    items: tuple[Expression, ...]
    size: int
    nullable: bool


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """`body` or the empty text."""

    body: Expression
    size: int
    nullable: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Many:
    """`minimum` (at least 1) to `maximum` (None: no bound) times `body`."""

    body: Expression
    minimum: int
    maximum: int | None
    size: int
    nullable: bool


Expression = Run | Call | Chain | Choice | Maybe | Many
EMPTY = Chain((), 1, True)


def unite(classes: Sequence[Characters]) -> Characters:
    """Return the class of the characters that any of `classes` holds."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(pair for characters in classes for pair in characters.ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(last, merged[-1][1])
        else:
            merged.append((first, last))
    names = dict.fromkeys(name for characters in classes for name in characters.names)
    return Characters(tuple(merged), tuple(names))


def chain(items: Sequence[Expression]) -> Expression:
    """Return the items one after another."""
    found = tuple(item for item in items if item is not EMPTY)
    if len(found) < 2:
        return found[0] if found else EMPTY
    return Chain(found, _total(found), all(item.nullable for item in found))


def choice(items: Sequence[Expression]) -> Expression:
    """Return one of the items, which are at least one; those of one character become one class."""
    single = [item.characters for item in items if isinstance(item, Run) and item.is_single]
    found: list[Expression] = []
    for item in items:
        if not (isinstance(item, Run) and item.is_single):
            found.append(item)
        elif single:
            found.append(Run(unite(single)))
            single = []
    if len(found) == 1:
        return found[0]
    return Choice(tuple(found), _total(found), any(item.nullable for item in found))


def maybe(body: Expression) -> Expression:
    """Return `body` or the empty text."""
    return body if body.nullable else Maybe(body, body.size)


def many(body: Expression, minimum: int, maximum: int | None) -> Expression:
    """Return `minimum` to `maximum` times `body`, counted by a run where one class repeats."""
    if maximum == 0 or body is EMPTY:
        return EMPTY
    if isinstance(body, Maybe):
        return maybe(many(body.body, 1, maximum))
    least = max(minimum, 1)
    found = _longer_run(body, least, maximum) if isinstance(body, Run) else None
    repeated = found or _copies(body, least, maximum)
    return maybe(repeated) if minimum == 0 else repeated


def _copies(body: Expression, least: int, maximum: int | None) -> Expression:
    is_loop = isinstance(body, Many) and body.minimum == 1 and body.maximum is None
    if least == 1 and (maximum == 1 or is_loop):
        return body
    copies = least if maximum is None else maximum
    return Many(body, least, maximum, min(SATURATED, copies * body.size), body.nullable)


def _longer_run(run: Run, least: int, maximum: int | None) -> Run | None:
    """Return `least` to `maximum` runs as one, None where the lengths leave gaps (``2*3( 4*5"x" )``)."""
    if run.maximum is None:
        return replace(run, minimum=least * run.minimum)
    if least != maximum and least * run.maximum + 1 < (least + 1) * run.minimum:
        return None
    longest = None if maximum is None else maximum * run.maximum
    return replace(run, minimum=least * run.minimum, maximum=longest)


def _total(items: Iterable[Expression]) -> int:
    return min(SATURATED, sum(item.size for item in items))
