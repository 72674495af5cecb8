"""How much a capture gathers before it writes, how much it keeps waiting before it drops, and what it keeps of all that."""

from __future__ import annotations

import msgspec

from specwire.runtime.capture.policy import KEEP, Payload
from specwire.runtime.capture.retention import FOREVER, Retention

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

    payload: Payload = KEEP
    """What is written of the content that messages carry."""

    retention: Retention = FOREVER
    """What of the whole folder is kept; older segments, of other taps too, are deleted."""

    free_octets: int | None = None
    """What is left free of the disk: messages are dropped and counted instead. None: 256 MiB, or a twentieth of a
    disk for which that is less."""
