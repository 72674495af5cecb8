"""The client's way to its server: one socket at a time, a fresh one for each peering.

What goes over it is counted and captured here; what it means is the engine's part.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.filemq.counters import Counters
from specwire.runtime.filemq.credentials import ClientSecurity
from specwire.runtime.filemq.dialect import Command, Dialect
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.serverkeys import ServerKeys

LINGER_S = 0.5


class Connection:
    """Opens and closes the socket to one server; there is none until `open`.

    Args:
        endpoint: the server's.
        on_message: called with the frames of each message.
        on_lost: called with the reason where there is no connection (any more), after all messages that came.
        tap: gets every message, in both directions.
        security: how this client proves who it is, and which server it expects.

    Attributes:
        silent: the server has said nothing on this connection, and nothing else is known of it.
    """

    def __init__(
        self,
        endpoint: str,
        on_message: Callable[[list[bytes]], None],
        on_lost: Callable[[str], None],
        *,
        dialect: Dialect,
        counters: Counters,
        tap: Recorder | None,
        security: ClientSecurity,
    ) -> None:
        self.silent = True
        self._endpoint, self._on_message, self._on_lost = endpoint, on_message, on_lost
        self._dialect, self._counters, self._tap = dialect, counters, tap
        self._keys = ServerKeys(security)
        self._context = TransportContext()
        self._dealer: Dealer | None = None
        self._conversation = ""

    def open(self) -> None:
        """Drop the connection there is and open a fresh one, with a new routing id; raises TransportError."""
        self.drop()
        # Both sides' taps can tell that it is one connection. An id that begins with NUL is one of libzmq's own.
        routing_id = b"\x01" + os.urandom(7)
        self._conversation = routing_id.hex()
        self.silent = True
        self._dealer = Dealer(
            self._context,
            self._endpoint,
            on_message=self._receive,
            on_sent=self._sent,
            on_lost=self._lose,
            high_water=self._dialect.habits.queue_messages,
            security=self._keys.next(),
            identity=routing_id,
        )

    def drop(self) -> None:
        """Close the connection there is; what was said last is still sent."""
        dealer, self._dealer = self._dealer, None
        if dealer is not None:
            dealer.close(linger_s=LINGER_S)

    async def close(self) -> None:
        """Close for good."""
        self.drop()
        await self._context.close()

    def send(self, command: Command) -> None:
        """Send where there is a connection."""
        if self._dealer is not None:
            self._dealer.send(self._dialect.encode(command))

    def listen(self, wanted: bool) -> None:
        """Receive or not: what is not received waits at the server."""
        if self._dealer is None:
            return
        if wanted:
            self._dealer.resume()
        else:
            self._dealer.pause()

    def _receive(self, frames: list[bytes]) -> None:
        self.silent = False
        self._keys.heard()
        self._counters.count_in(frames)
        self._record("S", frames)
        self._on_message(frames)

    def _lose(self, reason: str) -> None:
        self.silent = False
        self._keys.lost()
        self._on_lost(reason)

    def _sent(self, frames: Sequence[bytes]) -> None:
        self._counters.count_out(frames)
        self._record("C", frames)

    def _record(self, sender: str, frames: Sequence[bytes]) -> None:
        if self._tap is not None:
            self._tap.record(
                sender=sender, peer=self._endpoint, conversation=self._conversation, frames=frames
            )
