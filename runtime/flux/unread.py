"""What has come for one reader and was not read yet, up to a bound."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

from specwire.runtime.flux.errors import FluxError

Item = TypeVar("Item")

MAX_UNREAD = 100_000


class Unread(Generic[Item]):
    """Items in the order in which they came, and their end.

    Attributes:
        lost: how many came when there was no room.
        ended: whether no more will come.
    """

    def __init__(self, max_unread: int = MAX_UNREAD) -> None:
        self.lost = 0
        self.ended = False
        self._items: deque[Item] = deque()
        self._max_unread = max_unread
        self._error: FluxError | None = None

    def __bool__(self) -> bool:
        """Whether there is something to take, be it the end."""
        return bool(self._items) or self.ended

    def put(self, item: Item) -> bool:
        """Take an item in; False where there is no room, and it is counted only."""
        if len(self._items) >= self._max_unread:
            self.lost += 1
            return False
        self._items.append(item)
        return True

    def end(self, error: FluxError | None = None) -> None:
        """Let the reader come to an end, or to `error`, after what is unread. Only the first end counts."""
        if not self.ended:
            self.ended, self._error = True, error

    def take(self) -> Item | None:
        """Return the next item; None at the end, or the error is raised. Only where it is true."""
        if self._items:
            return self._items.popleft()
        if self._error is not None:
            raise self._error
        return None
