"""Actions to be performed in order, a bounded number before the event loop gets its turn."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from specwire.runtime.filemq.actions import ServerAction

AT_A_TIME = 64


class Agenda:
    """The queue of one server's actions.

    Args:
        do: performs one action; it may add others, and take some out.
    """

    def __init__(self, do: Callable[[ServerAction], None]) -> None:
        self._do = do
        self._todo: deque[ServerAction] = deque()
        self._turn: asyncio.Handle | None = None

    def add(self, actions: Iterable[ServerAction]) -> None:
        """Perform these after what is there already."""
        self._todo.extend(actions)
        if self._todo and self._turn is None:
            self._turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def drop(self, unwanted: Callable[[ServerAction], bool]) -> None:
        """Take out what is not to be performed any more."""
        self._todo = deque(action for action in self._todo if not unwanted(action))

    def finish(self) -> None:
        """Perform everything now."""
        while self._todo:
            self._take_turn()

    def close(self) -> None:
        """Perform nothing any more."""
        self._todo.clear()
        if self._turn is not None:
            self._turn.cancel()

    def _take_turn(self) -> None:
        try:
            for _ in range(AT_A_TIME):
                if self._todo:  # an action may take others out
                    self._do(self._todo.popleft())
        finally:  # a fault of ours in one action is told by the loop, and costs no other client
            self._turn = None
            self.add(())
