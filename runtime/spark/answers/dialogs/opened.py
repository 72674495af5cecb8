"""A conversation that may go on, as a value: between two batches, and between two runs."""

from __future__ import annotations

import msgspec

from specwire.runtime.spark.answers.dialogs.readings import Configuration
from specwire.runtime.spark.answers.dialogs.tokens import Held


class Track(msgspec.Struct):
    """What one reading knows of a conversation; `tokens` only where replies are paired by key."""

    configurations: tuple[Configuration, ...]
    from_middle: bool
    restarts: int
    violations: int
    waiting: int
    tokens: Held = ()


class Opened(msgspec.Struct):
    """A conversation up to its last message; times in microseconds and, of the tap's clock, nanoseconds."""

    first_seq: int
    last_seq: int
    first_ts: int
    last_ts: int
    first_mono: int
    last_mono: int
    messages: int
    errors: int
    tracks: tuple[Track, ...]
    """One for each reading."""


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Opened)


def to_text(opened: Opened) -> str:
    """Return it as JSON."""
    return _encoder.encode(opened).decode()


def from_text(text: str) -> Opened:
    """Return what `to_text` wrote; msgspec.ValidationError for anything else."""
    return _decoder.decode(text)
