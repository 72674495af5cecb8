"""Log: an event is a type, and its text and its JSON come from that type alone.

A protocol derives a class from `LogEvent` for each kind of event. The fields are the data of the
JSON form, and `describe` returns the text. What an outsider can cause has a `limit`: events with
the same limit share a bounded rate, and the number of omitted events is logged with the next one.

`EventLog` writes the events of one peer, and `EventStreams` hands them to the program.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from time import monotonic
from typing import ClassVar
from weakref import WeakSet

import msgspec

from specwire.runtime.log.form import LogForm
from specwire.runtime.log.quota import Quota
from specwire.runtime.log.serverlog import ServerLog
from specwire.runtime.log.stamp import Level, Stamp
from specwire.runtime.log.text import show_peer

MAX_UNREAD = 100_000
CLIENT = "a client"
"""`Refused.name` of a client that was not admitted, or was cut off."""


class LogEvent(msgspec.Struct, frozen=True):
    """Base of everything that is logged.

    Attributes:
        level: how serious the event is; a property where it depends on the fields.
        limit: events that share a rate, by the words for those omitted; empty for no limit.
        text: format string with the event as its argument, such as ``"{0.name} joined {0.group}"``.
    """

    level: ClassVar[Level] = "info"
    limit: ClassVar[str] = ""
    text: ClassVar[str] = ""

    def describe(self) -> str:
        """Return the text. `EventLog` escapes unprintable characters of peers."""
        return self.text.format(self)


class Refused(LogEvent, frozen=True):
    """Something was not accepted: a client of a listener, a message, or what a message asks for.

    Attributes:
        name: what was refused.
        peer: whose it was; empty where that is unknown.
    """

    name: str
    reason: str
    peer: str = ""
    level = "warning"
    limit = "more were refused"

    def describe(self) -> str:
        """Return the text."""
        owner = f" of {show_peer(self.peer)}" if self.peer else ""
        return f"refused {self.name}{owner}: {self.reason}"


class HostNotice(LogEvent, frozen=True):
    """Something about the host that an operator should know."""

    notice: str
    level = "warning"
    text = "{0.notice}"


class EventLog:
    """Writer of the log of one peer, and of what specwire's modules log meanwhile.

    Args:
        write: writes one line.
        role: kind of server, in each JSON object.
        wanted: returns whether to write an event.
        clock: monotonic clock, in seconds.
    """

    def __init__(
        self,
        write: Callable[[str], None],
        role: str,
        form: LogForm = LogForm.TEXT,
        *,
        wanted: Callable[[LogEvent], bool] = lambda event: True,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._lines = ServerLog(write, Stamp(role, form), form)
        self._wanted, self._clock = wanted, clock
        self._quotas: dict[str, Quota] = {}

    def emit(self, event: LogEvent) -> None:
        """Write an event, unless it is not wanted or exceeds its rate."""
        if self._wanted(event):
            self._lines.tell(event, self._write, event.level)

    def line(self, text: str) -> None:
        """Write a line that is about no event."""
        self._lines.line(text)

    def close(self) -> None:
        """Stop writing what specwire's modules log."""
        self._lines.close()

    def _write(self, event: LogEvent) -> None:
        if not event.limit:
            self._lines.narrated(event.describe())
            return
        quota = self._quotas.get(event.limit)
        if quota is None:
            quota = self._quotas[event.limit] = Quota(self._lines.narrated, self._clock, event.limit)
        quota.write(event.describe())


class EventStreams:
    """Events of one peer, as asynchronous iterators that end when the peer stops.

    A stream that nobody reads keeps the newest `MAX_UNREAD` events; `lost` counts the others. A
    stream that the program drops is forgotten.
    """

    def __init__(self) -> None:
        self.lost = 0
        self._ended = False
        self._streams: WeakSet[asyncio.Queue[LogEvent | None]] = WeakSet()

    def add(self, event: LogEvent) -> None:
        """Add an event to every stream."""
        self._put(event)

    def end(self) -> None:
        """End every stream, and those that are read later."""
        self._ended = True
        self._put(None)

    def read(self) -> AsyncGenerator[LogEvent, None]:
        """Return a stream of the events from now on."""
        stream: asyncio.Queue[LogEvent | None] = asyncio.Queue(MAX_UNREAD)
        self._streams.add(stream)
        if self._ended:
            stream.put_nowait(None)
        return _iterate(stream)

    def _put(self, event: LogEvent | None) -> None:
        for stream in self._streams:
            if stream.full():
                stream.get_nowait()
                self.lost += 1
            stream.put_nowait(event)


async def _iterate(stream: asyncio.Queue[LogEvent | None]) -> AsyncGenerator[LogEvent, None]:
    while (event := await stream.get()) is not None:
        yield event
