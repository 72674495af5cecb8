"""Messages that wait until it is known which protocol their connection speaks.

A message that no package reads may be a broken one of a protocol that only the next message tells. So what comes before the
first message that can be read is held, and read again then. Held is little: a connection waits for few messages, and where
all together hold too much, the one that has waited longest waits no more.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from specwire.runtime.pcap.rows import Row

MAX_OF_CONNECTION = 32
"""Messages of one connection that are held."""

MAX_ROWS = 4096
MAX_OCTETS = 16 << 20
"""Messages of all connections that are held, and octets in their frames."""


class Held(NamedTuple):
    """A message that waits, and whether the side that listened sent it."""

    row: Row
    is_listener: bool

    @property
    def octets(self) -> int:
        """Octets in its frames."""
        return sum(map(len, self.row.frames))


class Holding:
    """Holds the messages of connections, known by their numbers."""

    def __init__(self) -> None:
        self._held: OrderedDict[int, list[Held]] = OrderedDict()
        self._given_up: set[int] = set()
        self._rows = 0
        self._octets = 0

    def hold(self, number: int, held: Held) -> list[Held]:
        """Take a message, and return those that are not to wait any more, in their order; this one may be among them."""
        if number in self._given_up:
            return [held]
        waiting = self._held.setdefault(number, [])
        waiting.append(held)
        self._rows += 1
        self._octets += held.octets
        gone = self._give_up(number) if len(waiting) > MAX_OF_CONNECTION else []
        while self._rows > MAX_ROWS or self._octets > MAX_OCTETS:
            gone += self._give_up(next(iter(self._held)))
        return gone

    def release(self, number: int) -> list[Held]:
        """Return the messages of a connection that waited, in their order, and forget it."""
        self._given_up.discard(number)
        return self._take(number)

    def _give_up(self, number: int) -> list[Held]:
        self._given_up.add(number)
        return self._take(number)

    def _take(self, number: int) -> list[Held]:
        taken = self._held.pop(number, [])
        self._rows -= len(taken)
        self._octets -= sum(held.octets for held in taken)
        return taken
