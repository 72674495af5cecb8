"""Whether a port is free, asked before work that takes long: libzmq tells it only when it is to listen. And what to do if not."""

from __future__ import annotations

import errno
import socket

from specwire.runtime.transport.errors import TransportError


def describe_refusal(endpoint: str, number: int | None, reason: str | None) -> str:
    """Return the sentence about an endpoint that cannot be listened on; `number` is that of the system's error."""
    told = f"cannot listen on {endpoint}: {reason}"
    if number != errno.EADDRINUSE:
        return told
    another = "path" if endpoint.startswith("ipc://") else "port (* takes any that is free)"
    return f"{told}; end what listens there, or choose another {another}"


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
                raise TransportError(describe_refusal(endpoint, error.errno, error.strerror)) from error
        except OverflowError:
            return
