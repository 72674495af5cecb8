# Written by specwire from generator/support/monitors.py. Do not edit; change that file and run `make generate`.
"""Position of a conversation in the tables of its dialog: one monitor for each reading.

A monitor advances with each allowed label and stays unchanged at any other. Advancing takes
constant time. Memory is bounded: a place keeps at most `open_limit` keys. Beyond that it forgets
the key that has been inactive longest.
"""

from __future__ import annotations

from collections import OrderedDict
from copy import copy
from typing import Self

import msgspec
from specwire.generated.dialog import Dialog, step

Key = tuple[object, ...]


class Memory(msgspec.Struct, frozen=True):
    """State of a monitor, as plain values that can be stored.

    Attributes:
        state: name of the state; in the concurrent reading, of the phase.
        blamed: role that committed the last violation; None for nobody.
        tokens: for each place, the keys of requests that wait for a reply, each with their number.
    """

    state: str
    blamed: str | None = None
    tokens: dict[str, tuple[tuple[Key, int], ...]] = {}


class StrictMonitor:
    """Position of a conversation in the rule as written."""

    __slots__ = ("_dialog", "state")

    def __init__(self, dialog: Dialog) -> None:
        self._dialog = dialog
        self.state = next(iter(dialog.strict))

    @property
    def closed(self) -> bool:
        """Whether the rule is complete and no message may follow."""
        return not self._dialog.strict[self.state]

    def advance(self, label: str, message: object) -> bool:
        """Advance with `label`; return False and change nothing if it is not allowed."""
        state = step(self._dialog, self.state, label)
        if state is None:
            return False
        self.state = state
        return True

    def blame(self, sender: str) -> None:
        """Do nothing: the rule as written has no answer to a violation."""

    def expected(self) -> tuple[str, ...]:
        """Return the labels allowed now."""
        return tuple(self._dialog.strict[self.state])

    def waiting(self) -> dict[str, int]:
        """Return an empty dictionary: the state shows what is awaited."""
        return {}

    def memory(self) -> Memory:
        """Return the monitor's state."""
        return Memory(self.state)

    def recall(self, memory: Memory) -> None:
        """Restore the state of a monitor of the same dialog."""
        self.state = memory.state

    def copy(self) -> Self:
        """Return an independent copy."""
        return copy(self)


class ConcurrentMonitor:
    """Position of a conversation whose sides do not wait for each other."""

    __slots__ = ("_blamed", "_dialog", "_open_limit", "_tokens", "state")

    def __init__(self, dialog: Dialog, open_limit: int) -> None:
        self._dialog = dialog
        self._open_limit = open_limit
        self._tokens: dict[str, OrderedDict[Key, int]] = {}
        self._blamed: str | None = None
        self.state = next(iter(dialog.phases))

    @property
    def closed(self) -> bool:
        """Whether no message may follow."""
        return self._dialog.phases[self.state].closed

    def advance(self, label: str, message: object) -> bool:
        """Advance with `label`; return False and change nothing if it is not allowed."""
        phase = self._dialog.phases[self.state]
        if not phase.closed and self._take_reply(label, message):
            return True
        if label in phase.moves:
            self.state = phase.moves[label]
            return True
        if label in phase.starts:
            self.state, place = phase.starts[label]
            if place is not None and not self._is_unanswered(message) and not self._is_keyless(message):
                self._put(place, self._key(message))
            return True
        return self._take_answer(label)

    def blame(self, sender: str) -> None:
        """Record a violation by `sender`: the other side may answer it with an error message."""
        self._blamed = sender

    def expected(self) -> tuple[str, ...]:
        """Return the labels allowed now; for replies, with any of the open keys."""
        phase = self._dialog.phases[self.state]
        replies = () if self.closed else self._open_replies()
        return tuple(dict.fromkeys((*phase.moves, *replies, *phase.starts)))

    def waiting(self) -> dict[str, int]:
        """Return, for each place, how many requests wait there for a reply."""
        return {place: sum(keys.values()) for place, keys in self._tokens.items() if keys}

    def memory(self) -> Memory:
        """Return the monitor's state; keys that wait for a reply are ordered from longest inactive."""
        tokens = {place: tuple(keys.items()) for place, keys in self._tokens.items() if keys}
        return Memory(self.state, self._blamed, tokens)

    def recall(self, memory: Memory) -> None:
        """Restore the state of a monitor of the same dialog."""
        self.state = memory.state
        self._blamed = memory.blamed
        self._tokens = {place: OrderedDict(keys) for place, keys in memory.tokens.items()}

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = copy(self)
        twin._tokens = {place: keys.copy() for place, keys in self._tokens.items()}
        return twin

    def _open_replies(self) -> tuple[str, ...]:
        replies = self._dialog.replies.items()
        return tuple(label for label, takes in replies if any(self._tokens.get(place) for place, _ in takes))

    def _take_reply(self, label: str, message: object) -> bool:
        """Move the token that `label` replies to, if there is one; a reply without a key matches none."""
        takes = self._dialog.replies.get(label)
        if takes is None:
            return False
        if self._is_keyless(message):
            return label not in self._dialog.phases[self.state].moves
        key = self._key(message)
        for place, then in takes:
            keys = self._tokens.get(place)
            if keys and key in keys:
                self._take(keys, key)
                if then is not None:
                    self._put(then, key)
                return True
        return False

    def _take(self, keys: OrderedDict[Key, int], key: Key) -> None:
        keys[key] -= 1
        if not keys[key]:
            del keys[key]

    def _put(self, place: str, key: Key) -> None:
        keys = self._tokens.setdefault(place, OrderedDict())
        keys[key] = keys.get(key, 0) + 1
        keys.move_to_end(key)
        if len(keys) > self._open_limit:
            keys.popitem(last=False)

    def _take_answer(self, label: str) -> bool:
        """Close the dialog on an error message that answers a violation of another side."""
        sender = label.partition(":")[0]
        if self._blamed in (None, sender) or label not in self._dialog.errors:
            return False
        self._blamed = None
        self.state = next(name for name, phase in self._dialog.phases.items() if phase.closed)
        return True

    def _key(self, message: object) -> Key:
        return tuple(getattr(message, name, None) for name in self._dialog.key)

    def _is_keyless(self, message: object) -> bool:
        keyless = self._dialog.keyless.items()
        return bool(keyless) and all(getattr(message, name, None) == value for name, value in keyless)

    def _is_unanswered(self, message: object) -> bool:
        bits = self._dialog.unanswered.items()
        return bool(bits) and all(getattr(message, name, 0) & value == value for name, value in bits)
