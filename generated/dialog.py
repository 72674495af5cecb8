# Written by specwire from generator/support/dialog.py. Do not edit; change that file and run `make generate`.
"""Watch a dialog: tell for each message whether it may come where it came.

A `Dialog` is plain data, generated from a rule of the specification. A *label* is a message with its
sender, ``C:Icanhaz``. A `Session` is one conversation: show it every message in the order in which one
side sees them, with the letter of the sender, and it returns None or the `Violation`.

The ``strict`` reading is the rule as written: one state, and the labels allowed in it. The
``concurrent`` reading is what peers do that do not wait for each other. It has a phase (opening, use,
closed) and *tokens*: a request leaves a token in a place, a reply takes one from it. Where the dialog
has a key, a token carries the key of its request and only a reply with that key takes it.

A message that is a violation changes nothing, and the session goes on. One thing follows from it: an
error message of the other side is then in order, even where nothing has been opened yet, for it is
the answer that the violation deserves.

Observing takes constant time. Memory is bounded too: a place keeps at most `open_limit` keys, and beyond
that forgets the one that has been silent longest.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from copy import copy
from typing import Literal, Self

import msgspec

from specwire.generated.errors import Violation

Reading = Literal["strict", "concurrent"]
Key = tuple[object, ...]

OPEN_LIMIT = 65_536
"""Keys that a place keeps unless the session is told otherwise."""


class Phase(msgspec.Struct, frozen=True):
    """A phase of the concurrent reading.

    `moves` give the next phase; `starts` the next phase and the place of the token, None for a message
    that wants no reply. A phase is closed when it has neither.
    """

    moves: Mapping[str, str]
    starts: Mapping[str, tuple[str, str | None]]


class Dialog(msgspec.Struct, frozen=True):
    """The tables of a dialog; of `strict` and `phases` the first entry is the start."""

    name: str
    rule: str
    roles: tuple[str, ...]
    strict: Mapping[str, Mapping[str, str]]
    """For each state the labels allowed in it, each with the next state."""
    phases: Mapping[str, Phase]
    replies: Mapping[str, tuple[tuple[str, str | None], ...]]
    """For each label the places it may take a token from, each with the place it then goes to."""
    errors: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    keyless: Mapping[str, int] = {}
    unanswered: Mapping[str, int] = {}


def step(dialog: Dialog, state: str, label: str) -> str | None:
    """Return the state after `label` in the strict reading, None where it is not allowed."""
    return dialog.strict[state].get(label)


class StrictMonitor:
    """Where a conversation is in the rule as written."""

    __slots__ = ("_dialog", "state")

    def __init__(self, dialog: Dialog) -> None:
        self._dialog = dialog
        self.state = next(iter(dialog.strict))

    @property
    def closed(self) -> bool:
        """Whether the rule is complete and nothing may follow."""
        return not self._dialog.strict[self.state]

    def advance(self, label: str, message: object) -> bool:
        """Go on with `label`; return False, and stay, where it is not allowed."""
        state = step(self._dialog, self.state, label)
        if state is None:
            return False
        self.state = state
        return True

    def blame(self, sender: str) -> None:
        """Do nothing: the rule as written knows no answer to a violation."""

    def expected(self) -> tuple[str, ...]:
        """Return the labels allowed now."""
        return tuple(self._dialog.strict[self.state])

    def waiting(self) -> dict[str, int]:
        """Return nothing: the state says what is waited for."""
        return {}

    def copy(self) -> Self:
        """Return a monitor that goes on from here by itself."""
        return copy(self)


class ConcurrentMonitor:
    """Where a conversation is when its sides do not wait for each other."""

    __slots__ = ("_blamed", "_dialog", "_open_limit", "_tokens", "state")

    def __init__(self, dialog: Dialog, open_limit: int) -> None:
        self._dialog = dialog
        self._open_limit = open_limit
        self._tokens: dict[str, OrderedDict[Key, int]] = {}
        self._blamed: str | None = None
        self.state = next(iter(dialog.phases))

    @property
    def closed(self) -> bool:
        """Whether nothing may follow."""
        return self._is_closed(self.state)

    def advance(self, label: str, message: object) -> bool:
        """Go on with `label`; return False, and stay, where it is not allowed."""
        phase = self._dialog.phases[self.state]
        if label in phase.moves:
            self.state = phase.moves[label]
            return True
        if not self.closed and self._take_reply(label, message):
            return True
        if label in phase.starts:
            self.state, place = phase.starts[label]
            if place is not None and not self._is_unanswered(message) and not self._is_keyless(message):
                self._put(place, self._key(message))
            return True
        return self._take_answer(label)

    def blame(self, sender: str) -> None:
        """Remember that `sender` did what is not allowed: the other side may answer with an error."""
        self._blamed = sender

    def expected(self) -> tuple[str, ...]:
        """Return the labels allowed now, replies with any of the open keys."""
        phase = self._dialog.phases[self.state]
        replies = () if self.closed else self._open_replies()
        return tuple(dict.fromkeys((*phase.moves, *replies, *phase.starts)))

    def waiting(self) -> dict[str, int]:
        """Return for each place how many requests wait in it for a reply."""
        return {place: sum(keys.values()) for place, keys in self._tokens.items() if keys}

    def copy(self) -> Self:
        """Return a monitor that goes on from here by itself."""
        twin = copy(self)
        twin._tokens = {place: keys.copy() for place, keys in self._tokens.items()}
        return twin

    def _is_closed(self, name: str) -> bool:
        phase = self._dialog.phases[name]
        return not phase.moves and not phase.starts

    def _open_replies(self) -> tuple[str, ...]:
        replies = self._dialog.replies.items()
        return tuple(label for label, takes in replies if any(self._tokens.get(place) for place, _ in takes))

    def _take_reply(self, label: str, message: object) -> bool:
        """Move the token that `label` replies to, if there is one; a reply without a key cannot be paired."""
        takes = self._dialog.replies.get(label)
        if takes is None:
            return False
        if self._is_keyless(message):
            return True
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
        """Close on an error that answers a violation of another side."""
        sender = label.partition(":")[0]
        if self._blamed in (None, sender) or label not in self._dialog.errors:
            return False
        self._blamed = None
        self.state = next(name for name in self._dialog.phases if self._is_closed(name))
        return True

    def _key(self, message: object) -> Key:
        return tuple(getattr(message, name, None) for name in self._dialog.key)

    def _is_keyless(self, message: object) -> bool:
        keyless = self._dialog.keyless.items()
        return bool(keyless) and all(getattr(message, name, None) == value for name, value in keyless)

    def _is_unanswered(self, message: object) -> bool:
        bits = self._dialog.unanswered.items()
        return bool(bits) and all(getattr(message, name, 0) & value == value for name, value in bits)


class DialogSession:
    """One conversation, watched by the side `role`.

    A package's ``machine.Session`` is this class bound to the tables of its protocol.
    """

    __slots__ = ("_monitor", "dialog", "role")

    def __init__(self, dialog: Dialog, role: str, reading: Reading, *, open_limit: int = OPEN_LIMIT) -> None:
        """Begin at the start of the dialog.

        Raises:
            ValueError: the dialog has no such role, or there is no such reading.
        """
        if role not in dialog.roles:
            raise ValueError(f"dialog {dialog.name!r} has the roles {', '.join(dialog.roles)}, not {role!r}")
        if reading not in ("strict", "concurrent"):
            raise ValueError(f"a dialog is read 'strict' or 'concurrent', not {reading!r}")
        self.dialog = dialog
        self.role = role
        self._monitor = (
            StrictMonitor(dialog) if reading == "strict" else ConcurrentMonitor(dialog, open_limit)
        )

    @property
    def state(self) -> str:
        """Name of the state, in the concurrent reading of the phase, that the dialog is in."""
        return self._monitor.state

    @property
    def closed(self) -> bool:
        """Whether the dialog is over: every further message is a violation."""
        return self._monitor.closed

    def observe(self, sender: str, message: object) -> Violation | None:
        """Take note of a message that the role with the letter `sender` sent.

        Returns a `Violation`, and leaves the state as it was, where the dialog does not allow the message.
        A letter that is no role of the dialog is a finding too: captured traffic may state any.
        """
        name = type(message).__name__
        label = f"{sender}:{name}"
        if self._monitor.advance(label, message):
            return None
        # A reply with an unknown key can have the label of one that is expected: it is not what it names.
        expected = tuple(item for item in self._monitor.expected() if item != label)
        self._monitor.blame(sender)
        return Violation(sender, name, self.state, expected, self.dialog.rule)

    def malformed(self, sender: str) -> None:
        """Take note that `sender` sent something that is no message: an error in answer is in order."""
        self._monitor.blame(sender)

    def expected(self) -> tuple[str, ...]:
        """Return the labels that the dialog allows now, each as ``ROLE:Message``."""
        return self._monitor.expected()

    def may_send(self) -> tuple[str, ...]:
        """Return the class names of the messages that the watching side may send now."""
        labels = (label.partition(":") for label in self._monitor.expected())
        return tuple(name for sender, _, name in labels if sender == self.role)

    def waiting(self) -> dict[str, int]:
        """Return how many requests wait for a reply, by place; in the strict reading always nothing."""
        return self._monitor.waiting()

    def copy(self) -> Self:
        """Return a session that goes on from here by itself."""
        twin = copy(self)
        twin._monitor = self._monitor.copy()
        return twin
