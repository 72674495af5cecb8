"""Who may be connected to the page, and for how long without asking anything.

Somebody who opens connections and is silent must not take the descriptors of a broker: there are `MAX_CONNECTIONS` at most,
and one on which nothing was asked for `IDLE_S` is closed.
"""

from __future__ import annotations

import asyncio
from typing import cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

MAX_CONNECTIONS = 64
IDLE_S = 30.0

OPENING_S = 0.1
"""A connection that was admitted is known to aiohttp after this at the latest."""


class Doorman:
    """Makes the protocol of each connection.

    Args:
        server: aiohttp's.
        max_connections: how many there may be at a time.
        idle_s: how long one may be silent.
    """

    def __init__(
        self, server: web.Server, *, max_connections: int = MAX_CONNECTIONS, idle_s: float = IDLE_S
    ) -> None:
        self._server = server
        self._max_connections, self._idle_s = max_connections, idle_s
        self._asked_at: dict[RequestHandler, float] = {}

    def admit(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        if len(self._asked_at) >= self._max_connections:
            self.sweep()
        if len(self._asked_at) >= self._max_connections:
            return _HangUp()
        handler = self._server()
        self.note(handler)
        return handler

    def note(self, handler: RequestHandler) -> None:
        """Something was asked on this connection."""
        self._asked_at[handler] = asyncio.get_running_loop().time()

    def sweep(self) -> None:
        """Close the connections on which nothing was asked for too long, and forget those that are over."""
        now, connected = asyncio.get_running_loop().time(), set(self._server.connections)
        for handler, asked_at in list(self._asked_at.items()):
            silent_s = now - asked_at
            if handler in connected and silent_s > self._idle_s:
                handler.force_close()
            if handler not in connected and silent_s > OPENING_S:
                del self._asked_at[handler]


class _HangUp(asyncio.Protocol):
    """A connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()
