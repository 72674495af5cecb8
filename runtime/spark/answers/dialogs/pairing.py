"""Pair the replies of a batch with their requests, where the dialog pairs by key.

Most conversations are short, begin and end within a batch, and have tokens that stay where they are, for a request may
have any number of replies. For these a reply is in order where a request with its key came before it: that
is asked of all of them at once, with arrays. The others go through the loop of `tokens`, message by message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from specwire.generated.session import OPEN_LIMIT
from specwire.runtime.spark.answers.dialogs.automaton import Automaton, Verdict
from specwire.runtime.spark.answers.dialogs.batches import Batch, Flags, Longs
from specwire.runtime.spark.answers.dialogs.opened import Track
from specwire.runtime.spark.answers.dialogs.tokens import PROBE, Held, Tokens, pair_keys

NEVER = np.iinfo(np.int64).max
MIXER = np.int64(-7046029254386353131)
"""An odd number that spreads small ones over 64 bits."""


class Paired(NamedTuple):
    """What the pairing found.

    Attributes:
        waiting: tokens at the end of each conversation.
        tokens: those of the last conversation, where it has any.
        kept: the tokens of conversations by number, where they are wanted.
        occupied: for violations, by row, the places in which keys wait, a bit each.
    """

    waiting: Longs
    tokens: Tokens | None
    kept: dict[int, Held]
    occupied: dict[int, int]


class _Words(NamedTuple):
    """Messages that put or take tokens, and violations; all columns have the same length.

    An epoch is a conversation, anew after each restart; `put` is a place or -1, `takes` places, a bit each.
    """

    row: Longs
    epoch: Longs
    number: Longs
    key: Longs
    put: Longs
    takes: Longs

    def where(self, chosen: Flags) -> _Words:
        return _Words(*(column[chosen] for column in self))


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
    epoch = np.cumsum(batch.begins | (verdict == Verdict.RESTART), dtype=np.int64) - 1
    words = words._replace(epoch=epoch[words.row])
    opened = {
        int(epoch[row]): batch.tokens if row == 0 and batch.tokens is not None else Tokens(track.tokens)
        for row, track in tracks.items()
    }
    waiting = np.zeros(epoch[-1] + 1, np.int64)
    waiting[list(opened)] = [tokens.waiting for tokens in opened.values()]

    quick = _are_quick(automaton, words, opened, len(waiting), keep=keep)[words.epoch]
    occupied = _pair_at_once(words.where(quick), waiting, len(automaton.reading.places))
    refused = [row for row in occupied if verdict[row] < Verdict.UNEXPECTED]
    slow = words.where(~quick)
    rows = zip(*(column.tolist() for column in slow[:4]), strict=True)
    paired = pair_keys(rows, automaton.pairs, opened, keep=keep)
    verdict[refused + list(paired.refused)] = Verdict.UNEXPECTED
    waiting[list(paired.waiting)] = list(paired.waiting.values())

    ends = epoch[np.append(np.flatnonzero(batch.begins)[1:], len(epoch)) - 1]
    last = opened.get(int(ends[-1]))
    if paired.last is not None and paired.last[0] == ends[-1]:
        last = paired.last[1]
    kept: dict[int, Held] = {}
    if keep:
        held = {place: tokens.held() for place, tokens in opened.items()} | paired.kept
        kept = {place: held[end] for place, end in enumerate(ends.tolist()) if end in held}
    return Paired(waiting[ends], last, kept, occupied | paired.probed | paired.refused)


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
    return _Words(rows, rows, number, batch.key[rows], put[number], takes[number])


def _are_quick(
    automaton: Automaton, words: _Words, opened: Mapping[int, Tokens], epochs: int, *, keep: bool
) -> Flags:
    """Return for each epoch whether its replies can be paired at once."""
    quick = np.full(epochs, not keep)
    quick[list(opened)] = False
    quick[-1] = False  # its tokens are wanted by the next batch
    passing = sum(1 << place for place in automaton.reading.passing)
    is_passing = (words.takes & passing) != 0
    is_passing |= (words.put >= 0) & ((np.int64(1) << np.maximum(words.put, 0)) & passing != 0)
    quick[words.epoch[is_passing]] = False
    quick[np.bincount(words.epoch[words.put >= 0], minlength=epochs) > OPEN_LIMIT] = False
    return quick


def _pair_at_once(words: _Words, waiting: Longs, places: int) -> dict[int, int]:
    """Return the replies that nobody asked for, and the violations, by row, each with the places that are occupied."""
    if not len(words.row):
        return {}
    is_put, is_reply = words.put >= 0, words.takes != 0
    waiting += np.bincount(words.epoch[is_put], minlength=len(waiting))
    _, chain = np.unique(words.key ^ (words.epoch * MIXER), return_inverse=True)
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
