"""The last refusals of a peer, for whoever asks how it is."""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime

import msgspec

from specwire.runtime.filemq.names import as_utf8
from specwire.runtime.kernel.log import LogEvent, Refused

KEPT = 20


class Refusal(msgspec.Struct, frozen=True):
    """Something that was not accepted; `at` is the time (ISO 8601, UTC)."""

    at: str
    name: str
    reason: str
    peer: str = ""


class Refusals:
    """Keeps the newest `KEPT`."""

    def __init__(self) -> None:
        self._kept: deque[Refusal] = deque(maxlen=KEPT)

    def note(self, event: LogEvent, at: datetime | None = None) -> None:
        """Take what was refused; any other event is none of these."""
        if isinstance(event, Refused):
            moment = (at or datetime.now(UTC)).isoformat(timespec="seconds")
            self._kept.append(Refusal(moment, as_utf8(event.name), as_utf8(event.reason), event.peer))

    def newest(self) -> tuple[Refusal, ...]:
        """Return them, the newest last."""
        return tuple(self._kept)
