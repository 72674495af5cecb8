"""The dialog part of the IR: which role may send what, and when.

A *label* is a message with its sender, ``C:Icanhaz``: the role's letter and the message's class name.
Every dialog has two readings.

``strict`` is the rule as written: a minimal finite automaton, one `State` after another, the first the
start. A state without transitions ends the dialog.

``concurrent`` is what peers do that do not wait for each other. It is a lifecycle of `Phase`s in which
independent exchanges run side by side. A phase has `moves` to other phases (opening, closing, errors)
and `starts`: messages that may come at any time in it. A message that wants an answer leaves a token
in a *place*; a `Reply` takes a token from its place, and may put it into the next one. The number of
tokens in a place is the number of requests without reply.
"""

from __future__ import annotations

import msgspec


class DialogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One ``[[dialogs]]`` entry of a profile: where the dialog's rule is, and what ABNF cannot say of it."""

    name: str
    rule: str
    """The rule, of the grammar or of the profile: a regular expression over ``ROLE:message``."""
    roles: tuple[str, ...]
    error: str | None = None
    """The rule whose messages are errors: in the concurrent reading enabled in every open phase, and closing."""
    repeat: bool = False
    """The rule is one exchange of a dialog that never ends."""
    symmetric: bool = False
    """Either side may start what the rule lets one side start."""
    key: tuple[str, ...] = ()
    """The fields that pair a reply with its request."""
    keyless: dict[str, int] = {}
    """Field values that stand for "no key": such a request opens no exchange, such a reply is let through."""
    unanswered: dict[str, int] = {}
    """For a field, the bits that ask for no reply: a request with all of them set opens no exchange."""


class Transition(msgspec.Struct, frozen=True):
    """On `label`, go to the state or phase named `target`."""

    label: str
    target: str


class State(msgspec.Struct, frozen=True):
    """A state of the strict reading; `accepting` where the rule is complete."""

    name: str
    accepting: bool
    transitions: tuple[Transition, ...]


class Start(msgspec.Struct, frozen=True):
    """A message that may come at any time in a phase; then the lifecycle is in `phase`.

    `place` is where the token goes that waits for a reply, None for a message that wants none.
    """

    label: str
    phase: str
    place: str | None


class Phase(msgspec.Struct, frozen=True):
    """A phase of the concurrent reading; `closed` where nothing more may come."""

    name: str
    closed: bool
    moves: tuple[Transition, ...]
    starts: tuple[Start, ...]


class Reply(msgspec.Struct, frozen=True):
    """On `label`, a token leaves `place` for `then`, or is gone where `then` is None."""

    label: str
    place: str
    then: str | None


class Concurrent(msgspec.Struct, frozen=True):
    """The concurrent reading: phases (the first is the start), places, and the replies between them.

    Replies with the same label are in order of preference.
    """

    phases: tuple[Phase, ...]
    places: tuple[str, ...]
    replies: tuple[Reply, ...]
    errors: tuple[str, ...]


class Dialog(msgspec.Struct, frozen=True):
    """A dialog between roles, in both readings."""

    name: str
    rule: str
    roles: tuple[str, ...]
    labels: tuple[str, ...]
    """Every label that the concurrent reading knows, in the order of the rule; the strict one has no other."""
    strict: tuple[State, ...]
    concurrent: Concurrent
    key: tuple[str, ...] = ()
    keyless: tuple[tuple[str, int], ...] = ()
    unanswered: tuple[tuple[str, int], ...] = ()
