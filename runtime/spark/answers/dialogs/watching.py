"""One reading of the dialog over a batch: what is said of each message, and how each conversation stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from specwire.runtime.spark.answers.dialogs.automaton import Automaton, Verdict
from specwire.runtime.spark.answers.dialogs.batches import Batch, Flags, Longs
from specwire.runtime.spark.answers.dialogs.opened import Track
from specwire.runtime.spark.answers.dialogs.tokens import PROBE, Held, Tokens, pair_keys


class Watched(NamedTuple):
    """A batch as one reading sees it.

    Attributes:
        before: for each row the node that it found.
        verdict: what is said of it.
        occupied: for violations, by row, the places in which keys wait, a bit each.
        node: for each conversation, the node at its end.
        from_middle, restarts, violations, waiting: for each conversation.
        numbers: for each row, how many violations its conversation has up to it.
        tokens: those of the last conversation, where it has any.
        kept: the tokens of conversations by number, where they are wanted.
    """

    before: npt.NDArray[np.int32]
    verdict: npt.NDArray[np.uint8]
    occupied: Mapping[int, int]
    node: npt.NDArray[np.int32]
    from_middle: Flags
    restarts: Longs
    violations: Longs
    waiting: Longs
    numbers: Longs
    tokens: Tokens | None
    kept: Mapping[int, Held]

    def track(self, automaton: Automaton, conversation: int) -> Track:
        """Return one conversation as a value, with the tokens that were kept."""
        return Track(
            automaton.nodes[self.node[conversation]].configurations,
            bool(self.from_middle[conversation]),
            int(self.restarts[conversation]),
            int(self.violations[conversation]),
            int(self.waiting[conversation]),
            self.kept.get(conversation, ()),
        )


def watch(automaton: Automaton, batch: Batch, reading: int, *, keep: bool) -> Watched:
    """Run over a batch that has rows; `reading` tells which of the tracks is meant."""
    tracks = {row: opened.tracks[reading] for row, opened in batch.opened.items()}
    firsts = np.flatnonzero(batch.begins)
    before, after = _run(automaton, batch, tracks)
    verdict = automaton.verdicts(before, batch.symbol)
    verdict[~batch.is_message] = Verdict.ALLOWED
    paired = _pair(automaton, batch, tracks, before, verdict, keep)

    lasts = np.append(firsts[1:], len(batch.begins)) - 1
    wrong = verdict >= Verdict.UNEXPECTED
    conversation = np.cumsum(batch.begins) - 1
    numbers: Longs = np.cumsum(wrong, dtype=np.int64)
    numbers -= (numbers[firsts] - wrong[firsts])[conversation]
    from_middle = np.logical_or.reduceat(verdict == Verdict.MIDDLE, firsts)
    restarts = np.add.reduceat((verdict == Verdict.RESTART).astype(np.int64), firsts)
    for row, track in tracks.items():
        number = conversation[row]
        from_middle[number] |= track.from_middle
        restarts[number] += track.restarts
        numbers[row : lasts[number] + 1] += track.violations
    tokens: Tokens | None = None
    kept: dict[int, Held] = {}
    occupied: dict[int, int] = {}
    if paired is None:
        counts = np.array([_count_waiting(automaton, number) for number in range(len(automaton.nodes))])
        waiting = counts[after[lasts]]
    else:
        waiting, tokens, kept, occupied = paired
    return Watched(
        before,
        verdict,
        occupied,
        after[lasts],
        from_middle,
        restarts,
        numbers[lasts],
        waiting,
        numbers,
        tokens,
        kept,
    )


def _run(
    automaton: Automaton, batch: Batch, tracks: Mapping[int, Track]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the nodes before and after each row."""
    symbols = batch.symbol + len(automaton.alphabet) * batch.begins
    for row, track in tracks.items():
        symbols[row] = automaton.place(track.configurations)
    after = automaton.run(symbols.tolist())
    before = np.empty_like(after)
    before[1:] = after[:-1]
    before[batch.begins] = automaton.start.number
    return before, after


def _count_waiting(automaton: Automaton, number: int) -> int:
    """Return the requests that wait at a node; of several configurations it is not known."""
    configurations = automaton.nodes[number].configurations
    return sum(count for _, count in configurations[0].tokens) if len(configurations) == 1 else 0


def _pair(
    automaton: Automaton,
    batch: Batch,
    tracks: Mapping[int, Track],
    before: npt.NDArray[np.int32],
    verdict: npt.NDArray[np.uint8],
    keep: bool,
) -> tuple[Longs, Tokens | None, dict[int, Held], dict[int, int]] | None:
    """Pair by key and turn replies that nobody asked for into violations; None where there is nothing to pair."""
    if not automaton.alphabet.key or not automaton.reading.places:
        return None
    number = automaton.paired(before, batch.symbol).astype(np.int64)
    number[(verdict > Verdict.RESTART) | ~batch.is_message] = PROBE
    rows = np.flatnonzero((number != PROBE) | (verdict >= Verdict.UNEXPECTED))
    epoch = np.cumsum(batch.begins | (verdict == Verdict.RESTART)) - 1
    opened = {
        int(epoch[row]): batch.tokens if row == 0 and batch.tokens is not None else Tokens(track.tokens)
        for row, track in tracks.items()
    }
    paired = pair_keys(
        zip(
            *(column[rows].tolist() for column in (np.arange(len(epoch)), epoch, number, batch.key)),
            strict=True,
        ),
        automaton.pairs,
        opened,
        keep=keep,
    )
    verdict[list(paired.refused)] = Verdict.UNEXPECTED

    waiting = np.zeros(epoch[-1] + 1, np.int64)
    waiting[list(opened)] = [tokens.waiting for tokens in opened.values()]
    waiting[list(paired.waiting)] = list(paired.waiting.values())
    ends = epoch[np.append(np.flatnonzero(batch.begins)[1:], len(epoch)) - 1]
    last = opened.get(int(ends[-1]))
    if paired.last is not None and paired.last[0] == ends[-1]:
        last = paired.last[1]
    kept = paired.kept
    if keep:
        kept = {place: tokens.held() for place, tokens in opened.items()} | kept
        kept = {place: kept[end] for place, end in enumerate(ends.tolist()) if end in kept}
    return waiting[ends], last, kept, paired.probed | paired.refused
