"""One protocol as a rehearsal uses it: frames to messages and back, dialogs, and what no machine says (`habits`)."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Any

from specwire.generated.dialog import Dialog
from specwire.generated.errors import DecodeError
from specwire.generated.session import DialogSession
from specwire.runtime.packages import load_package
from specwire.runtime.rehearsal.errors import RehearsalError
from specwire.runtime.rehearsal.habits import Habits, habits_of

OPEN_LIMIT = 4096
"""Keys that a session remembers in each place: more than a rehearsal lets wait."""


class Language:
    """A generated package with dialogs.

    Args:
        package: such as ``specwire.generated.filemq``.

    Raises:
        RehearsalError: the protocol has no dialog.
    """

    def __init__(self, package: ModuleType) -> None:
        self.package: Any = package
        self.name = package.__name__.rpartition(".")[2]
        self.layout: Any = import_module(f"{package.__name__}.layout").LAYOUT
        self.machine: Any = import_module(f"{package.__name__}.machine")
        self.habits: Habits = habits_of(self.name)
        if not getattr(self.machine, "DIALOGS", None):
            raise RehearsalError(f"{self.name} has no dialog, so nobody can hold a conversation in it")

    def decode(self, frames: Sequence[bytes]) -> Any:
        """Return the message; raises DecodeError."""
        return self.package.decode(frames)

    def fault_in(self, frames: Sequence[bytes]) -> DecodeError | None:
        """Return why the frames are no message, None where they are one."""
        try:
            self.package.decode(frames)
        except DecodeError as error:
            return error
        return None

    def name_in_sibling(self, frames: Sequence[bytes]) -> str | None:
        """Return the class of the message that these frames are to the protocol's sibling; None where there is none."""
        if not self.habits.sibling:
            return None
        try:
            message = load_package(self.habits.sibling).decode(frames)
        except DecodeError:
            return None
        return type(message).__name__

    def can_be_from(self, role: str, message: Any) -> bool:
        """Whether a message is written as `role` writes: where any side's header has room, it is that of this side."""
        own = self.habits.own_fields.get(role, {})
        return all(getattr(message, name, value) == value for name, value in own.items())

    def dialog(self, name: str) -> Dialog:
        """Return the dialog."""
        found: Dialog = self.machine.DIALOGS[name]
        return found

    def session(self, role: str, dialog: str) -> DialogSession:
        """Return a conversation at its start, as the side `role` sees it."""
        session: DialogSession = self.machine.Session(role=role, dialog=dialog, open_limit=OPEN_LIMIT)
        return session

    def choose_dialogs(self, role: str, name: str | None) -> tuple[str, ...]:
        """Return the dialogs in which `role` speaks, or the one that was named.

        Raises:
            RehearsalError: there is no such role, no such dialog, or the role does not speak in it.
        """
        roles = self.machine.ROLES
        if role not in roles:
            known = ", ".join(f"{letter} ({word})" for letter, word in roles.items())
            raise RehearsalError(f"{self.name} has no role {role!r}; it has {known}")
        speaks = tuple(word for word, dialog in self.machine.DIALOGS.items() if role in dialog.roles)
        if name is None:
            return speaks
        if name not in speaks:
            raise RehearsalError(
                f"{role} does not speak in a dialog {name!r} of {self.name}; it does in {', '.join(speaks)}"
            )
        return (name,)

    def answer(self, role: str, error: DecodeError) -> str | None:
        """Return the class name of what `role` is to answer to frames that gave `error`; None is silence."""
        kind = self.package.answer(role, error)
        return None if kind is None else str(kind.__name__)

    def answer_out_of_turn(self, role: str) -> str | None:
        """Return the class name of what `role` is to answer to a message that may not come; None is silence."""
        kind = self.package.UNEXPECTED.get(role)
        return None if kind is None else str(kind.__name__)


def other_role(dialog: Dialog, role: str) -> str:
    """Return the letter of the other side."""
    return next(letter for letter in dialog.roles if letter != role)


def own_names(dialog: Dialog, role: str) -> set[str]:
    """Return the classes of all messages that a side may say somewhere in the dialog."""
    labels = {label for phase in dialog.phases.values() for label in (*phase.moves, *phase.starts)}
    parts = (label.partition(":") for label in (*labels, *dialog.replies))
    return {name for sender, _, name in parts if sender == role}
