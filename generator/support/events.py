"""Table of valid events: what each side of a dialog may send and receive in every state.

A user interface can use it to disable buttons, a test to walk through a dialog. It shows the tables
of a `Dialog` from one side and is complete: every state has a row, and a message that a row does
not list is out of turn.

In the strict reading the state determines everything. In the concurrent reading a reply is allowed
while a request waits for it, which depends on the conversation. So such messages are listed
separately.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from specwire.generated.dialog import Dialog, Reading


class Events(msgspec.Struct, frozen=True):
    """What a side may do in one state; each message is given by its class name.

    Attributes:
        send: messages it may send.
        receive: messages that the other side may send.
        reply: messages it may send while a request of the other side waits for them.
        awaited: messages that the other side may send while a request of this side waits for them.
    """

    send: tuple[str, ...] = ()
    receive: tuple[str, ...] = ()
    reply: tuple[str, ...] = ()
    awaited: tuple[str, ...] = ()


def events_of(dialog: Dialog, role: str, reading: Reading) -> dict[str, Events]:
    """Return a row for every state, or for every phase of the concurrent reading, in the dialog's order.

    Raises:
        ValueError: the dialog has no such role, or `reading` is unknown.
    """
    if role not in dialog.roles:
        raise ValueError(f"dialog {dialog.name!r} has the roles {', '.join(dialog.roles)}, not {role!r}")
    if reading == "strict":
        return {state: _row(role, row, ()) for state, row in dialog.strict.items()}
    if reading != "concurrent":
        raise ValueError(f"a dialog is read 'strict' or 'concurrent', not {reading!r}")
    rows: dict[str, Events] = {}
    for name, phase in dialog.phases.items():
        always = dict.fromkeys((*phase.moves, *phase.starts))
        replies = () if phase.closed else tuple(label for label in dialog.replies if label not in always)
        rows[name] = _row(role, always, replies)
    return rows


def _row(role: str, always: Iterable[str], replies: Iterable[str]) -> Events:
    always, replies = tuple(always), tuple(replies)
    return Events(
        send=_named(always, role, own=True),
        receive=_named(always, role, own=False),
        reply=_named(replies, role, own=True),
        awaited=_named(replies, role, own=False),
    )


def _named(labels: Iterable[str], role: str, *, own: bool) -> tuple[str, ...]:
    parts = (label.partition(":") for label in labels)
    return tuple(dict.fromkeys(name for sender, _, name in parts if (sender == role) is own))
