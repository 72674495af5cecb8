"""State of a NORFAB job while its messages are folded."""

from __future__ import annotations

from typing import Any

import msgspec


class Part(msgspec.Struct):
    """A worker's part; times are of the tap's monotonic clock in nanoseconds."""

    worker: str
    sent: int | None = None
    accepted: int | None = None
    started: int | None = None
    started_by: str | None = None
    ended: int | None = None
    status: int | None = None
    failed: bool | None = None
    run_s: int | None = None


class Job(msgspec.Struct):
    """State of a job; `asked` is true if its POST was seen."""

    ts: Any
    seq: int
    mono: int
    last_mono: int
    asked: bool = False
    conversation: str | None = None
    client: str | None = None
    service: str | None = None
    target: str | None = None
    task: str | None = None
    dispatched: int | None = None
    listed: list[str] = []  # msgspec makes a new one for each
    parts: dict[str, Part] = {}
    ended: int | None = None
    end: str | None = None
    status: int | None = None
    events: int = 0
    polls: int = 0

    @property
    def over(self) -> bool:
        """Return whether no more messages are expected."""
        if self.end is not None:
            return True
        results = [part for part in self.parts.values() if part.ended is not None]
        if self.target == "any":
            return bool(results)
        return bool(results) and len(results) == len(self.parts)
