"""What neighbours in the tree have not taken yet, and who made it so.

A link that does not keep up gathers messages. Over `HOLD_MESSAGES` or `HOLD_OCTETS` the clients whose requests go
there are held back, each by itself: it is read again when the link has caught up, and clients that talk to others
are not concerned. Events, and what comes from elsewhere in the tree, wait for nobody, but have a bound: over
`MAX_MESSAGES` or `MAX_OCTETS` the neighbour is taken for lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

HOLD_MESSAGES = 10_000
HOLD_OCTETS = 8 << 20
MAX_MESSAGES = 100_000
MAX_OCTETS = 64 << 20


class Backlog:
    """What waits for one neighbour.

    Args:
        resume: called with each client that was held back because of this link.
    """

    __slots__ = ("_held", "_resume", "messages", "octets")

    def __init__(self, resume: Callable[[str], None]) -> None:
        self._resume = resume
        self._held: list[str] = []
        self.messages = self.octets = 0

    @property
    def is_full(self) -> bool:
        """Whether nothing more may be added."""
        return self.messages >= MAX_MESSAGES or self.octets >= MAX_OCTETS

    @property
    def is_long(self) -> bool:
        """Whether those who add to it are to wait."""
        return self.messages >= HOLD_MESSAGES or self.octets >= HOLD_OCTETS

    def add(self, frames: Sequence[bytes]) -> None:
        """A message has to wait."""
        self.messages += 1
        self.octets += sum(map(len, frames))

    def take(self, frames: Sequence[bytes]) -> None:
        """A message that waited has gone; half of what makes it long is a good time to read on."""
        self.messages -= 1
        self.octets -= sum(map(len, frames))
        if self._held and self.messages <= HOLD_MESSAGES // 2 and self.octets <= HOLD_OCTETS // 2:
            self.release()

    def hold(self, client: str) -> None:
        """This client waits for the backlog to become shorter."""
        if client not in self._held:
            self._held.append(client)

    def release(self) -> None:
        """Let everybody go on, as when the link is gone."""
        held, self._held = self._held, []
        for client in held:
            self._resume(client)
