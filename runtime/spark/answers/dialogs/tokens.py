"""Replies that are paired with their requests by key.

The phases of such a dialog do not depend on its keys (`alphabet.dialogs_of` sees to that), so the automaton runs first
and this loop after it, over the messages that put a token or take one. A place keeps at most `open_limit` keys and
forgets the one that has been silent longest, as ``machine.Session`` does; so memory is bounded.

Messages are counted off by *epoch*: a conversation, anew after each restart of its dialog. Epochs come one after
another.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from specwire.generated.session import OPEN_LIMIT
from specwire.runtime.spark.answers.dialogs.readings import Pair

PROBE = -1
"""In place of a pair: a violation whose tokens are asked for."""

Keys = OrderedDict[int, int]
Held = tuple[tuple[int, int, int], ...]
"""Tokens as values: place, key and count, within a place the one that has been silent longest first."""


class Tokens:
    """The tokens of one conversation."""

    __slots__ = ("_open_limit", "_places", "waiting")

    def __init__(self, held: Iterable[tuple[int, int, int]] = (), open_limit: int = OPEN_LIMIT) -> None:
        self._open_limit = open_limit
        self._places: dict[int, Keys] = {}
        self.waiting = 0
        for place, key, count in held:
            self._places.setdefault(place, OrderedDict())[key] = count
            self.waiting += count

    def put(self, place: int, key: int) -> None:
        """Add a token."""
        keys = self._places.get(place)
        if keys is None:
            keys = self._places[place] = OrderedDict()
        self.waiting += 1
        if key in keys:
            keys[key] += 1
            keys.move_to_end(key)
            return
        keys[key] = 1
        if len(keys) > self._open_limit:
            self.waiting -= keys.popitem(last=False)[1]

    def take(self, takes: Sequence[tuple[int, int | None]], key: int) -> bool:
        """Move the token that a reply is for; return False where there is none."""
        for place, then in takes:
            keys = self._places.get(place)
            if keys is None or key not in keys:
                continue
            if then == place:
                # Taken out and put back: with other tokens of its key it stays one of them.
                if len(keys) > 1:
                    keys.move_to_end(key)
                return True
            keys[key] -= 1
            if not keys[key]:
                del keys[key]
            self.waiting -= 1
            if then is not None:
                self.put(then, key)
            return True
        return False

    @property
    def keys(self) -> int:
        """How many keys wait, counted in each place."""
        return sum(map(len, self._places.values()))

    def occupied(self) -> int:
        """Return the places that have tokens, a bit each."""
        return sum(1 << place for place, keys in self._places.items() if keys)

    def held(self) -> Held:
        """Return the tokens as values."""
        return tuple(
            (place, key, count) for place, keys in self._places.items() for key, count in keys.items()
        )


class Paired(NamedTuple):
    """What the pairing found.

    Attributes:
        refused: positions of replies whose key no request has, each with the places that have tokens.
        probed: the places that have tokens, for each position that was asked for.
        waiting: tokens at the end of each epoch that has any message here.
        last: the last epoch and its tokens, None where there was no message.
        kept: the tokens at the end of each epoch, where they are wanted.
    """

    refused: dict[int, int]
    probed: dict[int, int]
    waiting: dict[int, int]
    last: tuple[int, Tokens] | None
    kept: dict[int, Held]


def pair_keys(
    rows: Iterable[tuple[int, int, int, int]],
    pairs: Sequence[Pair],
    before: Mapping[int, Tokens],
    *,
    keep: bool = False,
) -> Paired:
    """Pair the messages, each given as position, epoch, number in `pairs` (or `PROBE`) and key.

    `before` has the tokens that epochs begin with.
    """
    refused: dict[int, int] = {}
    probed: dict[int, int] = {}
    waiting: dict[int, int] = {}
    kept: dict[int, Held] = {}
    current, tokens = -1, Tokens()

    def finish() -> None:
        if current >= 0:
            waiting[current] = tokens.waiting
            if keep:
                kept[current] = tokens.held()

    for position, epoch, number, key in rows:
        if epoch != current:
            finish()
            current, tokens = epoch, before[epoch] if epoch in before else Tokens()
        if number == PROBE:
            probed[position] = tokens.occupied()
            continue
        place, takes = pairs[number]
        if place is not None:
            tokens.put(place, key)
        elif not tokens.take(takes, key):
            refused[position] = tokens.occupied()
    finish()
    return Paired(refused, probed, waiting, (current, tokens) if current >= 0 else None, kept)


def places_of(mask: int) -> Iterator[int]:
    """Yield the places of a bit mask."""
    return (place for place in range(mask.bit_length()) if mask >> place & 1)
