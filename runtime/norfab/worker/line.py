"""Socket of the worker: one at a time, a new one for each registration.

The routing id is the worker's name, except on a connection that asks whether the name is taken. All
messages are captured here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from specwire.generated.errors import DecodeError, EncodeError
from specwire.runtime.capture.recorder import Recorder
from specwire.runtime.norfab import commands, wire
from specwire.runtime.norfab.commands import Command
from specwire.runtime.norfab.wire import Dialect
from specwire.runtime.transport.context import TransportContext
from specwire.runtime.transport.dealer import Dealer
from specwire.runtime.transport.security import Security
from specwire.runtime.transport.serverkeys import ServerKeys

LINGER_S = 1.0
CONNECT_S = 1.0
"""A host that does not answer is given up after this time."""

HIGH_WATER = 1000
MAX_EVENTS_WAITING = 2000
"""Progress is omitted while so many messages are queued, so that there is room for results."""


class Line:
    """Connection to one broker of a list.

    Args:
        max_frame_octets: larger frames are not accepted.
        on_command: called with each command.
        on_malformed: called with the reason, for a message that cannot be decoded.
        on_lost: called with the reason when the connection fails.
    """

    def __init__(
        self,
        endpoints: Sequence[str],
        name: str,
        security: Sequence[Security],
        *,
        dialect: Dialect,
        tap: Recorder | None,
        max_frame_octets: int,
        on_command: Callable[[Command], None],
        on_malformed: Callable[[str], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self._endpoints, self._name = endpoints, name
        self._keys = [ServerKeys(each) for each in security]
        self._broker = 0
        self._dialect, self._tap, self._max_frame_octets = dialect, tap, max_frame_octets
        self._on_command, self._on_malformed, self._on_lost = on_command, on_malformed, on_lost
        self._context = TransportContext()
        self._dealer: Dealer | None = None
        self._endpoint = self._conversation = ""
        self._waiting = 0

    def open(self, broker: int, *, named: bool) -> None:
        """Open a new connection, after closing the current one; raises TransportError.

        Args:
            broker: index of the broker.
            named: use the worker's name as the routing id; otherwise libzmq chooses one.
        """
        self.drop()
        self._broker, self._endpoint = broker, self._endpoints[broker]
        self._conversation = f"{os.urandom(4).hex()}-worker-{self._name.encode().hex()}"
        self._waiting = 0
        self._dealer = Dealer(
            self._context,
            self._endpoint,
            on_message=self._receive,
            on_sent=self._sent,
            on_lost=self._lose,
            high_water=HIGH_WATER,
            security=self._keys[broker].next(),
            identity=self._name.encode() if named else b"",
            max_frame_octets=self._max_frame_octets,
            connect_s=CONNECT_S,
        )

    def drop(self) -> None:
        """Close the connection, if there is one. Queued messages are still sent."""
        dealer, self._dealer = self._dealer, None
        if dealer is not None:
            dealer.close(linger_s=LINGER_S)

    async def close(self) -> None:
        """Close the connection; returns when queued messages are sent, or cannot be."""
        self.drop()
        await self._context.close()

    def send(self, command: Command) -> None:
        """Send a command, if there is a connection.

        One that cannot be encoded is reported with `on_malformed`; the broker will ask for what is missing.
        """
        if self._dealer is None:
            return
        if type(command) is commands.Event and self._waiting > MAX_EVENTS_WAITING:
            return
        try:
            frames = wire.encode(command, self._dialect, "worker", "broker")
        except EncodeError as error:
            if not isinstance(command, commands.Stream):  # the specification has no STREAM
                self._on_malformed(f"cannot be sent: {error}")
            return
        self._waiting += 1
        if not self._dealer.send(frames):
            self._waiting -= 1

    def _sent(self, frames: Sequence[bytes]) -> None:
        self._waiting -= 1
        self._record("W", frames)

    def _lose(self, reason: str) -> None:
        self._keys[self._broker].lost()
        self._on_lost(reason)

    def _receive(self, frames: list[bytes]) -> None:
        self._keys[self._broker].heard()
        self._record("B", frames)
        try:
            command = wire.read(frames)
        except DecodeError as error:
            self._on_malformed(str(error))
            return
        self._on_command(command)

    def _record(self, sender: str, frames: Sequence[bytes]) -> None:
        if self._tap is not None:
            self._tap.record(
                sender=sender, peer=self._endpoint, conversation=self._conversation, frames=frames
            )
