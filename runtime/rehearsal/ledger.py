"""Which requests of either side wait for an answer, by the tables of the dialog.

A session counts what waits; this keeps the requests themselves, and since when: so that an answer can be made for one,
and one that gets none be told. A request that may have many answers waits for the first only.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from specwire.generated.dialog import Dialog

KEPT = 1024
"""Requests of a kind that are kept after their first answer, for those that may have more."""


class Waiting(msgspec.Struct, eq=False):
    """A request.

    Attributes:
        sender: letter of who asks.
        place: where its token is.
        key: of the dialog, from its fields.
        message: the request.
        at: when it was said, in seconds.
        answered: whether it has had one.
    """

    sender: str
    place: str
    key: tuple[object, ...]
    message: Any
    at: float
    answered: bool = False


class Ledger:
    """Of one conversation."""

    def __init__(self, dialog: Dialog) -> None:
        self._dialog = dialog
        self._open: deque[Waiting] = deque()

    def note(self, sender: str, message: Any, phase: str, now: float) -> bool:
        """Take a message that the dialog has allowed in `phase`; return whether it is the first answer to a request."""
        label = f"{sender}:{type(message).__name__}"
        if label in self._dialog.replies and (waiting := self._find(label, message)) is not None:
            return self._settle(waiting, label)
        start = self._dialog.phases[phase].starts.get(label)
        place = start[1] if start is not None else None
        if place is not None and self.wants_answer(message):
            self._open.append(Waiting(sender, place, self._key(message), message, now))
            if len(self._open) > KEPT:
                self._forget_answered()
        return False

    def wants_answer(self, message: Any) -> bool:
        """Whether a request, by its key and flags, is one that is answered."""
        keyless, silent = self._dialog.keyless, self._dialog.unanswered
        if keyless and all(getattr(message, name, None) == value for name, value in keyless.items()):
            return False
        return not (
            silent and all(getattr(message, name, 0) & value == value for name, value in silent.items())
        )

    def awaited(self, sender: str) -> list[Waiting]:
        """Return the requests of `sender` that have had no answer, the oldest first."""
        return [waiting for waiting in self._open if waiting.sender == sender and not waiting.answered]

    def answerable(self, label: str) -> list[Waiting]:
        """Return the requests to which a message with this label is an answer."""
        places = {place for place, _ in self._dialog.replies.get(label, ())}
        return [waiting for waiting in self._open if waiting.place in places]

    def forget(self, waiting: Waiting) -> None:
        """Wait for it no longer."""
        self._open.remove(waiting)

    def replies_to(self, waiting: Waiting) -> list[str]:
        """Return the labels that answer a request."""
        replies = self._dialog.replies.items()
        return [label for label, takes in replies if waiting.place in {place for place, _ in takes}]

    def _find(self, label: str, message: Any) -> Waiting | None:
        """The request that a message answers, one without an answer first."""
        key, places = self._key(message), {place for place, _ in self._dialog.replies[label]}
        fitting = [waiting for waiting in self._open if waiting.place in places and waiting.key == key]
        return min(fitting, key=lambda waiting: waiting.answered, default=None)

    def _settle(self, waiting: Waiting, label: str) -> bool:
        first = not waiting.answered
        waiting.answered = True
        if dict(self._dialog.replies[label])[waiting.place] is None:
            self._open.remove(waiting)
        return first

    def _key(self, message: Any) -> tuple[object, ...]:
        return tuple(getattr(message, name, None) for name in self._dialog.key)

    def _forget_answered(self) -> None:
        answered = [waiting for waiting in self._open if waiting.answered]
        for waiting in answered[: KEPT // 2] or [self._open[0]]:
            self._open.remove(waiting)
