"""Where the files of an inbox came from: only the server that sent a file may have it deleted.

A server is known by its public key, where there is one, as whoever has the secret one is that server wherever it
is. Without CURVE it is known by the endpoint as the user gave it: nothing else tells two servers apart that both
prove nothing. So a server without a key that moves to another endpoint is another one, until it is said that it is not.
"""

from __future__ import annotations

from specwire.runtime.filemq.credentials import ClientSecurity
from specwire.runtime.transport.security import CurveClient


def origin_of(endpoint: str, security: ClientSecurity) -> str:
    """Return how the inbox is to know the server."""
    return f"curve:{security.server_key}" if isinstance(security, CurveClient) else endpoint
