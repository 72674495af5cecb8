"""The independent calculation: conversations watched one message at a time by the generated ``machine.Session``.

Messages are stand-ins, for a session looks at a message's class name and the fields it pairs by, and at nothing else.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from specwire.generated.dialog import Dialog, Reading
from specwire.generated.session import DialogSession

OPEN_LIMIT = 65_536


class Said(NamedTuple):
    """A message of a conversation; `message` None did not decode."""

    seq: int
    sender: str
    message: str | None
    fields: Mapping[str, object]


class Broken(NamedTuple):
    """A violation that a session found."""

    seq: int
    kind: str
    state: str
    expected: tuple[str, ...]


class Verdict(NamedTuple):
    """What sessions say of a conversation."""

    from_middle: bool
    state: str
    restarts: int
    waiting: int
    violations: tuple[Broken, ...]


def dialogs_of(protocol: str) -> Mapping[str, Dialog]:
    """Return the dialogs of a package."""
    dialogs: Mapping[str, Dialog] = import_module(f"specwire.generated.{protocol}.machine").DIALOGS
    return dialogs


def follow(protocol: str, dialog: str, reading: Reading, said: Sequence[Said]) -> Verdict | None:
    """Return what a session of `dialog` says of a conversation; None where it begins in the middle.

    The dialog begins anew where it has ended and the next message is one that it begins with.
    """
    machine = import_module(f"specwire.generated.{protocol}.machine")

    def begin() -> DialogSession:
        session: DialogSession = machine.Session(machine.DIALOGS[dialog].roles[0], reading, dialog)
        return session

    session, restarts, accepted = begin(), 0, False
    violations: list[Broken] = []
    for seq, sender, message, fields in said:
        if message is None:
            violations.append(Broken(seq, "undecodable", session.state, session.expected()))
            session.malformed(sender)
            continue
        stand_in = type(message, (), dict(fields))()
        was_closed, before = session.closed, session.copy()
        found = session.observe(sender, stand_in)
        if found is not None and was_closed and begin().observe(sender, stand_in) is None:
            session, restarts, found = begin(), restarts + 1, None
            session.observe(sender, stand_in)
        if found is None:
            accepted = True
            continue
        roles = {role for each in machine.DIALOGS.values() for role in each.roles}
        if (
            sender in roles
            and not accepted
            and any(_allows(each, reading, sender, message) for each in machine.DIALOGS.values())
        ):
            return None
        kind = "unexpected" if sender in roles else "sender"
        assert found.state == before.state
        violations.append(Broken(seq, kind, found.state, found.expected))
    return Verdict(False, session.state, restarts, sum(session.waiting().values()), tuple(violations))


def _allows(dialog: Dialog, reading: Reading, sender: str, message: str) -> bool:
    """Whether the dialog allows a message anywhere."""
    label = f"{sender}:{message}"
    if reading == "strict":
        return any(label in row for row in dialog.strict.values())
    anywhere = any(label in (*phase.moves, *phase.starts) for phase in dialog.phases.values())
    return anywhere or label in dialog.replies


def improvise(
    protocol: str, dialog: str, chance: random.Random, length: int, *, discipline: float
) -> Iterator[Said]:
    """Yield a conversation of which each message is in order with the probability `discipline`."""
    machine = import_module(f"specwire.generated.{protocol}.machine")
    tables: Dialog = machine.DIALOGS[dialog]
    labels = _labels(tables)
    session: DialogSession = machine.Session(tables.roles[0], "concurrent", dialog)
    seq = chance.randrange(3)
    for _ in range(length):
        expected = session.expected()
        label = chance.choice(expected if expected and chance.random() < discipline else labels)
        sender, _, name = label.partition(":")
        message: str | None = name
        if chance.random() > discipline:
            sender = chance.choice((*tables.roles, "X", ""))
        if chance.random() > (1 + discipline) / 2:
            message = None
        fields = _fields(tables, chance)
        if message is not None:
            session.observe(sender, type(message, (), fields)())
        yield Said(seq, sender, message, fields)
        seq += chance.randrange(1, 4)


def _labels(dialog: Dialog) -> list[str]:
    strict = (label for row in dialog.strict.values() for label in row)
    phases = (label for phase in dialog.phases.values() for label in (*phase.moves, *phase.starts))
    return sorted({*strict, *phases, *dialog.replies, *dialog.errors})


def _fields(dialog: Dialog, chance: random.Random) -> dict[str, Any]:
    """Return what the dialog pairs by: one of four keys, or none."""
    fields: dict[str, Any] = {name: chance.randrange(1, 5) for name in dialog.key}
    fields |= {name: value for name, value in dialog.keyless.items() if chance.random() < 0.2}
    fields |= {name: value if chance.random() < 0.2 else 0 for name, value in dialog.unanswered.items()}
    return fields
