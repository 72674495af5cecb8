"""What a peer needs to know of capturing: something that takes messages, quickly and without failing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Recorder(Protocol):
    """Takes each message that a peer sends or receives."""

    def record(self, *, sender: str, peer: str, conversation: str, frames: Sequence[bytes]) -> None:
        """Take one message; returns at once and never raises.

        Args:
            sender: role letter of the side that sent the message, such as ``C``.
            peer: the other side's identity, as text.
            conversation: an id that stays the same for one connection.
            frames: the multipart message without a ROUTER's routing id.
        """
