"""Listening TCP socket for protocols other than ZeroMQ."""

from __future__ import annotations

import socket

from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.port import describe_refusal

BACKLOG = 100


def listen_on(
    host: str, port: int, *, family: socket.AddressFamily = socket.AF_UNSPEC, endpoint: str = ""
) -> socket.socket:
    """Return a socket that listens at `host` and `port`; port 0 means any free port.

    Args:
        family: address family to use if `host` has addresses of several.
        endpoint: name of the address in errors; by default ``HOST:PORT``.

    Raises:
        TransportError: `host` is not an address of this machine, or the port is in use.
    """
    endpoint = endpoint or f"{host}:{port}"
    try:
        found, kind, protocol, _, address = socket.getaddrinfo(
            host, port, family=family, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(found, kind, protocol)
    except OSError as error:
        raise TransportError(f"cannot listen on {endpoint}: {error.strerror}") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise TransportError(describe_refusal(endpoint, error.errno, error.strerror)) from error
    listener.setblocking(False)
    return listener
