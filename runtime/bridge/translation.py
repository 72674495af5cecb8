"""What a bridge asks of two dialects: to say in one what was said in the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Send(NamedTuple):
    """A message that goes out: to who opened the connection, or to who listens."""

    to_opener: bool
    frames: Sequence[bytes]


class UnsayableError(Exception):
    """A message has no like in the other dialect, or is none; `str()` says which and why, without what others chose."""

    def __init__(self, reason: str, answer: Send | None = None) -> None:
        super().__init__(reason)
        self.answer = answer
        """What its sender is told instead."""


class Hold(NamedTuple):
    """One side is to be read no more for now, or again."""

    opener: bool
    held: bool


class Unsaid(NamedTuple):
    """A part of a message, or what was to be said beside it, could not be said."""

    reason: str


Step = Send | Hold | Unsaid


class Translation(Protocol):
    """One connection's translation. It is called with one message after the other, of both sides."""

    def translate(self, frames: Sequence[bytes], *, from_opener: bool) -> Sequence[Step]:
        """Return what is to be done for this message, in this order; UnsayableError where it cannot be said."""
