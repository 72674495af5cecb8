"""What was found about one thing on this machine."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class State(StrEnum):
    """How one thing is."""

    OK = "ok"
    """It is there and works."""
    ABSENT = "absent"
    """It is not there, and what does not need it works without."""
    WRONG = "wrong"
    """It is there and broken, or nothing works without it."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at."""

    name: str
    """What was looked at, by a word that `specwire doctor --need` takes."""
    state: State
    found: str
    """What there is, or what there is not, in words."""
    advice: str = ""
    """What to do about it, as a sentence or a command; empty where there is nothing to do."""
