"""A password for the page and the metrics, where other users of the machine are not to read them.

It comes as HTTP's Basic (under any name; browsers ask for it) or as a Bearer token, and nothing is encrypted: it keeps out
others on this machine, and is no way to open the page to a network.
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
"""Characters: nobody is kept from trying."""

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
            f"the password in {file} has {len(line)} characters, and {SHORTEST} are wanted: "
            f"head -c 18 /dev/urandom | base64 makes one"
        )
    return line


def is_allowed(header: str, password: str) -> bool:
    """Whether a request that says ``Authorization: header`` knows the password."""
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
    """Whether a request that says ``Host: header`` is answered by a server that listens at the host `own`."""
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
