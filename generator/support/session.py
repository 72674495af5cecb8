"""Check of a conversation: whether its dialog allows each message.

Pass every message to the session in the order in which one side sees them, with the letter of the
sender. It returns None or a `Violation`.

A violation does not change the state, and the session continues. It has one consequence: the other
side may now send an error message, even before the dialog is open, as the answer to the violation.
"""

from __future__ import annotations

from copy import copy
from typing import Self

from specwire.generated.dialog import Dialog, Reading
from specwire.generated.errors import Violation
from specwire.generated.monitors import ConcurrentMonitor, Memory, StrictMonitor

OPEN_LIMIT = 65_536
"""Default for the largest number of keys that a place keeps."""


class DialogSession:
    """One conversation, checked from the side of `role`.

    The class ``machine.Session`` of a package binds this class to the tables of its protocol.
    """

    __slots__ = ("_monitor", "dialog", "reading", "role")

    def __init__(self, dialog: Dialog, role: str, reading: Reading, *, open_limit: int = OPEN_LIMIT) -> None:
        """Begin at the start of the dialog.

        Raises:
            ValueError: the dialog has no such role, or `reading` is unknown.
        """
        if role not in dialog.roles:
            raise ValueError(f"dialog {dialog.name!r} has the roles {', '.join(dialog.roles)}, not {role!r}")
        if reading not in ("strict", "concurrent"):
            raise ValueError(f"a dialog is read 'strict' or 'concurrent', not {reading!r}")
        self.dialog = dialog
        self.role = role
        self.reading = reading
        self._monitor = (
            StrictMonitor(dialog) if reading == "strict" else ConcurrentMonitor(dialog, open_limit)
        )

    @property
    def state(self) -> str:
        """Name of the current state; in the concurrent reading, of the current phase."""
        return self._monitor.state

    @property
    def closed(self) -> bool:
        """Whether the dialog is over: every further message is a violation."""
        return self._monitor.closed

    def observe(self, sender: str, message: object) -> Violation | None:
        """Process a message that the role with the letter `sender` sent.

        Returns:
            A `Violation` if the dialog does not allow the message; the state does not change. None
            if it does. A letter that is no role of the dialog is a violation as well, since
            captured traffic may contain any.
        """
        name = type(message).__name__
        label = f"{sender}:{name}"
        if self._monitor.advance(label, message):
            return None
        # A reply with an unknown key can have an expected label; do not list it as expected.
        expected = tuple(item for item in self._monitor.expected() if item != label)
        self._monitor.blame(sender)
        return Violation(sender, name, self.state, expected, self.dialog.rule)

    def send(self, message: object) -> Violation | None:
        """Process a message that this side is about to send.

        Returns:
            A `Violation` if this side may not send the message now; the state does not change. None
            if it may.
        """
        return self.observe(self.role, message)

    def receive(self, message: object) -> Violation | None:
        """Process a message of the other side. If a dialog has several, call `observe` instead.

        Raises:
            ValueError: the dialog has more than one other role.
        """
        others = [role for role in self.dialog.roles if role != self.role]
        if len(others) != 1:
            raise ValueError(f"several roles may send to {self.role!r}: call observe with the sender")
        return self.observe(others[0], message)

    def malformed(self, sender: str) -> None:
        """Record that `sender` sent frames that are no message: the other side may answer with an error."""
        self._monitor.blame(sender)

    def expected(self) -> tuple[str, ...]:
        """Return the labels that the dialog allows now, each as ``ROLE:Message``."""
        return self._monitor.expected()

    def may_send(self) -> tuple[str, ...]:
        """Return the class names of the messages that this side may send now."""
        labels = (label.partition(":") for label in self._monitor.expected())
        return tuple(name for sender, _, name in labels if sender == self.role)

    def waiting(self) -> dict[str, int]:
        """Return how many requests wait for a reply, by place; always empty in the strict reading."""
        return self._monitor.waiting()

    def memory(self) -> Memory:
        """Return the session's state as plain values, for `recall`."""
        return self._monitor.memory()

    def recall(self, memory: Memory) -> None:
        """Restore the state of a session of the same dialog and reading.

        Raises:
            ValueError: the dialog has no such state.
        """
        if memory.state not in (self.dialog.strict if self.reading == "strict" else self.dialog.phases):
            raise ValueError(f"dialog {self.dialog.name!r} has no state {memory.state!r}")
        self._monitor.recall(memory)

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = copy(self)
        twin._monitor = self._monitor.copy()
        return twin
