"""The client's side of credit: a window of octets that may be under way or wait for the disk.

FILEMQ v2, "The NOM Command": the server sends as much content as it has credit for. The client grants a window
first, and again what it has finished with, once that is a quarter of the window. So the octets that the server
may still send and those that are not on the disk yet are never more than the window, whatever the disk does.
"""

from __future__ import annotations


class CreditWindow:
    """Counts octets: granted and not received (`outstanding`), received and not done with (`pending`)."""

    def __init__(self, window_octets: int) -> None:
        self.outstanding = 0
        self.pending = 0
        self._window = window_octets

    def receive(self, octets: int) -> bool:
        """Take content from the server; False where it sent more than it had credit for."""
        self.outstanding -= octets
        self.pending += octets
        return self.outstanding >= 0

    def finish(self, octets: int) -> None:
        """These octets are on the disk, or thrown away."""
        self.pending -= octets

    def grant(self) -> int:
        """Return the credit to send now, 0 where it is not worth a command yet."""
        room = self._window - self.outstanding - self.pending
        if room < max(1, self._window // 4):
            return 0
        self.outstanding += room
        return room
