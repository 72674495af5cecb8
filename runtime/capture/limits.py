"""How much a capture gathers before it writes, and how much it keeps waiting before it drops."""

from __future__ import annotations

import msgspec

MEBI = 1 << 20


class Limits(msgspec.Struct, frozen=True):
    """Bounds of one tap: a segment closes, or a message is dropped, at whichever is reached first."""

    segment_s: float = 1.0
    """Time from a segment's first message to its writing, in seconds."""

    segment_rows: int = 50_000
    """Messages in one segment."""

    segment_octets: int = 32 * MEBI
    """Octets of frames in one segment."""

    queue_rows: int = 200_000
    """Messages waiting for the writer; beyond them messages are dropped and counted."""

    queue_octets: int = 128 * MEBI
    """Octets of frames waiting for the writer; beyond them messages are dropped and counted."""

    close_s: float = 30.0
    """Time that `Tap.close` gives the writer to finish, in seconds."""
