"""What comes for those who wait on an asyncio loop: one reply, or any number of replies or events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

from specwire.runtime.flux.errors import FluxError
from specwire.runtime.flux.unread import MAX_UNREAD, Unread

Item = TypeVar("Item")


class Arrivals(Unread[Item]):
    """Unread items, and an iterator that waits for more; it ends, or raises the error, after them."""

    def __init__(self, max_unread: int = MAX_UNREAD) -> None:
        super().__init__(max_unread)
        self._changed = asyncio.Event()

    def put(self, item: Item) -> bool:
        """See `Unread.put`."""
        self._changed.set()
        return super().put(item)

    def end(self, error: FluxError | None = None) -> None:
        """See `Unread.end`."""
        self._changed.set()
        super().end(error)

    def __aiter__(self) -> AsyncIterator[Item]:
        return self

    async def __anext__(self) -> Item:
        while not self:
            self._changed.clear()
            await self._changed.wait()
        item = self.take()
        if item is None:
            raise StopAsyncIteration
        return item


class Once(asyncio.Future[Item]):
    """The one item that comes, or the error that comes in its place."""

    def put(self, item: Item) -> bool:
        """Take it, unless the one who waited has gone."""
        if not self.done():
            self.set_result(item)
        return True

    def end(self, error: FluxError | None = None) -> None:
        """Fail, unless it has come."""
        if error is not None and not self.done():
            self.set_exception(error)
