"""What an endpoint may look like, so that a slip of the pen is told as such and not as an error of the system.

What libzmq would refuse by the text alone is refused here, before anything is opened; what is left may still fail
where it is tried (a name that is nobody's, a port that is taken).
"""

from __future__ import annotations

import asyncio
import os
import re
import socket

from specwire.runtime.transport.errors import TransportError

MAX_PORT = 65_535
LONGEST_PATH_OCTETS = 107
"""What Linux takes as the path of a socket."""

_HOST = re.compile(r"[A-Za-z0-9._%-]+|\[[0-9A-Fa-f:.]+(%[A-Za-z0-9._-]+)?\]")


def fault_in_endpoint(endpoint: str, *, listening: bool) -> str | None:
    """Return why a peer can neither listen on nor connect to `endpoint`, None where it may try.

    Args:
        listening: the port may be ``*`` or 0, the host ``*``; to connect, ``SOURCE;`` may stand in front of the host.
    """
    scheme, separator, address = endpoint.partition("://")
    if not separator or scheme not in ("tcp", "ipc") or not address:
        return "is no endpoint: tcp://HOST:PORT or ipc://PATH is wanted"
    return _fault_in_path(address) if scheme == "ipc" else _fault_in_address(address, listening=listening)


def _fault_in_path(path: str) -> str | None:
    octets = len(os.fsencode(path))
    if octets <= LONGEST_PATH_OCTETS:
        return None
    return f"has a path of {octets} octets, and {LONGEST_PATH_OCTETS} are the most"


def _fault_in_address(address: str, *, listening: bool) -> str | None:
    host, separator, port = address.rpartition(":")
    if not listening:
        host = host.rpartition(";")[2]
    if not separator or not host or not port or host.endswith(":"):
        return "names no port: tcp://HOST:PORT is wanted"
    if fault := _fault_in_host(host, listening=listening):
        return fault
    if port in ("*", "0"):
        return None if listening else "names no port to connect to"
    if not (port.isascii() and port.isdigit()):
        return f"has the port {port!r}, which is no number"
    return None if int(port) <= MAX_PORT else f"has the port {port}, and the highest is {MAX_PORT}"


def _fault_in_host(host: str, *, listening: bool) -> str | None:
    if host == "*":
        return None if listening else "names no host to connect to"
    return None if _HOST.fullmatch(host) else f"has the host {host!r}, which is none"


async def resolve_endpoint(endpoint: str) -> str:
    """Return an endpoint with the IPv4 address of its host; raises TransportError.

    Only ``tcp`` endpoints are changed.
    """
    host, _, port = endpoint.removeprefix("tcp://").rpartition(":")
    if not endpoint.startswith("tcp://") or host.startswith("["):
        return endpoint
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, family=socket.AF_INET)
    except OSError as error:
        raise TransportError(f"{endpoint}: {error.strerror}") from None
    return f"tcp://{found[0][4][0]}:{port}"
