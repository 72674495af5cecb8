"""Watch a conversation: tell for each message whether it may come where it came.

Show a session every message in the order in which one side sees them, with the letter of the sender, and it
returns None or the `Violation`.

A message that is a violation changes nothing, and the session goes on. One thing follows from it: an error
message of the other side is then in order, even where nothing has been opened yet, for it is the answer that the
violation deserves.
"""

from __future__ import annotations

from copy import copy
from typing import Self

from specwire.generated.dialog import Dialog, Reading
from specwire.generated.errors import Violation
from specwire.generated.monitors import ConcurrentMonitor, Memory, StrictMonitor

OPEN_LIMIT = 65_536
"""Keys that a place keeps unless the session is told otherwise."""


class DialogSession:
    """One conversation, watched by the side `role`.

    A package's ``machine.Session`` is this class bound to the tables of its protocol.
    """

    __slots__ = ("_monitor", "dialog", "reading", "role")

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
        self.reading = reading
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

    def send(self, message: object) -> Violation | None:
        """Take note of a message that this side is about to send.

        A `Violation` is a fault of our own, its `role` is ours: the message must not be sent, and the session
        is where it was.
        """
        return self.observe(self.role, message)

    def receive(self, message: object) -> Violation | None:
        """Take note of a message of the other side; where a dialog has several, `observe` says which.

        Raises:
            ValueError: the dialog has more than one other role.
        """
        others = [role for role in self.dialog.roles if role != self.role]
        if len(others) != 1:
            raise ValueError(f"several roles may send to {self.role!r}: use observe, which is told who sent")
        return self.observe(others[0], message)

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

    def memory(self) -> Memory:
        """Return all that the session knows of its conversation, so that another can go on by `recall`."""
        return self._monitor.memory()

    def recall(self, memory: Memory) -> None:
        """Go on where a session of the same dialog and reading was.

        Raises:
            ValueError: the dialog has no such state.
        """
        if memory.state not in (self.dialog.strict if self.reading == "strict" else self.dialog.phases):
            raise ValueError(f"dialog {self.dialog.name!r} has no state {memory.state!r}")
        self._monitor.recall(memory)

    def copy(self) -> Self:
        """Return a session that goes on from here by itself."""
        twin = copy(self)
        twin._monitor = self._monitor.copy()
        return twin
