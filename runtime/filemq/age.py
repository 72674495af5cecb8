"""Since when a peer runs, and in which process."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import msgspec

from specwire import __version__


class Process(msgspec.Struct, frozen=True):
    """The process that a peer runs in, and since when."""

    pid: int
    version: str
    started: str
    uptime_s: float


class Age:
    """The age of a peer that is made now."""

    def __init__(self) -> None:
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._begin_s = time.monotonic()

    def describe(self) -> Process:
        """Return what is to be told of the process now."""
        return Process(os.getpid(), __version__, self._started, round(time.monotonic() - self._begin_s, 3))
