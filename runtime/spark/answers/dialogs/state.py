"""State of an open conversation: in memory while its messages come, and as JSON between two runs.

Requests that are paired by key are tokens. A place keeps at most `open_limit` keys and removes the
one that has been inactive longest, like ``machine.Session``, so memory is bounded.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

from specwire.runtime.spark.answers.dialogs.automaton import Automaton, Node, Verdict
from specwire.runtime.spark.answers.dialogs.readings import Configuration, TokenChange

Names = tuple[str, str, str | None]
"""Tap, conversation and peer."""
SavedTokens = tuple[tuple[int, int, int], ...]
"""Place, key and count of tokens; within a place, the longest inactive key comes first."""


class Tokens:
    """The waiting requests of one conversation, by place and key.

    Attributes:
        waiting: number of requests.
    """

    __slots__ = ("_open_limit", "_places", "waiting")

    def __init__(self, saved: Iterable[tuple[int, int, int]], open_limit: int) -> None:
        self._open_limit = open_limit
        self._places: dict[int, OrderedDict[int, int]] = {}
        self.waiting = 0
        for place, key, count in saved:
            self._places.setdefault(place, OrderedDict())[key] = count
            self.waiting += count

    def apply(self, change: TokenChange, key: int) -> bool:
        """Put a token, or take one; return False if there is none to take."""
        if change.put is not None:
            self._put(change.put, key)
            return True
        for place, then in change.takes:
            keys = self._places.get(place)
            if keys is None or key not in keys:
                continue
            if then == place:
                keys.move_to_end(key)
                return True
            keys[key] -= 1
            if not keys[key]:
                del keys[key]
            self.waiting -= 1
            if then is not None:
                self._put(then, key)
            return True
        return False

    def clear(self) -> None:
        """Remove all tokens."""
        self._places.clear()
        self.waiting = 0

    def occupied(self) -> list[int]:
        """Return the places that have tokens."""
        return sorted(place for place, keys in self._places.items() if keys)

    def saved(self) -> SavedTokens:
        """Return the tokens as values."""
        return tuple(
            (place, key, count) for place, keys in self._places.items() for key, count in keys.items()
        )

    def _put(self, place: int, key: int) -> None:
        keys = self._places.setdefault(place, OrderedDict())
        keys[key] = keys.get(key, 0) + 1
        keys.move_to_end(key)
        self.waiting += 1
        if len(keys) > self._open_limit:
            self.waiting -= keys.popitem(last=False)[1]


@dataclass(slots=True)
class ReadingState:
    """State of one reading of a conversation."""

    node: Node
    tokens: Tokens
    from_middle: bool = False
    restarts: int = 0
    violations: int = 0

    @property
    def waiting(self) -> int:
        """Return the number of requests that a reply may still answer."""
        return self.node.summary.waiting + self.tokens.waiting

    def observe(self, symbol: int, key: int) -> Verdict:
        """Judge a message and move to the node after it."""
        self.node, verdict, change = self.node[symbol]
        if verdict is Verdict.RESTART:
            self.restarts += 1
            self.tokens.clear()
        if change is not None and not self.tokens.apply(change, key):
            verdict = Verdict.UNEXPECTED
        if verdict:
            self.from_middle |= verdict is Verdict.MIDDLE
            self.violations += verdict >= Verdict.UNEXPECTED
        return verdict


class ConversationTotals(msgspec.Struct, kw_only=True):
    """Numbers of a conversation: `ts` in microseconds, `mono` in nanoseconds of the tap's clock."""

    first_seq: int
    last_seq: int
    first_ts: int
    last_ts: int
    first_mono: int
    last_mono: int
    messages: int = 0
    errors: int = 0


class OpenConversation(ConversationTotals, kw_only=True):
    """A conversation up to its last message; `violations` are rows of the output."""

    names: Names
    states: tuple[ReadingState, ...]
    violations: list[dict[str, Any]] = []


class _SavedState(msgspec.Struct):
    configurations: tuple[Configuration, ...]
    from_middle: bool
    restarts: int
    violations: int
    waiting: int
    tokens: SavedTokens = ()


class _SavedConversation(ConversationTotals):
    """The JSON of an open conversation. Earlier versions wrote it too: its keys are fixed."""

    tracks: tuple[_SavedState, ...]


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(_SavedConversation)


def save(conversation: OpenConversation) -> str:
    """Return the state of a conversation as JSON, without its names."""
    saved = {name: getattr(conversation, name) for name in ConversationTotals.__struct_fields__}
    saved["tracks"] = [
        _SavedState(
            state.node.configurations,
            state.from_middle,
            state.restarts,
            state.violations,
            state.waiting,
            state.tokens.saved(),
        )
        for state in conversation.states
    ]
    return _encoder.encode(saved).decode()


def restore(names: Names, text: str, automata: Iterable[Automaton], open_limit: int) -> OpenConversation:
    """Return what `save` wrote. Raises msgspec.ValidationError for any other text."""
    saved = _decoder.decode(text)
    states = tuple(
        ReadingState(
            automaton.node(state.configurations),
            Tokens(state.tokens, open_limit),
            state.from_middle,
            state.restarts,
            state.violations,
        )
        for automaton, state in zip(automata, saved.tracks, strict=True)
    )
    totals = {name: getattr(saved, name) for name in ConversationTotals.__struct_fields__}
    return OpenConversation(names=names, states=states, **totals)
