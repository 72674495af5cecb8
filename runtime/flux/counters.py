"""Counters of a broker."""

from __future__ import annotations

import msgspec


class Counters(msgspec.Struct, gc=False):
    """Numbers since the start of the broker, for ``broker.stats-get``."""

    requests: int = 0
    responses: int = 0
    events: int = 0
    unreachable: int = 0
    """Requests that were answered with EHOSTUNREACH here."""
    dropped: int = 0
    """Messages that went to nobody."""
    malformed: int = 0
    cut_off: int = 0
    """Connections of brokers that were cut off because an unfinished message exceeded its bound."""
    event_gaps: int = 0
    """Events that never came here."""
