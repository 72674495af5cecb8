"""A message, who sent it and how it is paired, as one small number.

Only these numbers go through the exchange, so that no text and no payload does. A sender that is no role of the
protocol and a message that did not decode have numbers too: captured traffic may hold anything.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from specwire.generated.dialog import Dialog
from specwire.runtime.spark.errors import InputError
from specwire.runtime.spark.protocols import load_machine, load_schemas


class Pairing(IntEnum):
    """How a message takes part in the pairing of requests and replies."""

    KEYED = 0
    KEYLESS = 1
    UNANSWERED = 2


class Label(NamedTuple):
    """What a symbol stands for; `sender` None for no role, `message` None for what did not decode."""

    sender: str | None
    message: str | None
    pairing: Pairing

    def __str__(self) -> str:
        return f"{self.sender}:{self.message}"


class Alphabet:
    """The symbols of a protocol."""

    def __init__(self, protocol: str) -> None:
        """Number the messages; InputError where the protocol has no dialog that can be followed here."""
        self.protocol = protocol
        self.dialogs = dialogs_of(protocol)
        if not self.dialogs:
            raise InputError(f"protocol {protocol!r} has no dialog, so its conversations cannot be followed")
        self.messages = tuple(load_schemas(protocol).SCHEMAS)
        self.roles = tuple(dict.fromkeys(role for dialog in self.dialogs for role in dialog.roles))
        self.labels = tuple(
            Label(sender, message, pairing)
            for message in (*self.messages, None)
            for sender in (*self.roles, None)
            for pairing in Pairing
        )

    def __len__(self) -> int:
        return len(self.labels)

    def base(self, message: str | None) -> int:
        """Return the symbol of a message from the first role; a role adds `len(Pairing)`, a pairing its value."""
        position = len(self.messages) if message is None else self.messages.index(message)
        return position * (len(self.roles) + 1) * len(Pairing)

    def symbol(self, message: str | None, sender: str | None, pairing: Pairing = Pairing.KEYED) -> int:
        """Return the number of a message."""
        role = self.roles.index(sender) if sender in self.roles else len(self.roles)
        return self.base(message) + role * len(Pairing) + pairing

    @property
    def key(self) -> tuple[str, ...]:
        """Return the fields by which replies are paired, none where they are not paired by key."""
        return self.dialogs[0].key


def dialogs_of(protocol: str) -> tuple[Dialog, ...]:
    """Return the dialogs of a protocol that can be followed at scale; none where it has none, or one cannot be.

    Replies that are paired by key are looked up apart from the phases. That is the same only where no reply moves the
    dialog on and no error answers a violation, and where all dialogs have one kind of key.
    """
    dialogs = tuple(getattr(load_machine(protocol), "DIALOGS", {}).values())
    pairings = {(dialog.key, *map(_frozen, (dialog.keyless, dialog.unanswered))) for dialog in dialogs}
    return dialogs if len(pairings) <= 1 and all(map(_can_be_followed, dialogs)) else ()


def _can_be_followed(dialog: Dialog) -> bool:
    moved = {label for phase in dialog.phases.values() for label in (*phase.moves, *phase.starts)}
    return not dialog.key or not (dialog.errors or moved & set(dialog.replies))


def _frozen(values: object) -> tuple[tuple[str, int], ...]:
    assert hasattr(values, "items")
    return tuple(values.items())
