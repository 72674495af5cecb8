"""The keys by which a server may prove itself to a client, and which of them the next connection expects.

A server that changes its key does so at one moment; its clients are told before. So each may know two keys for a while:
it expects one until a connection by it ends without a word from the server, and then the next, in turn.
"""

from __future__ import annotations

import msgspec

from specwire.runtime.transport.security import CurveClient, Security


class ServerKeys:
    """What a client asks of its server, connection by connection.

    Args:
        security: how the client proves itself; where that is not CURVE, or the server has one key, it never changes.
    """

    def __init__(self, security: Security) -> None:
        self._ways: list[Security] = [security]
        if isinstance(security, CurveClient):
            self._ways = [
                msgspec.structs.replace(security, server_key=key, other_server_keys=())
                for key in (security.server_key, *security.other_server_keys)
            ]
        self._turn = 0
        self._is_heard = False

    def next(self) -> Security:
        """Return what a connection that is made now asks."""
        self._is_heard = False
        return self._ways[self._turn]

    def heard(self) -> None:
        """The server has said something: it has the key."""
        self._is_heard = True

    def lost(self) -> None:
        """The connection has ended."""
        if not self._is_heard:
            self._turn = (self._turn + 1) % len(self._ways)
