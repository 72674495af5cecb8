"""Pair the replies of a batch with their requests, where the dialog pairs by key.

In most conversations tokens stay where they are, for a request may have any number of replies. For these a reply is in
order where a request with its key came before it: that is asked of all of them at once, with arrays. What a conversation
that goes on has from before comes first, as requests in rows below 0. The others go through the loop of `tokens`,
message by message.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specwire.generated.session import OPEN_LIMIT
from specwire.runtime.spark.answers.dialogs.automaton import Automaton, Verdict
from specwire.runtime.spark.answers.dialogs.batches import Batch, Flags
from specwire.runtime.spark.answers.dialogs.opened import Track
from specwire.runtime.spark.answers.dialogs.texts import Longs
from specwire.runtime.spark.answers.dialogs.tokens import PROBE, Held, Tokens, pair_keys

NEVER = np.iinfo(np.int64).max
MIXER = np.int64(-7046029254386353131)
"""An odd number that spreads small ones over 64 bits."""


class Resting(NamedTuple):
    """Tokens of conversations, a row for each place and key; by conversation, in each place by when they were last heard of."""

    conversation: Longs
    place: Longs
    key: Longs
    tokens: Longs
    """How many."""


class Paired(NamedTuple):
    """What the pairing found.

    Attributes:
        waiting: tokens at the end of each conversation.
        tokens: those of the last conversation, where it has any.
        kept: the tokens of conversations by number, where they are wanted.
        resting: the same of conversations that are not in `kept`.
        occupied: for violations, by row, the places in which keys wait, a bit each.
    """

    waiting: Longs
    tokens: Tokens | None
    kept: dict[int, Held]
    resting: Resting | None
    occupied: dict[int, int]


class _Words(NamedTuple):
    """Messages that put or take tokens, and violations; all columns have the same length.

    An epoch is a conversation, anew after each restart; `put` is a place or -1, `takes` places, a bit each; `tokens`
    is how many are put, 1 for a message.
    """

    row: Longs
    epoch: Longs
    number: Longs
    key: Longs
    put: Longs
    takes: Longs
    tokens: Longs

    def where(self, chosen: Flags) -> _Words:
        return self if chosen.all() else _Words(*(column[chosen] for column in self))

    def split(self, chosen: Flags) -> tuple[_Words, _Words]:
        """Return the chosen words and the others, most often all but those at the end."""
        first = int(np.argmin(chosen)) if not chosen.all() else len(chosen)
        if chosen[first:].any():
            return self.where(chosen), self.where(~chosen)
        return _Words(*(column[:first] for column in self)), _Words(*(column[first:] for column in self))


def pair(
    automaton: Automaton,
    batch: Batch,
    tracks: Mapping[int, Track],
    before: npt.NDArray[np.int32],
    verdict: npt.NDArray[np.uint8],
    *,
    keep: bool,
) -> Paired | None:
    """Make violations of replies that nobody asked for, in `verdict`; None where there is nothing to pair."""
    if not automaton.alphabet.key or not automaton.reading.places:
        return None
    words = _find_words(automaton, batch, before, verdict)
    restarts = verdict == Verdict.RESTART
    epoch = batch.conversation
    if restarts.any():
        epoch = np.cumsum(batch.begins | restarts, dtype=np.int64) - 1
    words = words._replace(epoch=epoch[words.row])
    opened = {
        int(epoch[row]): batch.tokens if row == 0 and batch.tokens is not None else Tokens(track.tokens)
        for row, track in tracks.items()
    }
    waiting = np.zeros(epoch[-1] + 1, np.int64)
    waiting[list(opened)] = [tokens.waiting for tokens in opened.values()]

    quick = _are_quick(automaton, words, opened, len(waiting))
    at_once, slow = words.split(quick[words.epoch])
    at_once = _with_held(at_once, {place: tokens for place, tokens in opened.items() if quick[place]})
    chain = _chain(at_once)
    occupied = _pair_at_once(at_once, chain, waiting, len(automaton.reading.places))
    refused = [row for row in occupied if verdict[row] < Verdict.UNEXPECTED]
    rows = zip(*(column.tolist() for column in slow[:4]), strict=True)
    paired = pair_keys(rows, automaton.pairs, opened, keep=keep)
    verdict[refused + list(paired.refused)] = Verdict.UNEXPECTED
    waiting[list(paired.waiting)] = list(paired.waiting.values())

    ends = epoch[np.append(batch.firsts[1:], len(epoch)) - 1]
    numbers = np.full(len(waiting), -1)
    numbers[ends] = np.arange(len(ends))
    if not keep:
        is_last = at_once.epoch == ends[-1]
        at_once, chain = at_once.where(is_last), chain[is_last]
    resting = _rest(automaton, at_once, chain, numbers)
    kept: dict[int, Held] = {}
    if keep:
        held = {place: tokens.held() for place, tokens in opened.items() if not quick[place]} | paired.kept
        kept = {int(numbers[end]): tokens for end, tokens in held.items() if numbers[end] >= 0}
    last = _held_last(resting, len(ends) - 1) if quick[ends[-1]] else opened.get(int(ends[-1]))
    if paired.last is not None and paired.last[0] == ends[-1]:
        last = paired.last[1]
    return Paired(
        waiting[ends], last, kept, resting if keep else None, occupied | paired.probed | paired.refused
    )


def _with_held(words: _Words, opened: Mapping[int, Tokens]) -> _Words:
    """Return the words after those that stand for the tokens which epochs begin with."""
    held = [(epoch, *token) for epoch, tokens in opened.items() for token in tokens.held()]
    if not held:
        return words
    epoch, put, key, tokens = np.array(held, np.int64).T
    row, nothing = np.arange(-len(held), 0), np.zeros(len(held), np.int64)
    before = _Words(row, epoch, nothing, key, put, nothing, tokens)
    return _Words(*map(np.concatenate, zip(before, words, strict=True)))


def _held_last(resting: Resting | None, last: int) -> Tokens:
    """Return the tokens of the last conversation."""
    if resting is None:
        return Tokens()
    begin = int(np.searchsorted(resting.conversation, last))
    return Tokens(zip(*(column[begin:].tolist() for column in resting[1:]), strict=True))


def _find_words(
    automaton: Automaton, batch: Batch, before: npt.NDArray[np.int32], verdict: npt.NDArray[np.uint8]
) -> _Words:
    number = automaton.paired(before, batch.symbol).astype(np.int64)
    number[(verdict > Verdict.RESTART) | ~batch.is_message] = PROBE
    rows = np.flatnonzero((number != PROBE) | (verdict >= Verdict.UNEXPECTED))
    # The last of each stands for what is no pair, which has the number -1.
    put = np.array([-1 if each.put is None else each.put for each in automaton.pairs] + [-1], np.int64)
    takes = np.array([sum(1 << place for place, _ in each.takes) for each in automaton.pairs] + [0], np.int64)
    number = number[rows]
    return _Words(
        rows, rows, number, batch.key[rows], put[number], takes[number], np.ones(len(rows), np.int64)
    )


def _are_quick(automaton: Automaton, words: _Words, opened: Mapping[int, Tokens], epochs: int) -> Flags:
    """Return for each epoch whether its replies can be paired at once."""
    quick = np.ones(epochs, np.bool_)
    passing = sum(1 << place for place in automaton.reading.passing)
    if passing:
        is_passing = (words.takes & passing) != 0
        is_passing |= (words.put >= 0) & ((np.int64(1) << np.maximum(words.put, 0)) & passing != 0)
        quick[words.epoch[is_passing]] = False
    held = {epoch: tokens.keys for epoch, tokens in opened.items()}
    if len(words.put) + max(held.values(), default=0) > OPEN_LIMIT:
        puts = np.bincount(words.epoch[words.put >= 0], minlength=epochs)
        puts[list(held)] += np.array(list(held.values()), np.int64)
        quick[puts > OPEN_LIMIT] = False
    return quick


def _chain(words: _Words) -> Longs:
    """Return a number from 0 for each word that those of its epoch and key share."""
    # By hashing, which takes a third of the time of sorting.
    chain: Any = pa.array(words.key ^ (words.epoch * MIXER)).dictionary_encode()
    return cast(Longs, chain.indices.to_numpy().astype(np.int64))


def _pair_at_once(words: _Words, chain: Longs, waiting: Longs, places: int) -> dict[int, int]:
    """Return the replies that nobody asked for, and the violations, by row, each with the places that are occupied."""
    if not len(words.row):
        return {}
    is_put, is_reply = words.put >= 0, words.takes != 0
    waiting += np.bincount(words.epoch[is_put & (words.row >= 0)], minlength=len(waiting))
    found = np.zeros(len(words.row), np.bool_)
    occupied = np.zeros(len(words.row), np.int64)
    for place in range(places):
        chosen = words.put == place
        if chosen.any():
            asked = (words.takes >> place & 1).astype(np.bool_)
            found |= asked & (_first(chain, chosen, words.row) < words.row)
            occupied |= (_first(words.epoch, chosen, words.row) < words.row).astype(np.int64) << place
    wrong = ~is_put & ~(is_reply & found)
    return dict(zip(words.row[wrong].tolist(), occupied[wrong].tolist(), strict=True))


def _first(group: Longs, chosen: Flags, row: Longs) -> Longs:
    """Return for each word the row of the first chosen one of its group."""
    first = np.full(group.max() + 1, NEVER)
    first[group[chosen][::-1]] = row[chosen][::-1]  # of several the last that is written stays
    found: Longs = first[group]
    return found


def _rest(automaton: Automaton, words: _Words, chain: Longs, numbers: Longs) -> Resting | None:
    """Return the tokens at the end of conversations, whose numbers are given by epoch, -1 for an epoch before the last.

    What `Tokens` does with one message after another: a request is heard of again with each further one of its key,
    and with each reply that finds it first.
    """
    chosen = numbers[words.epoch] >= 0
    words, chain = words.where(chosen), chain[chosen]
    if not (words.put >= 0).any():
        return None
    places = len(automaton.reading.places)
    heard = np.where(words.put >= 0, chain * places + words.put, -1)
    slots = places * (int(chain.max()) + 1)
    first = np.full(slots, NEVER)
    is_put = words.put >= 0
    first[heard[is_put][::-1]] = words.row[is_put][::-1]  # of several the last that is written stays
    for steps in zip_longest(*([place for place, _ in each.takes] for each in automaton.pairs), fillvalue=-1):
        place = np.array([*steps, -1])[words.number]  # what is no pair has the number -1
        slot = chain * places + np.maximum(place, 0)
        finds = (heard < 0) & (place >= 0) & (first[slot] < words.row)
        heard[finds] = slot[finds]
    count = np.bincount(heard[is_put], words.tokens[is_put], minlength=slots).astype(np.int64)
    last = np.zeros(slots, np.int64)
    last[heard[heard >= 0]] = words.row[heard >= 0]
    epoch, key = (np.empty(slots // places, np.int64) for _ in range(2))
    epoch[chain], key[chain] = words.epoch, words.key
    held = np.flatnonzero(count)
    conversation, place = numbers[epoch[held // places]], held % places
    order = np.lexsort((last[held], place, conversation))
    held = held[order]
    return Resting(conversation[order], place[order], key[held // places], count[held])
