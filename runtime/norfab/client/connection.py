"""The client's way to a broker over a socket: one DEALER at a time, with a routing id of its own for each connection.

A broker's ROUTER never lets a second connection with a routing id in while it thinks that the first one lives, and does not
say so. So the id is the client's name with something that nobody had before; jobs are found again by their uuids.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.norfab import wire
from specwire.runtime.norfab.commands import Command
from specwire.runtime.norfab.wire import DecodeError, Dialect, EncodeError
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.security import Security
from specwire.runtime.transport.serverkeys import ServerKeys

LINGER_S = 0.5
HIGH_WATER = 1000
CONNECT_S = 5.0
GIVE_UP_S = 20.0


class Connection:
    """Opens and closes the socket to a broker; there is none until `open`.

    Args:
        name: how the broker lists this client.
        on_command: called with each command.
        on_malformed: called with what is wrong with a message.
        on_lost: called with the reason where there is no connection (any more), after all messages that came.
        body_octets: the largest body that is taken.
    """

    def __init__(
        self,
        name: str,
        *,
        on_command: Callable[[Command], None],
        on_malformed: Callable[[str], None],
        on_lost: Callable[[str], None],
        dialect: Dialect,
        security: Security,
        body_octets: int,
        tap: Recorder | None,
    ) -> None:
        self._name, self._dialect, self._tap = name, dialect, tap
        self._keys = ServerKeys(security)
        self._on_command, self._on_malformed, self._on_lost = on_command, on_malformed, on_lost
        self._body_octets = body_octets
        self._context = TransportContext()
        self._dealer: Dealer | None = None
        self._endpoint = self._conversation = ""

    def open(self, endpoint: str) -> None:
        """Drop the connection there is and open another; raises TransportError."""
        self.drop()
        self._endpoint, self._conversation = endpoint, os.urandom(8).hex()
        self._dealer = Dealer(
            self._context,
            endpoint,
            on_message=self._receive,
            on_sent=self._sent,
            on_lost=self._lose,
            high_water=HIGH_WATER,
            security=self._keys.next(),
            identity=f"{self._name}-{self._conversation[:8]}".encode(),
            max_frame_octets=self._body_octets,
            give_up_s=GIVE_UP_S,
            connect_s=CONNECT_S,
        )

    def send(self, command: Command) -> str:
        """Send; return why it cannot be sent, empty where it is on its way or there is no connection."""
        if self._dealer is None:
            return ""
        try:
            frames = wire.encode(command, self._dialect, "client", "broker")
        except EncodeError as error:
            return str(error)
        return "" if self._dealer.send(frames) else "the broker does not read what it is sent"

    def drop(self) -> None:
        """Close the connection there is; what was said last is still sent."""
        dealer, self._dealer = self._dealer, None
        if dealer is not None:
            dealer.close(linger_s=LINGER_S)

    async def close(self) -> None:
        """Close for good."""
        self.drop()
        await self._context.close()

    def _lose(self, reason: str) -> None:
        self._keys.lost()
        self._on_lost(reason)

    def _receive(self, frames: list[bytes]) -> None:
        self._keys.heard()
        self._record("B", frames)
        try:
            command = wire.read(frames)
        except DecodeError as error:
            self._on_malformed(str(error))
            return
        self._on_command(command)

    def _sent(self, frames: Sequence[bytes]) -> None:
        self._record("C", frames)

    def _record(self, sender: str, frames: Sequence[bytes]) -> None:
        if self._tap is not None:
            self._tap.record(
                sender=sender, peer=self._endpoint, conversation=self._conversation, frames=frames
            )
