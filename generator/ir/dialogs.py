"""The dialogs of the IR: which role may send which message, and when.

A *label* is a message with its sender, ``C:Icanhaz``: the role's letter and the message's class name.
Every dialog has two readings.

``strict`` is the rule as written: a minimal finite automaton, one `State` after another, the first the
start. A state without transitions ends the dialog.

``concurrent`` describes peers that do not wait for each other. It is a lifecycle of `Phase`s in
which independent exchanges run side by side. A phase has `moves` to other phases (opening, closing,
errors) and `starts`: messages that may come at any time in it. A message that expects a reply puts
a token into a *place*. A `Reply` takes a token from its place and may put it into the next one. The
number of tokens in a place is the number of requests without a reply.
"""

from __future__ import annotations

import msgspec


class DialogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One ``[[dialogs]]`` entry of a profile: the dialog's rule, and settings that ABNF cannot express."""

    name: str
    rule: str
    """The rule, of the grammar or of the profile: a regular expression over ``ROLE:message``."""
    roles: tuple[str, ...]
    error: str | None = None
    """The rule of error messages; in the concurrent reading, each closes the dialog in any open phase."""
    repeat: bool = False
    """The rule is one exchange of a dialog that never ends."""
    symmetric: bool = False
    """Either side may start the exchanges that the rule allows one side to start."""
    key: tuple[str, ...] = ()
    """The fields that match a reply to its request."""
    keyless: dict[str, int] = {}
    """Field values that mean "no key": such requests open no exchange; such replies are always allowed."""
    unanswered: dict[str, int] = {}
    """For a field, the bits that ask for no reply: a request with all of them set opens no exchange."""


class Transition(msgspec.Struct, frozen=True):
    """A transition on `label` to the state or phase named `target`."""

    label: str
    target: str


class State(msgspec.Struct, frozen=True):
    """A state of the strict reading; `accepting` where the rule is complete."""

    name: str
    accepting: bool
    transitions: tuple[Transition, ...]


class Start(msgspec.Struct, frozen=True):
    """A message that may come at any time in a phase; it moves the lifecycle to `phase`.

    `place` receives the token that waits for a reply; None for a message without a reply.
    """

    label: str
    phase: str
    place: str | None


class Phase(msgspec.Struct, frozen=True):
    """A phase of the concurrent reading; if it is `closed`, no more messages may come."""

    name: str
    closed: bool
    moves: tuple[Transition, ...]
    starts: tuple[Start, ...]


class Reply(msgspec.Struct, frozen=True):
    """A reply: on `label` a token moves from `place` to `then`, or is removed if `then` is None."""

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
    """All labels of the concurrent reading, in the order of the rule; the strict reading uses no others."""
    strict: tuple[State, ...]
    concurrent: Concurrent
    key: tuple[str, ...] = ()
    keyless: tuple[tuple[str, int], ...] = ()
    unanswered: tuple[tuple[str, int], ...] = ()
