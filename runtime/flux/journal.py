"""The log of a broker: the newest lines, in a ring; each is one line of RFC 5424.

A line begins with the severity times 8, as deployed brokers write it: ``<56>`` is a line for debugging.
"""

from __future__ import annotations

from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from specwire.runtime.flux.errors import EPROTO, FluxError

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine

RING_LINES = 1024
"""What the ring of a deployed broker holds."""
LINE_OCTETS = 2048
"""The longest line that is taken; RFC 5424 asks receivers to take 2048 octets."""

ERROR, WARNING, NOTICE, INFO, DEBUG = 3, 4, 5, 6, 7


class Entry(NamedTuple):
    """A line of the broker's own, which is written out when somebody reads it."""

    time: float
    severity: int
    app: str
    text: str


class Journal:
    """The ring; it is made with the first line."""

    __slots__ = ("_broker", "_ring")

    def __init__(self, broker: BrokerEngine) -> None:
        self._broker = broker
        self._ring: deque[Entry | str] | None = None

    def add(self, text: str, severity: int = DEBUG, app: str = "broker") -> None:
        """Add a line of the broker's own."""
        entry = Entry(self._broker.now, severity, app, " ".join(text.split())[:LINE_OCTETS])
        self._append(entry)

    def add_line(self, payload: bytes | None) -> None:
        """Add a line as a program wrote it; raises FluxError EPROTO where it is none."""
        octets = (payload or b"").rstrip(b"\0\n")
        if not octets.startswith(b"<") or len(octets) > LINE_OCTETS or b"\0" in octets:
            raise FluxError(EPROTO)
        self._append(" ".join(octets.decode("utf-8", "replace").splitlines()))

    def lines(self) -> list[str]:
        """Return all lines there are, the oldest first."""
        return [self._write(entry) for entry in self._ring or ()]

    def clear(self) -> None:
        """Forget all lines."""
        self._ring = None

    def _append(self, entry: Entry | str) -> None:
        if self._ring is None:
            self._ring = deque(maxlen=RING_LINES)
        self._ring.append(entry)
        self._broker.registry.logged(lambda: self._write(entry))

    def _write(self, entry: Entry | str) -> str:
        if isinstance(entry, str):
            return entry
        settings = self._broker.settings
        time = datetime.fromtimestamp(entry.time + settings.clock_offset_s, UTC)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        rank, process = self._broker.rank, settings.process
        return f"<{entry.severity << 3}>1 {stamp} {rank} {entry.app} {process} - - {entry.text}"
