"""Events of a broker in addition to those of its engine (`specwire.runtime.norfab.events`)."""

from __future__ import annotations

import msgspec

from specwire.runtime.norfab.events import Happening


class Began(msgspec.Struct, frozen=True):
    """The broker listens; `jobs` are those it found in its store."""

    endpoints: tuple[str, ...]
    jobs: int


class TurnedAway(msgspec.Struct, frozen=True):
    """A handshake failed."""

    reason: str


class CutOff(msgspec.Struct, frozen=True):
    """A connection was cut off because an unfinished message exceeded its bound."""

    reason: str


class Noticed(msgspec.Struct, frozen=True):
    """Something that whoever runs the broker should know, as a sentence."""

    sentence: str


class Managed(msgspec.Struct, frozen=True):
    """A client used management for more than to look, or tried to; `target` says which workers it meant."""

    peer: bytes
    user: str
    service: str
    task: str
    target: str
    allowed: bool


class Ended(msgspec.Struct, frozen=True):
    """The broker has ended, or begins anew."""

    restart: bool
    reason: str


BrokerEvent = Happening | Began | TurnedAway | CutOff | Noticed | Managed | Ended
