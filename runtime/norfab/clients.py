"""What the broker knows of each client: how much it has open, and when it was heard. Bounded."""

from __future__ import annotations


class Client:
    """One client; `open_jobs` are those it posted that have not ended."""

    __slots__ = ("first_at", "messages", "open_jobs", "peer", "posts", "seen_at", "user")

    def __init__(self, peer: bytes, user: str, now: float) -> None:
        self.peer, self.user = peer, user
        self.first_at = self.seen_at = now
        self.open_jobs = self.posts = self.messages = 0


class Clients:
    """All clients; beyond `limit` the one that was silent longest and has nothing open is forgotten."""

    __slots__ = ("_known", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[bytes, Client] = {}

    def __len__(self) -> int:
        return len(self._known)

    def heard(self, peer: bytes, user: str, now: float) -> Client:
        """Return the client that sent something just now."""
        client = self._known.pop(peer, None) or Client(peer, user, now)
        client.user, client.seen_at = user, now
        client.messages += 1
        self._known[peer] = client
        if len(self._known) > self._limit:
            self._forget_one(peer)
        return client

    def _forget_one(self, but: bytes) -> None:
        for count, (peer, client) in enumerate(self._known.items()):
            if not client.open_jobs and peer != but:
                del self._known[peer]
                return
            if count > 100:
                return

    def open_jobs(self, peer: bytes) -> int:
        """Return how many jobs of the client have not ended."""
        client = self._known.get(peer)
        return client.open_jobs if client is not None else 0

    def opened(self, peer: bytes, user: str, now: float) -> None:
        """The client has one job more."""
        client = self._known.get(peer)
        if client is None:
            client = self._known[peer] = Client(peer, user, now)
        client.open_jobs += 1
        client.posts += 1

    def ended(self, peer: bytes) -> None:
        """One of its jobs has ended."""
        client = self._known.get(peer)
        if client is not None and client.open_jobs:
            client.open_jobs -= 1

    def all(self) -> list[Client]:
        """Return the clients, the one heard longest ago first."""
        return list(self._known.values())
