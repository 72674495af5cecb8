"""How a random conversation is held: how much, how fast, how broken."""

from __future__ import annotations

import msgspec


class Manner(msgspec.Struct, frozen=True):
    """Settings of a rehearsal.

    Attributes:
        messages: how many messages of our own accord at most, in all conversations together; answers come on top.
        seconds: after so long nothing new is said.
        rate: messages of our own accord a second and conversation, on average.
        window: requests of ours that may wait for an answer at a time in a conversation.
        patience_s: how long an answer may take before we go on without it.
        fault_share: of the messages, the part that is broken.
        closing_share: of the choices where the conversation could be closed, the part in which it is.
    """

    messages: int = 1000
    seconds: float = 10.0
    rate: float = 200.0
    window: int = 8
    patience_s: float = 5.0
    fault_share: float = 0.0
    closing_share: float = 0.01


class Budget:
    """How many messages of our own accord are left, and until when; the time counts from `begin`."""

    def __init__(self, manner: Manner) -> None:
        self._left = manner.messages
        self._seconds = manner.seconds
        self._until = float("inf")

    def begin(self, now: float) -> None:
        """Count the time from now on."""
        self._until = now + self._seconds

    def take(self, now: float) -> bool:
        """Take one; False where there is none left."""
        if self.spent(now):
            return False
        self._left -= 1
        return True

    def stop(self) -> None:
        """Say nothing more of our own accord from now on."""
        self._left = 0

    def spent(self, now: float) -> bool:
        """Whether nothing more is to be said of our own accord."""
        return self._left <= 0 or now >= self._until
