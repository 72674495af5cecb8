# Written by specwire from generator/support/dialog.py. Do not edit; change that file and run `make generate`.
"""The tables of a dialog: who may send what, and when.

A `Dialog` is plain data, generated from a rule of the specification. A *label* is a message with its
sender, ``C:Icanhaz``.

The ``strict`` reading is the rule as written: one state, and the labels allowed in it. The
``concurrent`` reading is what peers do that do not wait for each other. It has a phase (opening, use,
closed) and *tokens*: a request leaves a token in a place, a reply takes one from it. Where the dialog
has a key, a token carries the key of its request and only a reply with that key takes it.

`specwire.generated.session` watches a conversation by these tables; `specwire.generated.events` shows
what each side may do in every state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeVar

import msgspec

Reading = Literal["strict", "concurrent"]

Context_contra = TypeVar("Context_contra", contravariant=True)
"""What a program hands to its handlers beside the message: the time, the peer, or both."""
Result_co = TypeVar("Result_co", covariant=True)
"""What a program's handlers return: the actions to perform, an awaitable, or nothing."""


class Phase(msgspec.Struct, frozen=True):
    """A phase of the concurrent reading.

    `moves` give the next phase; `starts` the next phase and the place of the token, None for a message
    that wants no reply. A phase is closed when it has neither.
    """

    moves: Mapping[str, str]
    starts: Mapping[str, tuple[str, str | None]]

    @property
    def closed(self) -> bool:
        """Whether nothing more may come."""
        return not self.moves and not self.starts


class Dialog(msgspec.Struct, frozen=True):
    """The tables of a dialog; of `strict` and `phases` the first entry is the start."""

    name: str
    rule: str
    roles: tuple[str, ...]
    strict: Mapping[str, Mapping[str, str]]
    """For each state the labels allowed in it, each with the next state."""
    phases: Mapping[str, Phase]
    replies: Mapping[str, tuple[tuple[str, str | None], ...]]
    """For each label the places it may take a token from, each with the place it then goes to."""
    errors: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    keyless: Mapping[str, int] = {}
    unanswered: Mapping[str, int] = {}


def step(dialog: Dialog, state: str, label: str) -> str | None:
    """Return the state after `label` in the strict reading, None where it is not allowed."""
    return dialog.strict[state].get(label)
