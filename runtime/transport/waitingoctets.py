"""The octets that wait for each peer before libzmq has them, and whether there may be more.

Messages are counted elsewhere; but a peer that asks for much and reads nothing fills the memory with few of them. So one may have
half of what the others leave of a common bound: one alone gets plenty, and where many read nothing, each gets little.
"""

from __future__ import annotations

from collections.abc import Sequence


class WaitingOctets:
    """Counts for a socket.

    Args:
        bound: of all peers together; None counts nothing, and there is always room.
    """

    def __init__(self, bound: int | None) -> None:
        self._bound = bound
        self._by_peer: dict[bytes, int] = {}
        self.total = 0

    def has_room(self, peer: bytes, frames: Sequence[bytes]) -> bool:
        """Whether one more message may wait for `peer`."""
        if self._bound is None:
            return True
        own = self._by_peer.get(peer, 0)
        return own + _size(frames) <= (self._bound - (self.total - own)) // 2

    def add(self, peer: bytes, frames: Sequence[bytes]) -> None:
        """A message waits."""
        if self._bound is not None:
            size = _size(frames)
            self._by_peer[peer] = self._by_peer.get(peer, 0) + size
            self.total += size

    def take(self, peer: bytes, frames: Sequence[bytes]) -> None:
        """A message waits no longer."""
        if peer in self._by_peer:
            size = _size(frames)
            self._by_peer[peer] -= size
            self.total -= size

    def forget(self, peer: bytes) -> None:
        """Nothing waits for `peer` any more."""
        self.total -= self._by_peer.pop(peer, 0)


def _size(frames: Sequence[bytes]) -> int:
    return sum(map(len, frames))
