"""Access to the page and the metrics: a password, the host that a request names, and limits on connections.

The password comes as HTTP's Basic (under any name; browsers ask for it) or as a Bearer token.
Nothing is encrypted: it keeps out other users of this machine, and does not make the page safe on a
network. On loopback a request must name an address or ``localhost``, so that a page elsewhere
cannot have a browser read this one under its own name.
"""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import stat
from binascii import Error as NoBase64Error
from hmac import compare_digest
from pathlib import Path
from typing import cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from specwire.runtime.observe.place import is_loopback

SHORTEST = 12
"""Characters. The number of attempts is not limited."""

MAX_OCTETS = 4096
CHALLENGE = 'Basic realm="specwire", charset="UTF-8"'
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def read_password(file: Path) -> str:
    """Return the password in the first line of a file.

    Raises:
        ValueError: the file cannot be read, others may read it, or the password is too short.
    """
    try:
        with file.open("rb") as stream:
            mode = file.stat().st_mode
            line = stream.readline(MAX_OCTETS).decode().strip("\r\n")
    except OSError as error:
        raise ValueError(f"the password in {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"the password in {file} is not UTF-8") from None
    if mode & _OTHERS:
        raise ValueError(f"the password in {file} can be read by others: chmod 600 it, and choose another")
    if len(line) < SHORTEST:
        raise ValueError(
            f"the password in {file} has {len(line)} characters, and {SHORTEST} are required: "
            f"head -c 18 /dev/urandom | base64 makes one"
        )
    return line


def is_allowed(header: str, password: str) -> bool:
    """Return whether the header ``Authorization`` of a request has the password."""
    scheme, _, said = header.partition(" ")
    match scheme.lower():
        case "bearer":
            offered = said.strip().encode()
        case "basic":
            try:
                offered = base64.b64decode(said.strip(), validate=True).partition(b":")[2]
            except (NoBase64Error, ValueError):
                return False
        case _:
            return False
    return compare_digest(offered, password.encode())


def is_known_host(header: str, own: str) -> bool:
    """Return whether a server that listens at the host `own` answers a request with this header ``Host``."""
    host = _without_port(header).lower().rstrip(".")
    if host == "localhost" or not is_loopback(own):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _without_port(header: str) -> str:
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


MAX_CONNECTIONS = 64
IDLE_S = 30.0

OPENING_S = 0.1
"""After this time aiohttp knows a connection that was admitted."""


class ConnectionLimiter:
    """Factory of the protocol of each connection, within limits.

    Args:
        server: aiohttp's.
        max_connections: most connections at a time.
        idle_s: how long a connection may be silent.
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
        """Note a request on this connection."""
        self._asked_at[handler] = asyncio.get_running_loop().time()

    def sweep(self) -> None:
        """Close connections without a request for too long, and forget those that have ended."""
        now, connected = asyncio.get_running_loop().time(), set(self._server.connections)
        for handler, asked_at in list(self._asked_at.items()):
            silent_s = now - asked_at
            if handler in connected and silent_s > self._idle_s:
                handler.force_close()
            if handler not in connected and silent_s > OPENING_S:
                del self._asked_at[handler]


class _HangUp(asyncio.Protocol):
    """Protocol of a connection beyond the limit."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).abort()
