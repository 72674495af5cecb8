"""Tables of a dialog: which role may send which message, and when.

A `Dialog` is plain data, generated from a rule of the specification. A *label* is a message with
its sender, for example ``C:Icanhaz``.

A dialog has two readings:

- ``strict`` is the rule as written: one state, and the labels allowed in it.
- ``concurrent`` describes peers that do not wait for each other. It has a phase (opening, use,
  closed) and *tokens*. A request leaves a token in a place, and a reply removes one. If the dialog
  has a key, each token carries the key of its request, and only a reply with that key removes it.

`specwire.generated.session` checks a conversation against these tables. `specwire.generated.events`
lists what each side may do in every state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

import msgspec

Reading = Literal["strict", "concurrent"]

Context_contra = TypeVar("Context_contra", contravariant=True)
"""Context that a program passes to its handlers with the message, such as the time or the peer."""
Result_co = TypeVar("Result_co", covariant=True)
"""Return type of a program's handlers: actions to perform, an awaitable, or None."""


class Phase(msgspec.Struct, frozen=True):
    """Phase of the concurrent reading.

    `moves` maps a label to the next phase. `starts` maps a label to the next phase and the place of
    the token; the place is None if the message needs no reply. A phase without either is closed.
    """

    moves: Mapping[str, str]
    starts: Mapping[str, tuple[str, str | None]]

    @property
    def closed(self) -> bool:
        """Whether no further message is allowed."""
        return not self.moves and not self.starts


class Dialog(msgspec.Struct, frozen=True):
    """Tables of a dialog. The first entries of `strict` and `phases` are the initial ones."""

    name: str
    rule: str
    roles: tuple[str, ...]
    strict: Mapping[str, Mapping[str, str]]
    """For each state, the labels allowed in it, each with the next state."""
    phases: Mapping[str, Phase]
    replies: Mapping[str, tuple[tuple[str, str | None], ...]]
    """For each label, the places it may remove a token from, each with the place the token moves to."""
    errors: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    keyless: Mapping[str, int] = {}
    unanswered: Mapping[str, int] = {}


def step(dialog: Dialog, state: str, label: str) -> str | None:
    """Return the state after `label` in the strict reading; None if the label is not allowed."""
    return dialog.strict[state].get(label)
