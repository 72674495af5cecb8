"""Who came to a server's socket and did not get in, and why; without it a failed handshake leaves no trace there.

Who is not let in by the `Guard` is told by it, with the name: that is left out here. libzmq does not say where the
others came from (see `monitor`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.link import Link
from specwire.runtime.transport.monitor import Monitor, SocketEvent, Turn

PAUSE_S = 10.0

TOLD = {
    Turn.NOT_UNDERSTOOD: "the handshake failed",
    Turn.HUNG_UP: "hung up during the handshake",
    Turn.ACCEPT_FAILED: "its connection cannot be accepted",
}


class Arrivals:
    """Watches a socket from before it is bound until `close`, which comes before the socket's own.

    Args:
        on_refused: called with the reason whenever somebody did not get in.
        on_lost: called whenever the connection of somebody who was in has ended; libzmq does not say whose.

    Raises:
        TransportError: the socket cannot be watched.
    """

    def __init__(
        self,
        context: TransportContext,
        link: Link,
        on_refused: Callable[[str], None],
        on_lost: Callable[[], None] | None = None,
    ) -> None:
        self._context, self._link, self._on_refused, self._on_lost = context, link, on_refused, on_lost
        self._pause: asyncio.TimerHandle | None = None
        self._monitor = self._watch()

    def close(self) -> None:
        """Tell nothing any more."""
        if self._pause is not None:
            self._pause.cancel()
        self._monitor.close()

    def _watch(self) -> Monitor:
        lost = (Turn.DISCONNECTED,) if self._on_lost is not None else ()
        return Monitor(self._context, self._link, (*TOLD, *lost), self._take)

    def _take(self, event: SocketEvent) -> None:
        if event.turn is Turn.DISCONNECTED:
            if self._on_lost is not None:
                self._on_lost()
            return
        self._on_refused(f"{TOLD[event.turn]}: {event.reason}")
        if event.turn is Turn.ACCEPT_FAILED:
            # libzmq tries again at once, thousands of times a second, for as long as there is no descriptor left.
            self._monitor.close()
            self._pause = asyncio.get_running_loop().call_later(PAUSE_S, self._watch_again)

    def _watch_again(self) -> None:
        try:
            self._monitor = self._watch()
        except TransportError:  # there is no descriptor for this either
            self._pause = asyncio.get_running_loop().call_later(PAUSE_S, self._watch_again)
