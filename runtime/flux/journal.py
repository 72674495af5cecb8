"""The log of a broker: the newest lines, in a ring; each is one line of RFC 5424.

A line begins with the severity times 8, as deployed brokers write it: ``<56>`` is a line for debugging.

What is at least as grave as `forward_level` goes up, broker by broker, as ``log.append`` that nobody answers. So
rank 0 has the log of the whole instance, and every other broker what was logged there. But what brokers themselves
log for debugging stays, and in a large instance what is no fault, too: 100,000 of them that tell rank 0 of their start
at once would keep it busy for seconds, and its ring holds a hundredth of that. What a broker logs while it
has no parent waits, as far as it is not too much, until it has one: why it was cut off is worth knowing above.

What happens in the broker is told in the words of `narration`, and as seldom: what outsiders cause has a bounded rate.
"""

from __future__ import annotations

import re
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from specwire.generated.flux import Request
from specwire.runtime.flux.answering import pack_text
from specwire.runtime.flux.credentials import OWNER
from specwire.runtime.flux.errors import EPROTO, FluxError
from specwire.runtime.flux.events import Event
from specwire.runtime.flux.flags import NORESPONSE, UPSTREAM
from specwire.runtime.flux.narration import Narrator
from specwire.runtime.flux.severity import Severity

if TYPE_CHECKING:
    from specwire.runtime.flux.broker import BrokerEngine

APPEND = "log.append"

RING_LINES = 1024
"""What the ring of a deployed broker holds."""
LINE_OCTETS = 2048
"""The longest line that is taken; RFC 5424 asks receivers to take 2048 octets."""
TEXT_OCTETS = 1900
"""What a line of the broker's own has after its head."""
SMALL_INSTANCE = 128
"""Brokers of an instance in which rank 0 is told of what is no fault, too."""
MAX_WAITING = 64
"""Lines that wait for a parent."""

_PRI = re.compile(rb"<(\d{1,3})>")


class Entry(NamedTuple):
    """A line of the broker's own, which is written out when somebody reads it."""

    time: float
    severity: int
    app: str
    text: str


class Journal:
    """The ring; it is made with the first line."""

    __slots__ = ("_broker", "_narrator", "_ring", "_waiting")

    def __init__(self, broker: BrokerEngine) -> None:
        self._broker = broker
        self._narrator: Narrator | None = None
        self._ring: deque[Entry | str] | None = None
        self._waiting: deque[bytes] | None = None

    def tell(self, event: Event) -> None:
        """Add a line about what happened, unless it is not worth one."""
        if self._narrator is None:
            self._narrator = Narrator(self.add, lambda: self._broker.now)
        self._narrator.tell(event)

    def add(self, text: str, severity: int = Severity.DEBUG, app: str = "broker") -> None:
        """Add a line of the broker's own."""
        text = " ".join(text.split()).encode("utf-8", "replace")[:TEXT_OCTETS].decode("utf-8", "ignore")
        entry = Entry(self._broker.now, severity, app, text)
        self._append(entry)
        is_small = self._broker.settings.tree.size <= SMALL_INSTANCE
        if severity <= (Severity.INFO if is_small else Severity.WARNING) and self._goes_up(severity):
            self._send_up(pack_text(self._write(entry)))

    def add_line(self, payload: bytes | None, *, passing: bool) -> None:
        """Add a line as a program wrote it, or where it is only `passing` by, send it on.

        Raises:
            FluxError: EPROTO: it is no line.
        """
        octets = (payload or b"").rstrip(b"\0\n")
        if not octets.startswith(b"<") or len(octets) > LINE_OCTETS or b"\0" in octets:
            raise FluxError(EPROTO)
        if not passing:
            self._append(" ".join(octets.decode("utf-8", "replace").splitlines()))
        found = _PRI.match(octets)
        if self._goes_up(int(found[1]) >> 3 if found else Severity.INFO):
            self._send_up(octets + b"\0")

    def lines(self) -> list[str]:
        """Return all lines there are, the oldest first."""
        return [self._write(entry) for entry in self._ring or ()]

    def clear(self) -> None:
        """Forget all lines."""
        self._ring = None

    def parent_found(self) -> None:
        """There is a parent, who is told what was logged meanwhile."""
        waiting, self._waiting = self._waiting or (), None
        for line in waiting:
            self._send_up(line)

    def _append(self, entry: Entry | str) -> None:
        if self._ring is None:
            self._ring = deque(maxlen=RING_LINES)
        self._ring.append(entry)
        self._broker.registry.logged(lambda: self._write(entry))

    def _goes_up(self, severity: int) -> bool:
        return bool(self._broker.rank) and severity <= self._broker.settings.forward_level

    def _send_up(self, line: bytes) -> None:
        """Send a line to the parent, who reads it himself: the rank is this one's, and the flag says upstream."""
        broker = self._broker
        if broker.overlay.parent is not None:
            flags = NORESPONSE | UPSTREAM
            broker.overlay.send_up(
                Request((), APPEND, line, flags, broker.settings.owner, OWNER, broker.rank)
            )
            return
        if self._waiting is None:
            self._waiting = deque(maxlen=MAX_WAITING)
        self._waiting.append(line)

    def _write(self, entry: Entry | str) -> str:
        if isinstance(entry, str):
            return entry
        settings = self._broker.settings
        time = datetime.fromtimestamp(entry.time + settings.clock_offset_s, UTC)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        rank, process = self._broker.rank, settings.process
        return f"<{entry.severity << 3}>1 {stamp} {rank} {entry.app} {process} - - {entry.text}"
