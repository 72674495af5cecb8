"""What the broker knows of each client: how much it has open, and when it was heard. Bounded.

A client that connects anew has another routing id, so where security knows its user it is the user that has a limit.
"""

from __future__ import annotations


class Client:
    """One client; `open_jobs` are those it posted that have not ended, `gone` is set where it could not be reached."""

    __slots__ = ("first_at", "gone", "messages", "open_jobs", "peer", "posts", "seen_at", "user")

    def __init__(self, peer: bytes, user: str, now: float) -> None:
        self.peer, self.user = peer, user
        self.first_at = self.seen_at = now
        self.open_jobs = self.posts = self.messages = 0
        self.gone = False


class Clients:
    """All clients; beyond `limit` the one that was silent longest and has nothing open is forgotten."""

    __slots__ = ("_known", "_limit", "_open_of_user")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[bytes, Client] = {}
        self._open_of_user: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def heard(self, peer: bytes, user: str, now: float) -> Client:
        """Return the client that sent something just now."""
        known = self._known
        client = known.pop(peer, None) or Client(peer, user, now)
        client.user, client.seen_at, client.gone = user, now, False
        client.messages += 1
        known[peer] = client
        if len(known) > self._limit:
            self._forget_one(peer)
        return client

    def _forget_one(self, but: bytes) -> None:
        for count, (peer, client) in enumerate(self._known.items()):
            if not client.open_jobs and peer != but:
                del self._known[peer]
                return
            if count > 100:
                return

    def unreachable(self, peer: bytes) -> None:
        """The client is not connected any more, as far as is known."""
        client = self._known.get(peer)
        if client is not None:
            client.gone = True

    def is_gone(self, peer: bytes) -> bool:
        """Whether nobody need think of the client when room is needed: it is gone or was forgotten."""
        client = self._known.get(peer)
        return client is None or client.gone

    def open_jobs(self, peer: bytes, user: str) -> int:
        """Return how many jobs of the user, without one of the client, have not ended."""
        if user:
            return self._open_of_user.get(user, 0)
        client = self._known.get(peer)
        return client.open_jobs if client is not None else 0

    def opened(self, peer: bytes, user: str, now: float) -> None:
        """The client has one job more."""
        client = self._known.get(peer)
        if client is None:
            client = self._known[peer] = Client(peer, user, now)
        client.open_jobs += 1
        client.posts += 1
        if user:
            self._open_of_user[user] = self._open_of_user.get(user, 0) + 1

    def ended(self, peer: bytes, user: str) -> None:
        """One of its jobs has ended."""
        if user:
            left = self._open_of_user.pop(user, 0) - 1
            if left > 0:
                self._open_of_user[user] = left
        client = self._known.get(peer)
        if client is not None and client.open_jobs:
            client.open_jobs -= 1

    def all(self) -> list[Client]:
        """Return the clients, the one heard longest ago first."""
        return list(self._known.values())
