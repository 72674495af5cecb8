"""Reports of failed handshakes at a server's socket; without them, a failure leaves no trace.

The `Guard` reports the peers that it refuses, with their names, so they are omitted here. libzmq
does not give the address of the others (see `monitor`). A socket has one monitor, so this class
also reports connections to an `Inflow`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.inflow import Inflow
from specwire.runtime.transport.link import Link
from specwire.runtime.transport.monitor import Monitor, SocketEvent, Turn

PAUSE_S = 10.0
SEARCH_S = 1.0
"""Interval at which an `Inflow` searches for connections while there is no monitor."""

TOLD = {
    Turn.NOT_UNDERSTOOD: "the handshake failed",
    Turn.HUNG_UP: "hung up during the handshake",
    Turn.ACCEPT_FAILED: "its connection cannot be accepted",
}


class Arrivals:
    """Monitor of the connections of a server's socket.

    Create it before the socket is bound, and close it before the socket.

    Args:
        on_refused: called with the reason after each failed handshake.
        on_lost: called after each lost connection; libzmq does not say whose it was.
        inflow: receives the connections of the socket, and is closed with this object.

    Raises:
        TransportError: the socket cannot be watched. `inflow` is closed in this case, too.
    """

    def __init__(
        self,
        context: TransportContext,
        link: Link,
        on_refused: Callable[[str], None],
        on_lost: Callable[[], None] | None = None,
        *,
        inflow: Inflow | None = None,
    ) -> None:
        self._context, self._link, self._on_refused, self._on_lost = context, link, on_refused, on_lost
        self._inflow = inflow
        self._pause: asyncio.TimerHandle | None = None
        self._watch_at = 0.0
        try:
            self._monitor = self._watch()
        except TransportError:
            if inflow is not None:
                inflow.close()
            raise

    def close(self) -> None:
        """Stop watching, and close the `Inflow`."""
        if self._pause is not None:
            self._pause.cancel()
        self._monitor.close()
        if self._inflow is not None:
            self._inflow.close()

    def _watch(self) -> Monitor:
        turns = list(TOLD)
        if self._inflow is not None:
            turns += [Turn.ACCEPTED, Turn.DISCONNECTED]
        elif self._on_lost is not None:
            turns.append(Turn.DISCONNECTED)
        return Monitor(self._context, self._link, turns, self._take)

    def _take(self, event: SocketEvent) -> None:
        match event.turn:
            case Turn.ACCEPTED:
                if self._inflow is not None:
                    self._inflow.opened(event.descriptor, event.endpoint)
            case Turn.DISCONNECTED:
                if self._inflow is not None:
                    self._inflow.closed(event.descriptor)
                if self._on_lost is not None:
                    self._on_lost()
            case _:
                self._on_refused(f"{TOLD[event.turn]}: {event.reason}")
                if event.turn is Turn.ACCEPT_FAILED:
                    self._pause_watching()

    def _pause_watching(self) -> None:
        """Close the monitor for `PAUSE_S`.

        Without free descriptors, libzmq tries to accept thousands of times a second.
        """
        self._monitor.close()
        loop = asyncio.get_running_loop()
        self._watch_at = loop.time() + PAUSE_S
        self._pause = loop.call_later(min(PAUSE_S, SEARCH_S), self._retry)

    def _retry(self) -> None:
        """Watch again when the pause is over, and search for connections whose events were lost."""
        loop = asyncio.get_running_loop()
        self._pause = None
        if loop.time() >= self._watch_at:
            try:
                self._monitor = self._watch()
            except TransportError:  # still no free descriptor
                self._watch_at = loop.time() + PAUSE_S
        if self._inflow is not None:
            self._inflow.search()
        if self._monitor.is_closed:
            self._pause = loop.call_later(min(PAUSE_S, SEARCH_S), self._retry)
