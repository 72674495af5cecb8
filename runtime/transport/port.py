"""Whether a port is free, asked before work that takes long: libzmq tells it only when it is to listen."""

from __future__ import annotations

import errno
import socket

from specwire.runtime.transport.errors import TransportError


def require_free(endpoint: str) -> None:
    """Raise TransportError where another program listens on this ``tcp`` endpoint already.

    Anything else that is wrong with it is left to `Link.bind`, and so is a port that somebody takes later.
    """
    scheme, _, address = endpoint.partition("://")
    host, _, port = address.rpartition(":")
    if scheme != "tcp" or not port.isdigit():
        return
    host = "" if host == "*" else host.strip("[]")
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((host, int(port)))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise TransportError(f"cannot listen on {endpoint}: {error.strerror}") from error
        except OverflowError:
            return
