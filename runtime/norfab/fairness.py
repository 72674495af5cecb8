"""A queue in which clients take turns: whoever waits with one item waits for one item of each other at most."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """First in, first out for each client; among clients, round robin. `size` is how many items wait."""

    __slots__ = ("_lines", "size")

    def __init__(self) -> None:
        self._lines: dict[bytes, deque[T]] = {}
        self.size = 0

    def __iter__(self) -> Iterator[T]:
        for line in self._lines.values():
            yield from line

    def push(self, client: bytes, item: T) -> None:
        """Put `item` at the end of its client's line."""
        self._lines.setdefault(client, deque()).append(item)
        self.size += 1

    def pop(self) -> T:
        """Take the next item; the client goes to the end of the round. Raises StopIteration where there is none."""
        client = next(iter(self._lines))
        line = self._lines.pop(client)
        item = line.popleft()
        if line:
            self._lines[client] = line
        self.size -= 1
        return item

    def remove(self, client: bytes, item: T) -> None:
        """Take `item` out, wherever it stands; nothing where it is not there."""
        line = self._lines.get(client)
        if line is None or item not in line:
            return
        line.remove(item)
        self.size -= 1
        if not line:
            del self._lines[client]
