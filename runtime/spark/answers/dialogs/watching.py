"""The readings of the dialog over a batch: what is said of each message, and how each conversation stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from specwire.runtime.spark.answers.dialogs.automaton import Automaton, Verdict
from specwire.runtime.spark.answers.dialogs.batches import Batch, Flags
from specwire.runtime.spark.answers.dialogs.joint import Joint
from specwire.runtime.spark.answers.dialogs.opened import Track
from specwire.runtime.spark.answers.dialogs.pairing import Paired, Resting, pair
from specwire.runtime.spark.answers.dialogs.texts import Longs
from specwire.runtime.spark.answers.dialogs.tokens import Held, Tokens


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
        resting: the same of conversations that are not in `kept`.
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
    resting: Resting | None

    def track(self, automaton: Automaton, conversation: int) -> Track:
        """Return one conversation as a value, with the tokens in `kept`."""
        return Track(
            automaton.nodes[self.node[conversation]].configurations,
            bool(self.from_middle[conversation]),
            int(self.restarts[conversation]),
            int(self.violations[conversation]),
            int(self.waiting[conversation]),
            self.kept.get(conversation, ()),
        )


def watch_all(joint: Joint, batch: Batch, *, keep: bool) -> list[Watched]:
    """Run over a batch that has rows, in each reading; `keep`: the tokens of all conversations are wanted."""
    places = {row: joint.place(opened) for row, opened in batch.opened.items()}
    after = joint.run(batch.symbol, np.flatnonzero(batch.begins | ~batch.is_message), places)
    return [
        _watch(automaton, batch, number, after[number], keep)
        for number, automaton in enumerate(joint.automata)
    ]


def _watch(
    automaton: Automaton, batch: Batch, reading: int, after: npt.NDArray[np.int32], keep: bool
) -> Watched:
    tracks = {row: opened.tracks[reading] for row, opened in batch.opened.items()}
    firsts, conversation = batch.firsts, batch.conversation
    before = np.empty_like(after)
    before[1:] = after[:-1]
    before[batch.begins] = automaton.start.number
    verdict = automaton.verdicts(before, batch.symbol)
    verdict[~batch.is_message] = Verdict.ALLOWED
    paired = pair(automaton, batch, tracks, before, verdict, keep=keep)

    lasts = np.append(firsts[1:], len(batch.begins)) - 1
    if paired is None:
        counts = np.array([_count_waiting(automaton, number) for number in range(len(automaton.nodes))])
        paired = Paired(counts[after[lasts]], None, {}, None, {})
    numbers = _count_off(verdict >= Verdict.UNEXPECTED, firsts, conversation)
    from_middle = np.zeros(len(firsts), np.bool_)
    from_middle[conversation[verdict == Verdict.MIDDLE]] = True
    restarts = np.bincount(conversation[verdict == Verdict.RESTART], minlength=len(firsts))
    for row, track in tracks.items():
        number = conversation[row]
        from_middle[number] |= track.from_middle
        restarts[number] += track.restarts
        numbers[row : lasts[number] + 1] += track.violations
    return Watched(
        before,
        verdict,
        paired.occupied,
        after[lasts],
        from_middle,
        restarts,
        numbers[lasts],
        paired.waiting,
        numbers,
        paired.tokens,
        paired.kept,
        paired.resting,
    )


def _count_off(chosen: Flags, firsts: Longs, conversation: Longs) -> Longs:
    """Return for each row how many of its conversation are chosen up to it."""
    if not chosen.any():
        return np.zeros(len(chosen), np.int64)
    numbers: Longs = np.cumsum(chosen, dtype=np.int64)
    numbers -= (numbers[firsts] - chosen[firsts])[conversation]
    return numbers


def _count_waiting(automaton: Automaton, number: int) -> int:
    """Return the requests that wait at a node; of several configurations it is not known."""
    configurations = automaton.nodes[number].configurations
    return sum(count for _, count in configurations[0].tokens) if len(configurations) == 1 else 0
