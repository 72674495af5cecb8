"""Status of a peer: its process."""

from __future__ import annotations

import os
from datetime import UTC, datetime

from specwire.runtime.kernel.status import ProcessClock


def test_uptime_is_that_of_the_peer() -> None:
    """It grows, and the start has a time zone."""
    clock = ProcessClock()
    first, second = clock.describe(), clock.describe()
    assert second.uptime_s >= first.uptime_s >= 0
    assert first.pid == os.getpid()
    assert datetime.fromisoformat(first.started).tzinfo is UTC
