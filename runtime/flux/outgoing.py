"""What leaves by one asyncio transport, gathered: many small messages in one turn of the loop are one `send`.

The first message of a turn goes out at once, so that a lone request does not wait for the turn to end; those behind
it are gathered until then. Under `hold` the first is gathered too, for the answers to many requests that came
together.
"""

from __future__ import annotations

import asyncio

GATHERED_OCTETS = 256 * 1024
GATHERED_MESSAGES = 32
"""What may be gathered before it is handed to the transport, the turn over or not. With more messages the other side
would have nothing to do meanwhile, and the two would work in turn where they can at the same time."""

MESSAGE_WEIGHT = GATHERED_OCTETS // GATHERED_MESSAGES
"""What a message counts for besides its own octets, so that one sum keeps within both bounds."""


class Outgoing:
    """Writes to one transport."""

    __slots__ = ("_gathered", "_held", "_loop", "_scheduled", "_transport", "_weight")

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.WriteTransport) -> None:
        self._loop, self._transport = loop, transport
        self._gathered: list[bytes] = []
        self._weight = 0
        self._held = self._scheduled = False

    def write(self, octets: bytes) -> None:
        """Send `octets`, now or at the end of the turn, behind what was written before."""
        if self._held or self._scheduled:
            self._gathered.append(octets)
            self._weight += len(octets) + MESSAGE_WEIGHT
            if self._weight > GATHERED_OCTETS:
                self.flush()
        else:
            self._scheduled = True
            self._transport.write(octets)
            self._loop.call_soon(self._end_turn)

    def write_alone(self, octets: bytes) -> None:
        """Send as `write` does, but where nothing has been gathered do not expect that anything follows in this turn."""
        if self._held or self._scheduled:
            self.write(octets)
        else:
            self._transport.write(octets)

    def hold(self) -> None:
        """Gather everything until `release`."""
        self._held = True

    def release(self) -> None:
        """Send what was gathered."""
        self._held = False
        if self._gathered:
            self.flush()

    def flush(self) -> None:
        """Hand what was gathered to the transport."""
        if self._gathered:
            octets = self._gathered[0] if len(self._gathered) == 1 else b"".join(self._gathered)
            self._gathered.clear()
            self._weight = 0
            self._transport.write(octets)

    @property
    def waiting_octets(self) -> int:
        """Octets that the system has not taken yet."""
        return sum(map(len, self._gathered)) + self._transport.get_write_buffer_size()

    def _end_turn(self) -> None:
        self._scheduled = False
        self.flush()
