"""A TCP socket that listens, for what is not ZeroMQ."""

from __future__ import annotations

import socket

from specwire.runtime.transport.errors import TransportError
from specwire.runtime.transport.port import describe_refusal

BACKLOG = 64


def listen_on(host: str, port: int) -> socket.socket:
    """Return a socket that listens at `host` and `port`, where port 0 takes any.

    Raises:
        TransportError: the host is not this machine's, or the port is taken.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise TransportError(f"cannot listen on {host}:{port}: {error.strerror}") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise TransportError(describe_refusal(f"{host}:{port}", error.errno, error.strerror)) from error
    listener.setblocking(False)
    return listener
