"""What an endpoint may look like, so that a slip of the pen is told as such and not as an error of the system."""

from __future__ import annotations

MAX_PORT = 65_535


def fault_in_endpoint(endpoint: str, *, listening: bool) -> str | None:
    """Return why a FILEMQ peer can neither listen on nor connect to `endpoint`, None where it may try.

    Args:
        listening: whether the port may be ``*``.
    """
    scheme, separator, address = endpoint.partition("://")
    if not separator or scheme not in ("tcp", "ipc") or not address:
        return "is no endpoint: tcp://HOST:PORT or ipc://PATH is wanted"
    if scheme == "ipc":
        return None
    host, separator, port = address.rpartition(":")
    if not separator or not host or not port or host.endswith(":"):
        return "names no port: tcp://HOST:PORT is wanted"
    if port == "*":
        return None if listening else "names no port to connect to"
    if not (port.isascii() and port.isdigit()):
        return f"has the port {port!r}, which is no number"
    return None if int(port) <= MAX_PORT else f"has the port {port}, and the highest is {MAX_PORT}"
